"""Flows that Open vSwitch keeps beside its rules: how those of daemons on this machine are taken out."""

from __future__ import annotations

import json
import socket
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

_LIMIT = 1.0  # s for all daemons together; one that answers later has its flows looked at meanwhile
_PURGE = json.dumps({"id": 0, "method": "revalidator/purge", "params": []}).encode()


def forget_flows(folder: Path) -> bool:
    """Take all flows out of the datapaths: the next frame of each is looked up in the rules.

    A flow outlives its rules by ten seconds without frames. Of rules that were removed it says that frames are to be
    dropped, also when the same rules are there again, until a revalidator has looked at it.

    Args:
        folder: has the control sockets of the daemons, as ovs-appctl uses them. A daemon that has ended has no flows.

    Returns:
        Whether all that run have done so.
    """
    until = time.monotonic() + _LIMIT
    with ExitStack() as stack:
        asked = []
        for path in sorted(folder.glob("ovs-vswitchd*.ctl")):
            one = stack.enter_context(socket.socket(socket.AF_UNIX))
            one.settimeout(_LIMIT)
            try:
                one.connect(str(path))
                one.sendall(_PURGE)
            except (ConnectionError, FileNotFoundError):  # it has ended
                continue
            except OSError:
                return False
            asked.append(one)
        return all(_answer(one, until) for one in asked)


def _answer(one: socket.socket, until: float) -> bool:
    """Whether a daemon says that it has done what it was asked."""
    said = b""
    while (left := until - time.monotonic()) > 0:
        one.settimeout(left)
        try:
            more = one.recv(4096)
        except OSError:
            return False
        said += more
        try:
            answer: Any = json.loads(said)
        except ValueError:
            if more:
                continue
            return False
        return isinstance(answer, dict) and answer.get("error") is None
    return False
