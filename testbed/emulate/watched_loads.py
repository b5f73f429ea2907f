"""Loads of a lab, with what is counted and what dies while they run."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from testbed.emulate import loads
from testbed.emulate.disturb import Timeline, carry_out
from testbed.emulate.fabric import HOST_INTERFACE, Fabric
from testbed.emulate.names import port_interface
from testbed.emulate.openvswitch import OpenVSwitch
from testbed.errors import LabError

if TYPE_CHECKING:
    from testbed.emulate.telemetry import Telemetry

RECORD = "telemetry.npz"

Progress = Callable[[str], None]


class WatchedLoads:
    """Operations of the agent that run loads, or disturb them.

    Args:
        fabric: returns the network, or raises LabError where it is not built or its switches died.
        ovs: the lab's Open vSwitch.
        groups: returns the file by which processes join the share of their host, by host.
        folder: of the lab, which gets what was counted.

    Attributes:
        operations: name → function of the request, as in Agent.
    """

    def __init__(
        self, fabric: Callable[[], Fabric], ovs: OpenVSwitch, groups: Callable[[], dict[str, str]], folder: Path
    ) -> None:
        self._fabric = fabric
        self._ovs = ovs
        self._groups = groups
        self._folder = folder
        self._telemetry: Telemetry | None = None
        self.operations: dict[str, Callable[[dict[str, Any], Progress], Any]] = {
            "load": self.load,
            "disturb": self.disturb,
        }

    def load(self, request: dict[str, Any], progress: Progress) -> dict[str, Any]:
        """Run the processes of a load; with `telemetry` (s between readings) count beside it, into a file.

        With `timeline`, see disturb.Timeline, things die and come back meanwhile; `disturbed` says when they did.
        """
        del progress
        fabric = self._fabric()
        timeline = Timeline(request.get("timeline") or (), self._switch)
        try:
            result = self._counted(request, fabric, timeline)
        finally:
            disturbed = timeline.end()
        return {**result, "disturbed": disturbed}

    def disturb(self, request: dict[str, Any], progress: Progress) -> dict[str, Any]:
        """Let one thing die or come back now: `up`, `interfaces`, `switches`."""
        del progress
        done = carry_out(request, self._switch)
        if "error" in done:
            raise LabError(f"that could not be carried out: {done['error']}")
        return done

    def _counted(self, request: dict[str, Any], fabric: Fabric, timeline: Timeline) -> dict[str, Any]:
        if not request.get("telemetry"):
            return self._run(request, fabric, timeline.start)
        telemetry = self._need_telemetry()
        with telemetry.recording(
            request["telemetry"], self._folder / RECORD, request.get("departures"), fabric.port_rates()
        ) as started:

            def both() -> None:
                started()
                timeline.start()

            result = self._run(request, fabric, both)
        return {**result, "record": RECORD, "no_matrix": telemetry.no_matrix}

    def _run(self, request: dict[str, Any], fabric: Fabric, started: Callable[[], None]) -> dict[str, Any]:
        ovs = self._ovs
        return loads.run_load(request, fabric.holders, ovs.check_alive, ovs.pids, started, self._groups())

    def _switch(self, name: str, up: bool) -> None:
        """Kill a switch, or start it again."""
        fabric = self._fabric()
        (fabric.start_switch if up else fabric.kill_switch)(self._ovs, name)

    def _need_telemetry(self) -> Telemetry:
        """Return what counts beside loads; made with the first load that wants it."""
        if self._telemetry is None:
            # It needs numpy, without which a lab stands a tenth of a second sooner.
            from testbed.emulate.telemetry import Telemetry  # noqa: PLC0415

            fabric = self._fabric()
            edge = [port_interface(host["switch"], host["port"]) for host in fabric.order["hosts"]]
            self._telemetry = Telemetry(list(fabric.port_rates()), edge, fabric.holders, HOST_INTERFACE)
        return self._telemetry
