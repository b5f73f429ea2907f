"""Ports of modelled switches that are down, and switches that were killed; links that lose what they carry follow."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import NamedTuple

import numpy as np

from testbed.base.model import Bools
from testbed.engines.lab.build_order import BuildOrder
from testbed.engines.lab.hosts.interface_names import KILLED
from testbed.engines.realtime.shared_memory import attach, write


class KilledSwitches(NamedTuple):
    """What others than the lab's process 1 want to know, in a file of its own."""

    switches: Bools  # (S,) whether a switch has been killed


class Ports:
    """The ends of all links.

    Args:
        order: as which the lab is built.
        folder: of the lab.
    """

    def __init__(self, order: BuildOrder, folder: Path) -> None:
        number = {name: place for place, name in enumerate(order.switches)}
        ends = [number[switch] for link in order.links for switch, _ in link.ends]
        self._source = np.array(ends, dtype=np.int32)  # (C,) switch that sends into a channel
        self._of_host = np.array([number[host.switch] for host in order.hosts], dtype=np.int32)
        self._down = np.zeros(len(self._source), dtype=np.bool_)  # (C,) the port that sends into a channel
        self._host_down = np.zeros(len(self._of_host), dtype=np.bool_)
        file = folder / KILLED
        write(file, KilledSwitches(np.zeros(len(number), dtype=np.bool_)))
        self._killed = attach(file, KilledSwitches).switches

    def set(self, channels: Collection[int], hosts: Collection[int], *, up: bool) -> None:
        """Take ports that send into channels, and those with hosts, down or up."""
        self._down[list(channels)] = not up
        self._host_down[list(hosts)] = not up

    def kill(self, switch: int, *, up: bool) -> None:
        """Let a switch die, or live again."""
        self._killed[switch] = not up

    @property
    def killed_switches(self) -> list[int]:
        """Switches that are dead."""
        found: list[int] = np.flatnonzero(self._killed).tolist()
        return found

    def dead_links(self) -> Bools:
        """(K,) links of the model with a port that is down or a dead switch: they carry nothing either way."""
        dead = self._down | self._killed[self._source]
        of_links = np.repeat(dead.reshape(-1, 2).any(axis=1), 2)
        of_hosts = self._host_down | self._killed[self._of_host]
        found: Bools = np.concatenate([of_links, of_hosts, of_hosts])
        return found
