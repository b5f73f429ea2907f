"""The segment manager of a model: a program that sees what has died, and puts other tables into the model.

    python -m testbed.engines.realtime.manager_program --plan PLAN --dilation 20 --status-port 8080

The model is in the folder of the plan. It answers as a controller does, and ends with the lab.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TypedDict

import numpy as np

from testbed.base.errors import LabError, TestbedError
from testbed.base.http_status import REFUSED, serve_status
from testbed.base.model import Bools
from testbed.base.units import TimeScale
from testbed.dataplane.kernels.packets_state import PacketModel
from testbed.engines.lab.hosts.interface_names import KILLED, MODEL
from testbed.engines.realtime.installer import ModelInstaller
from testbed.engines.realtime.port_state import KilledSwitches
from testbed.engines.realtime.shared_memory import attach
from testbed.planning import Plan
from testbed.planning.failover.segment_manager import ManagerStatus, SegmentManager
from testbed.planning.prove_stored import read_stored

# sampling interval, s at which links carry nothing.
_LOOK = 0.002


class _SwitchStatus(TypedDict):
    state: str
    since: float


class ModelStatus(ManagerStatus):
    """A messages.ControllerStatus as plain data."""

    plan: str
    scenario: str
    switches: dict[str, _SwitchStatus]
    in_step: int
    rate: float


class ModelManager:
    """A segment manager and the model that it looks after.

    Args:
        plan: proved.
        folder: of the lab.
        memory: file that holds the manager's state, so that a restart finds it.
        dilation: links run at their rate divided by this.
    """

    def __init__(self, plan: Plan, folder: Path, memory: Path, dilation: float) -> None:
        topology, scenario = plan.topology, plan.scenario
        self._plan, self._began = plan, time.time()
        self._rate = TimeScale(dilation).lab_rate(scenario.links.rate)
        self._model = attach(folder / MODEL, PacketModel)
        self._killed = attach(folder / KILLED, KilledSwitches).switches
        self._seen: Bools = np.zeros(0, dtype=np.bool_)
        routing = (scenario.routing_kind, scenario.routing)
        self.manager = SegmentManager(topology, (plan.routes, plan.vlans, plan.digest), routing, memory)
        self.manager.take_up()
        self._installer = ModelInstaller(folder, self._model, topology, self.manager.now)
        self.manager.begin(self._installer)

    def watch(self) -> None:
        """Look again and again what has died or come back."""
        while True:
            self.look()
            time.sleep(_LOOK)

    def look(self) -> None:
        """Look once."""
        now = np.concatenate([self._killed, self._model.live.down])
        if np.array_equal(now, self._seen):
            return
        heard, self._seen = time.monotonic(), now
        with self.manager.state:
            self._report(now[: len(self._killed)], now[len(self._killed) :])
            self.manager.react(heard)

    def _report(self, killed: Bools, down: Bools) -> None:
        topology, tracker = self._plan.topology, self.manager.tracker
        channels, hosts = len(topology.channel_source), topology.host_count
        to, by_host = down[:channels], down[channels : channels + hosts] | down[channels + hosts :]
        tracker.dead = set(np.flatnonzero(killed).tolist())
        tracker.down = {
            *zip(topology.channel_source[to].tolist(), topology.out_port[to].tolist(), strict=True),
            *zip(topology.host_switch[by_host].tolist(), topology.host_port[by_host].tolist(), strict=True),
        }

    def status(self) -> ModelStatus:
        """What is going on."""
        topology, said = self._plan.topology, self.manager.status()
        states: dict[str, _SwitchStatus] = {
            topology.switch_name(switch): {"state": "gone" if dead else "in step", "since": self._began}
            for switch, dead in enumerate(self._killed.tolist())
        }
        return {
            "plan": self._plan.digest,
            "scenario": self._plan.scenario.name,
            "switches": states,
            "in_step": sum(state["state"] == "in step" for state in states.values()),
            "rate": self._rate,
            **said,
            "problem": said["problem"] or self._installer.problem,
        }

    def dilate(self, request: Mapping[str, float]) -> dict[str, float]:
        """Links run at the plan's rate divided by `dilation` from now on; nothing here depends on it."""
        self._rate = TimeScale(float(request["dilation"])).lab_rate(self._plan.scenario.links.rate)
        return {"rate": self._rate}


def _refuse_other_plans(request: object) -> None:
    del request
    raise LabError("the segment manager makes its own tables from what is alive; use lab.controller: none for others")


def main() -> int:
    """Get ready, serve, watch."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--plan", type=Path, required=True)
    parser.add_argument("--dilation", type=float, required=True)
    parser.add_argument("--status-port", type=int, required=True)
    said = parser.parse_args()
    try:
        plan = read_stored(said.plan)
        plan.require_proof()
        plan.require_tables()
        model = ModelManager(plan, said.plan.parent, Path(f"{said.plan}.state"), said.dilation)
    except TestbedError as error:
        print(error, file=sys.stderr)
        return 2
    serve_status(
        ("127.0.0.1", said.status_port),
        {
            ("GET", "/"): lambda request: model.status(),
            ("POST", "/plan"): _refuse_other_plans,
            ("POST", "/dilation"): model.dilate,
        },
        {TestbedError: REFUSED},
    )
    model.watch()
    return 0


if __name__ == "__main__":
    sys.exit(main())
