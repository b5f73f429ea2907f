"""What carries the frames of a lab, as its agent and its fabric see it; `openvswitch` is one."""

from __future__ import annotations

import socket
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Protocol


class SwitchBackend(Protocol):
    """Switches that obey OpenFlow rules, as processes inside the lab's namespaces; see OpenVSwitch for each."""

    datapath: str
    folder: Path  # with their management sockets

    @property
    def shares(self) -> list[list[str]]:
        """Switches of each process."""

    @property
    def pids(self) -> list[int]:
        """Of these processes, in the same order."""

    @property
    def killed_switches(self) -> list[str]:
        """Switches whose process kill() has ended, and restart() has not started since."""

    def choose_datapath(self, wanted: str) -> str:
        """Settle `datapath`: `auto`, or one that must work here."""

    def start(
        self,
        shares: Sequence[Sequence[str]] = ...,
        *,
        stock: bool = ...,
        order: Sequence[str] = ...,
        flows: Sequence[int] = ...,
        entries: Mapping[str, int] | None = ...,
    ) -> None:
        """Start a process a share of the switches."""

    def stop(self) -> None:
        """End all processes."""

    def check_alive(self) -> None:
        """Raise LabError, with the reason, if a process has ended that was not killed by kill()."""

    def version(self) -> str:
        """Of the program."""

    def add_bridges(self) -> None:
        """Make the switches, without ports."""

    def add_ports(self, ports: Sequence[tuple[str, str, int]]) -> None:
        """Add ports: switch, interface, port number."""

    def prepare_sockets(self, ports: Mapping[str, int], frames: int) -> None:
        """Let the switches hold `frames` frames, and not hear what they send; `ports` has one port a switch."""

    def each_packet_socket(self, bridges: Collection[str], change: Callable[[socket.socket], None]) -> None:
        """Apply a change to each packet socket of the processes that have some switches."""

    def spanning_tree_problems(self) -> list[str]:
        """What forwards by itself, as read back; there must be nothing."""

    def set_controllers(self, targets: Sequence[str]) -> None:
        """Have every switch connect to these controllers."""

    def install(self, rules: Mapping[str, Sequence[str]]) -> None:
        """Replace the rules of switches."""

    def install_groups(self, groups: Mapping[str, Sequence[str]]) -> None:
        """Install groups, before the rules that name them."""

    def change(self, rules: Mapping[str, Sequence[str]], groups: Mapping[str, Sequence[str]]) -> None:
        """Change rules and groups; returns when frames go by them."""

    def dump(self, bridges: Sequence[str], *, counters: bool = ...) -> dict[str, list[str]]:
        """Rules of the running ones among some switches, a line each."""

    def flush_statistics(self) -> None:
        """Return when the round has ended in which the counters of rules take over what was forwarded."""

    def forget_flows(self) -> None:
        """Look frames up in the rules anew from now on, whatever was found there before."""

    def dump_groups(self, bridges: Sequence[str]) -> dict[str, list[str]]:
        """Groups of switches, a line each."""

    def trace(self, frames: Sequence[tuple[str, str]]) -> list[str]:
        """What each (switch, flow) would become, as text."""

    def kill(self, bridge: str) -> None:
        """End the process of a switch, which must have one of its own."""

    def restart(self, bridge: str, ports: Mapping[str, int], frames: int) -> None:
        """Start it again, without rules; further arguments as of prepare_sockets()."""
