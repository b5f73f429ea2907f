"""The server of the live page: what it answers, and how it begins and ends beside the rest of the program."""

from __future__ import annotations

import asyncio
import importlib.resources
import json
import secrets
import socket
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import asdict
from typing import Any, TypedDict

import uvicorn
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from testbed.base.errors import InputError, LabError, TestbedError, argument
from testbed.base.limits import parse_json
from testbed.experiments.report.palette import declarations
from testbed.ui.live.actions import Actions
from testbed.ui.live.connections import BACKLOG, MAX_OPEN, Connections
from testbed.ui.live.lab_source import GoneError, HostBytes, LabSource, number_of
from testbed.ui.live.log_line import Line
from testbed.ui.live.pair_paths import PairPath
from testbed.ui.live.replay import AtReading, RunSource, Series
from testbed.ui.live.subscribers import Hub
from testbed.ui.live.token_check import App, TokenMiddleware

PERIOD = 0.125  # s between two readings
_PATIENCE = 1.0  # likewise while there is nothing to read
_BEAT = 5.0  # s after which a quiet stream says that it is there
_MOST = 4096  # bytes that a button may send
_ENDING = 2  # s that open pages have when the program ends
_READY = 10.0
_FILES = {
    "page.html": "text/html", "live.css": "text/css", "main.js": "text/javascript", "fabric.js": "text/javascript",
    "lab.js": "text/javascript", "panel.js": "text/javascript", "chart.js": "text/javascript",
    "words.js": "text/javascript",
}  # fmt: skip


class _UnderWay(TypedDict, total=False):
    capturing: list[str]
    jobs: dict[str, str]


class Page:
    """What is answered about one source."""

    def __init__(self, source: LabSource | RunSource) -> None:
        self.source, self.hub = source, Hub()
        self._loop: asyncio.AbstractEventLoop | None = None
        self.actions = Actions(source, self._tell_later) if isinstance(source, LabSource) else None

    def app(self) -> Starlette:
        """The application; its paths have no token, see guard."""
        routes = [
            Route("/", self._file("page.html")),
            Route("/live.css", self._style),
            *(Route(f"/{name}", self._file(name)) for name in _FILES if name.endswith(".js")),
            Route("/fabric", self._fabric),
            Route("/events", self._events),
            Route("/way", self._answer(self._way)),
            Route("/host", self._answer(self._host)),
            Route("/reading", self._answer(self._reading)),
            Route("/series", self._answer(self._series)),
            Route("/do", self._do, methods=["POST"]),
        ]
        return Starlette(routes=routes, lifespan=self._lifespan)

    @asynccontextmanager
    async def _lifespan(self, app: Starlette) -> AsyncIterator[None]:
        del app
        self._loop = asyncio.get_running_loop()
        sampling = asyncio.create_task(self._sample())
        try:
            yield
        finally:
            sampling.cancel()

    async def _sample(self) -> None:
        """Read while somebody looks, and tell everybody."""
        loop = asyncio.get_running_loop()
        while True:
            if not self.hub.viewers:
                self.source.pause()
                await self.hub.somebody.wait()
            began, pause = loop.time(), PERIOD
            try:
                reading = await run_in_threadpool(self.source.update)
                if reading is not None:
                    self.hub.show(_text(reading={**reading, **self._under_way()}))
            except LabError as error:
                pause = _PATIENCE
                self.hub.show(_text(trouble=error.sentence, gone=isinstance(error, GoneError)))
            await asyncio.sleep(max(pause - (loop.time() - began), PERIOD / 10))

    def _under_way(self) -> _UnderWay:
        """What buttons have begun that is not over."""
        return {} if self.actions is None else {"capturing": self.actions.capturing, "jobs": self.actions.jobs}

    # ------------------------------------------------------------------------------------------------------- answers

    def _file(self, name: str) -> Callable[[Request], Awaitable[Response]]:
        async def answer(request: Request) -> Response:
            del request
            return Response(_content(name), media_type=_FILES[name])

        return answer

    async def _style(self, request: Request) -> Response:
        del request
        colours = (
            f":root{{color-scheme:light dark;{declarations(dark=False)}}}\n"
            f"@media (prefers-color-scheme:dark){{:root{{{declarations(dark=True)}}}}}\n"
        )
        return Response(colours + _content("live.css"), media_type="text/css")

    async def _fabric(self, request: Request) -> Response:
        del request
        return JSONResponse(self.source.picture)

    async def _events(self, request: Request) -> Response:
        """Server-sent events: the newest reading when the page has taken the one before, and every line of the log."""
        del request

        async def stream() -> AsyncIterator[str]:
            with self.hub.viewer() as viewer:
                yield "retry: 1000\n\n"
                while (found := await viewer.next(_BEAT)) is not None:
                    # A comment, where nothing has come, finds out whether anybody is there.
                    yield "".join(f"data: {message}\n\n" for message in found) or ": quiet\n\n"

        return StreamingResponse(stream(), media_type="text/event-stream")

    def _answer(self, question: Callable[[Mapping[str, str]], object]) -> Callable[[Request], Awaitable[Response]]:
        async def answer(request: Request) -> Response:
            return await _make_response(lambda: question(request.query_params))

        return answer

    def _way(self, asked: Mapping[str, str]) -> PairPath:
        hosts = self.source.plan.wiring.host_count
        source, destination = (number_of(asked.get(key, ""), hosts, key) for key in ("from", "to"))
        if source == destination:
            raise InputError.one("to", "should be another host")
        return self.source.trace_path(source, destination)

    def _host(self, asked: Mapping[str, str]) -> HostBytes:
        host = number_of(asked.get("host", ""), self.source.plan.wiring.host_count, "host")
        if isinstance(self.source, RunSource):
            return self.source.host(asked.get("load", ""), host)
        return self.source.host(host)

    def _reading(self, asked: Mapping[str, str]) -> AtReading:
        return self._run().reading(asked.get("load", ""), asked.get("reading", ""))

    def _series(self, asked: Mapping[str, str]) -> Series:
        directions = 2 * (self.source.plan.wiring.link_count + self.source.plan.wiring.host_count)
        return self._run().series(asked.get("load", ""), number_of(asked.get("direction", ""), directions, "direction"))

    def _run(self) -> RunSource:
        if isinstance(self.source, RunSource):
            return self.source
        raise InputError.one("reading", "a running lab has none that are over")

    async def _do(self, request: Request) -> Response:
        """A button; everybody sees what it did."""
        if self.actions is None:
            return JSONResponse({"problem": "a finished run cannot be changed"}, 400)
        if request.headers.get("content-type", "").partition(";")[0].strip() != "application/json":
            return JSONResponse({"problem": "should be JSON"}, 400)
        try:
            body = b""
            async for part in request.stream():
                body += part
                if len(body) > _MOST:
                    return JSONResponse({"problem": "is too long"}, 400)
            asked = parse_json(body)
        except ValueError as error:
            return JSONResponse({"problem": f"should be a JSON object: {error}"}, 400)
        if not isinstance(asked, dict):
            return JSONResponse({"problem": "should be a JSON object"}, 400)
        actions = self.actions
        return await _make_response(lambda: asdict(self._tell_later(actions.do(asked))))

    def _tell_later(self, line: Line) -> Line:
        """Put a line into everybody's log, from any thread."""
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self.hub.tell, _text(line=asdict(line)))
        return line


async def _make_response(answer: Callable[[], object]) -> Response:
    """An answer, or the sentence of why there is none."""
    try:
        return JSONResponse(await run_in_threadpool(answer))
    except TestbedError as error:
        return JSONResponse({"problem": str(error)}, 400 if isinstance(error, InputError) else 503)


def _text(**message: Any) -> str:
    """A message as one line, so that it is one server-sent event."""
    return json.dumps(message, separators=(",", ":"))


def _content(name: str) -> str:
    return importlib.resources.files("testbed.ui.live").joinpath(name).read_text(encoding="utf-8")


def listening_socket(port: int | None) -> socket.socket:
    """A socket that listens on 127.0.0.1; None = whichever port is free.

    Raises:
        InputError: the port is taken, or not to be had.
    """
    if port is not None and not 0 < port < 65536:
        raise InputError.one(argument("port"), f"should be from 1 to 65535, not {port}")
    made = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        made.bind(("127.0.0.1", port or 0))
        made.listen(BACKLOG)
    except OSError as error:
        made.close()
        sentence = f"{port} cannot be had: {error.strerror}; name another one, or none for any that is free"
        raise InputError.one(argument("port"), sentence) from error
    return made


@contextmanager
def serve_page(page: Page, listening: socket.socket) -> Iterator[str]:
    """Serve a page beside the block, which may not be left open for long after it has ended.

    Yields:
        the page's address.

    Raises:
        LabError: the server does not begin.
    """
    port, token = listening.getsockname()[1], secrets.token_urlsafe(24)
    connections = Connections()
    app: App = TokenMiddleware(page.app(), port, token, connections.mark_authenticated)
    config = uvicorn.Config(
        app, log_config=None, log_level="error", access_log=False, lifespan="on", ws="none", server_header=False,
        loop="asyncio", http=connections.protocol(), proxy_headers=False, backlog=BACKLOG, limit_concurrency=MAX_OPEN,
        timeout_graceful_shutdown=_ENDING, timeout_keep_alive=5,
    )  # fmt: skip
    server = uvicorn.Server(config)
    # Not in the main thread, which takes signals, see cli/interrupts.py.
    thread = threading.Thread(target=lambda: server.run([listening]), name="live page", daemon=True)
    thread.start()
    try:
        if not _wait_until_started(server, thread):
            raise LabError("the server of the live page did not begin")
        yield f"http://127.0.0.1:{port}/{token}/"
    finally:
        if page.actions is not None:
            page.actions.close()
        if page._loop is not None and thread.is_alive():
            page._loop.call_soon_threadsafe(page.hub.close)
        server.should_exit = True
        thread.join(2 * _ENDING)
        page.source.close()
        listening.close()


def _wait_until_started(server: uvicorn.Server, thread: threading.Thread) -> bool:
    waiting = threading.Event()
    for _ in range(int(_READY / 0.01)):
        if server.started or not thread.is_alive():
            break
        waiting.wait(0.01)
    return server.started
