"""Who may ask: this machine's own browser, with the token, from the page itself.

The server listens on 127.0.0.1 alone. That does not keep other pages in the same browser from sending requests here, or
from giving this address a name of theirs (DNS rebinding). So a request must name this very host and port, must come
from no other page, and must have the token, which only who started the program has seen.
"""

from __future__ import annotations

import hmac
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from starlette.responses import PlainTextResponse

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

# No script but our own, from nowhere else; nobody else may show the page, read it, or learn its address.
_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "no-store",
}


class TokenMiddleware:
    """Lets only requests pass that may be answered, without the token in their path.

    Args:
        app: what answers them.
        port: that the server listens on.
        token: first part of every path.
        authenticated: is given the client of each request that has passed.
    """

    def __init__(
        self, app: App, port: int, token: str, authenticated: Callable[[tuple[str, int] | None], None] = lambda _: None
    ) -> None:
        self._app, self._token, self._authenticated = app, token, authenticated
        self._hosts = {f"{name}:{port}" for name in ("127.0.0.1", "localhost")}
        self._origins = {f"http://{host}" for host in self._hosts}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or refuse it."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":
            return  # there are no web sockets here
        problem = self._problem(scope)
        if problem:
            await PlainTextResponse(f"{problem}\n", 403, headers=_HEADERS)(scope, receive, send)
            return
        self._authenticated(scope.get("client"))
        path = "/" + scope["path"].lstrip("/").partition("/")[2]

        async def send_guarded(message: MutableMapping[str, Any]) -> None:
            if message["type"] == "http.response.start":
                more = [(name.lower().encode(), value.encode()) for name, value in _HEADERS.items()]
                message["headers"] = [*message.get("headers", ()), *more]
            await send(message)

        await self._app({**scope, "path": path, "raw_path": path.encode()}, receive, send_guarded)

    def _problem(self, scope: Scope) -> str:
        headers: dict[str, str] = {}
        for name, value in scope["headers"]:
            key = name.decode("latin-1").lower()
            if key in headers and key in ("host", "origin"):
                return "a request names one host and one origin"
            headers[key] = value.decode("latin-1")
        if headers.get("host") not in self._hosts:
            return "this page is only for this machine, under the address that the program has printed"
        if headers.get("origin", next(iter(self._origins))) not in self._origins:
            return "requests from other pages are not answered"
        if headers.get("sec-fetch-site", "none") not in ("none", "same-origin"):
            return "requests from other pages are not answered"
        token = str(scope["path"]).lstrip("/").partition("/")[0]
        if not hmac.compare_digest(token.encode(), self._token.encode()):
            return "the address lacks the token; open the one that the program has printed"
        return ""
