"""The status of a controller, or of what stands in its place, as JSON over HTTP, for programs on the same machine."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from testbed.base.limits import PLAN_VALUES, WHOLE_FILE, parse_json, scaled_limit, too_much

Answer = Callable[[dict[str, Any]], Any]
# Of HTTP: what was asked for is no request, or it is refused.
WRONG, REFUSED = 400, 409
_PATIENCE = 10.0  # s for which nothing of a request may come


def serve_status(
    address: tuple[str, int], routes: Mapping[tuple[str, str], Answer], codes: Mapping[type[Exception], int]
) -> ThreadingHTTPServer:
    """Answer requests in threads of their own.

    Args:
        address: host and port; only the loopback of the lab, or of the machine, is a sane choice.
        routes: (method, path) → function of the request's JSON body that gives the answer's.
        codes: WRONG or REFUSED for what else than ValueError, KeyError and TypeError a function may raise.
    """
    answered: tuple[type[Exception], ...] = (*codes, ValueError, KeyError, TypeError)

    class Handler(BaseHTTPRequestHandler):
        timeout = _PATIENCE

        def _respond(self) -> None:
            found = routes.get((self.command, self.path))
            if found is None:
                known = ", ".join(f"{method} {path}" for method, path in routes)
                self._send(404, {"error": f"there is no {self.command} {self.path}; there is {known}"})
                return
            try:
                self._send(200, found(self._read_request()))
            except answered as error:
                code = next((code for kind, code in codes.items() if isinstance(error, kind)), WRONG)
                self._send(code, {"error": str(error) if code == REFUSED else f"not a request: {error}"})

        def _read_request(self) -> dict[str, Any]:
            length = int(self.headers.get("Content-Length") or 0)
            if not 0 <= length <= scaled_limit(WHOLE_FILE):
                raise ValueError(too_much(f"a body of {length:,} bytes", scaled_limit(WHOLE_FILE), "bytes"))
            body = self.rfile.read(length)
            asked = parse_json(body, most=PLAN_VALUES) if body else {}
            if not isinstance(asked, dict):
                raise TypeError("it should be a JSON object")
            return asked

        do_GET = do_POST = _respond  # noqa: N815 - names of the base class

        def _send(self, code: int, answer: Any) -> None:
            text = json.dumps(answer).encode()
            self.send_response(code)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        def log_message(self, format: str, *args: Any) -> None:
            pass  # a status that is asked for every second is no news

    server = ThreadingHTTPServer(address, Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server
