"""The two levels of detail: flits through virtual channels, or whole frames through switches that store them."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from testbed.base.errors import Problem
from testbed.dataplane.kernels.flits import run
from testbed.dataplane.kernels.flits_check import lost_flits, waiting_cycle
from testbed.engines.simulate.flit_network import Network, fabric_of, new_state
from testbed.engines.simulate.flit_point import Point, simulate
from testbed.engines.simulate.flit_settings import Settings, settings_problems
from testbed.engines.simulate.packet_network import PacketNetwork, TcpFrames
from testbed.engines.simulate.packet_point import simulate_orders, simulate_packets
from testbed.engines.simulate.packet_settings import PacketSettings, as_asked, fabric_problems, packet_problems
from testbed.planning import Plan


@dataclass(frozen=True, slots=True)
class Level:
    """A level of detail."""

    word: str  # what its result folders are called by
    problems: Callable[[Plan, Any, int], list[Problem]]  # what is wrong with settings for a plan and a number of seeds


@dataclass(frozen=True, slots=True)
class Runs:
    """What the runs of a simulation have in common."""

    asked: dict[str, object]  # settings as they are stored
    # one run, from load, seed, and a function that says whether to give up; None where it was given up
    one: Callable[[float, int, Callable[[], bool]], Point | None]
    warm: Callable[[], object]  # loads or compiles the kernels, before several threads ask for them


def _flit_problems(plan: Plan, settings: Settings, seeds: int) -> list[Problem]:
    del plan
    return settings_problems(settings, seeds)


def _packet_problems(plan: Plan, settings: PacketSettings, seeds: int) -> list[Problem]:
    links = plan.scenario.links
    found = packet_problems(settings, seeds)
    return found or fabric_problems(settings, plan.routes, links.rate, links.edge_rate)


FLIT = Level("simulate", _flit_problems)
PACKET = Level("packets", _packet_problems)


def level_of(settings: Settings | PacketSettings) -> Level:
    """The level that settings are of."""
    return PACKET if isinstance(settings, PacketSettings) else FLIT


def runs_of(plan: Plan, settings: Settings | PacketSettings) -> Runs:
    """Make what the runs start from, once.

    Raises:
        InputError: a run takes too much memory; says how much.
    """
    seed = plan.scenario.lab.seed
    if isinstance(settings, PacketSettings):
        frames = packet_network(plan, settings)
        quick = dataclasses.replace(settings, duration=0.02, warm_up=0.0, tie_orders=0)
        warm = dataclasses.replace(frames, settings=quick)
        return Runs(
            as_asked(settings),
            lambda load, seed, stopped: simulate_orders(frames, load, seed, stopped),
            lambda: simulate_packets(warm, 0.5, 0),
        )
    flits = Network.from_routes(plan.topology, plan.routes, settings, seed)
    return Runs(
        dataclasses.asdict(settings),
        lambda load, seed, stopped: simulate(flits, load, seed, stopped),
        lambda: _warm(flits),
    )


def packet_network(
    plan: Plan, settings: PacketSettings, edge_frame: int | None = None, tcp: TcpFrames | None = None
) -> PacketNetwork:
    """What packet-level runs of a plan start from; `edge_frame` and `tcp` as in PacketNetwork.from_routes().

    Raises:
        InputError: a run takes too much memory; says how much.
    """
    links = plan.scenario.links
    return PacketNetwork.from_routes(
        plan.topology, plan.routes, settings, links.rate, links.edge_rate, plan.scenario.lab.seed, edge_frame, tcp
    )


def _warm(network: Network) -> None:
    fabric = fabric_of(network, 0.5)
    state = new_state(network, fabric, 0)
    run(fabric, state, 0)
    waiting_cycle(fabric, state)
    lost_flits(fabric, state, network.settings.buffer)
