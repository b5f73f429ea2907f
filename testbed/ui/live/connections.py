"""Connections to the live page, so that nobody without its token can keep those who have it from being served.

Every program on the machine can connect. A connection is a viewer's once a request on it has carried the token. Until
then it has a few seconds, and of too many such connections the oldest is closed: a browser sends its whole request
as soon as it is connected, so none of its is the oldest for long.
"""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol

HEADER_LIMIT = 5.0  # s in which a connection must have sent a request with the token
BACKLOG = 64  # connections that one turn of the event loop accepts
# A request is answered four turns after its connection was accepted, and is not closed until then.
MAX_UNAUTHENTICATED = 4 * BACKLOG
MAX_AUTHENTICATED = 200
MAX_OPEN = (
    2 * MAX_UNAUTHENTICATED + MAX_AUTHENTICATED
)  # also those that are being closed; beyond it requests are refused

_Client = tuple[str, int]


class Connections:
    """Those of one page, oldest first.

    `unauthenticated` are those on which no request has carried the token yet.
    """

    def __init__(self) -> None:
        self.unauthenticated: dict[_Client, asyncio.Transport] = {}

    def add_connection(self, client: _Client, transport: asyncio.Transport) -> None:
        """Take in a connection; closes the oldest unauthenticated one where there are too many."""
        self.unauthenticated[client] = transport
        while len(self.unauthenticated) > MAX_UNAUTHENTICATED:
            self.close(next(iter(self.unauthenticated)))

    def mark_authenticated(self, client: _Client | None) -> None:
        """Let a connection stay open, on which a request with the token has come."""
        if client is not None:
            self.unauthenticated.pop(client, None)

    def close(self, client: _Client) -> None:
        """Close a connection, unless it is authenticated."""
        transport = self.unauthenticated.pop(client, None)
        if transport is not None:
            transport.abort()

    def protocol(self) -> type[H11Protocol]:
        """What the server is to make of each connection."""
        connections = self

        class Counted(H11Protocol):
            def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
                super().connection_made(transport)
                if self.client is not None:
                    connections.add_connection(self.client, transport)
                    self._limit: Any = self.loop.call_later(HEADER_LIMIT, connections.close, self.client)

            def connection_lost(self, exc: Exception | None) -> None:
                if self.client is not None:
                    self._limit.cancel()
                    connections.unauthenticated.pop(self.client, None)
                super().connection_lost(exc)

        return Counted
