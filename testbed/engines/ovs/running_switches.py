"""A running lab on Open vSwitch, as those see it who look into its switches' rules or exchange them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from testbed.base.messages import FastPathEntries
from testbed.engines.session import Session


class RunningSwitches(Session, Protocol):
    """What only Open vSwitch can do; `LabClient` in `lab/control/client.py` is one. All of it raises LabError."""

    def flows(self) -> dict[str, list[str]]:
        """The rules of all running switches by switch."""

    def groups(self) -> dict[str, list[str]]:
        """Their groups by switch."""

    def short_cuts(self) -> FastPathEntries:
        """What the fast path holds."""

    def change_switches(self, rules: Mapping[str, Sequence[str]], groups: Mapping[str, Sequence[str]]) -> None:
        """Change rules and groups by switch, as lines of `ovs-ofctl`."""

    def trace(self, frames: Sequence[tuple[str, str]]) -> list[str]:
        """What `ofproto/trace` says of frames, each of a switch and a flow."""

    def learn(self, vlans: Sequence[int], *, datagrams: bool) -> str:
        """Let switches learn where hosts are."""

    def reach(self) -> list[tuple[str, str]]:
        """Pairs of hosts that do not reach each other."""

    def shaping_problems(self) -> list[str]:
        """Rates and queues that are not as they were built."""
