"""Numbers that follow from plans, wires and the papers' own tables, without anything being run."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from testbed.base.errors import InputError, Problem
from testbed.dataplane.predict import transport
from testbed.dataplane.predict.wire_overhead import UDP_HEADERS
from testbed.fabric.power import POWER_MODELS, fabric_watts
from testbed.fabric.traffic import flows
from testbed.fabric.verify.limits import SWITCH_MODELS
from testbed.planning import Plan, make_plan
from testbed.planning.rates import fair_rates
from testbed.planning.summary import summary
from testbed.scenario import find_scenario, load_scenario
from testbed.scenario.read_scenario import scenario_of_blocks

_BLOCK = {"wanted": "a block as in a scenario"}
ModelName = Literal["PC5324", "PC6224", "PC6248", "SF-420"]


@dataclass(frozen=True, slots=True)
class PaperFabric:
    """A fabric as scenarios describe it; see docs/planning.md."""

    scenario: str = ""  # file or name; then `set` and no block
    set: tuple[str, ...] = ()  # keys of the scenario that are replaced, as `--set` takes them
    # block of a scenario, and so are the following
    topology: Mapping[str, Any] | None = field(default=None, metadata=_BLOCK)
    routing: Mapping[str, Any] | None = field(default=None, metadata=_BLOCK)
    faults: Mapping[str, Any] | None = field(default=None, metadata=_BLOCK)
    links: Mapping[str, Any] | None = field(default=None, metadata=_BLOCK)
    assignment: Mapping[str, Any] | None = field(default=None, metadata=_BLOCK)


def proved_plan(fabric: PaperFabric, drawing: int = 0) -> Plan:
    """Plan the fabric and prove the plan.

    Args:
        fabric: one of its topology and faults may have `seed: drawing`.
        drawing: what that stands for.

    Raises:
        InputError: the fabric is none, or described twice.
        VerificationError: the plan breaks an invariant.
    """
    names = ("topology", "routing", "faults", "links", "assignment")
    blocks = {name: _fill_seed(block, drawing) for name in names if (block := getattr(fabric, name)) is not None}
    if bool(fabric.scenario) == bool(blocks):
        raise InputError([Problem("how", "should have scenario, the name of one, or topology and other blocks")])
    if fabric.scenario:
        plan = make_plan(load_scenario(find_scenario(fabric.scenario), fabric.set))
    else:
        plan = make_plan(scenario_of_blocks(dict[str, object](blocks), "papers"))
    plan.require_proof()
    return plan


def _fill_seed(block: Mapping[str, Any], drawing: int) -> dict[str, Any]:
    return {key: drawing if (key, value) == ("seed", "drawing") else value for key, value in block.items()}


@dataclass(frozen=True, slots=True)
class PlanFigure(PaperFabric):
    """A figure of a proved plan, as `testbed plan --format json` prints it."""

    figure: Literal["vlans", "switches", "switch_links", "mean_switches_on_path", "max_channel_load", "hosts"] = "vlans"


def plan_figure(options: PlanFigure) -> tuple[float, ...]:
    """The figure."""
    return (float(summary(proved_plan(options))[options.figure]),)


@dataclass(frozen=True, slots=True)
class FairGoodput(PaperFabric):
    """Max–min fair goodput of the flows of a pattern, from paths, rates and headers alone."""

    pattern: str = "all_to_all"  # of all flows at once
    protocol: Literal["udp", "tcp"] = "udp"  # `udp` with `payload` bytes a datagram, or `tcp` in full segments
    payload: int = 1470  # bytes
    of: Literal["each", "host"] = "each"  # all flows together, or the mean of one


def fair_goodput(options: FairGoodput) -> tuple[float, ...]:
    """Mbit/s of a flow, or of a host that sends, mean over all."""
    plan = proved_plan(options)
    pairs = flows(options.pattern, plan.topology, plan.scenario.lab.seed)
    rates = fair_rates(plan, pairs, transport(options.protocol, options.payload)) / 1e6
    senders = len({source for source, _ in pairs})
    return (float(rates.mean() if options.of == "each" else rates.sum() / senders),)


@dataclass(frozen=True, slots=True)
class Wire:
    """Goodput through one switch at 1 Gbit/s."""

    protocol: Literal["udp", "tcp"]  # `udp` or `tcp`
    tagged: bool = False  # whether frames carry a VLAN tag on the link that has most of them


def wire_goodput(options: Wire) -> tuple[float, ...]:
    """Mbit/s of full frames of 1,500 bytes of IP."""
    return (1000 / transport(options.protocol, 1500 - UDP_HEADERS).cost(tagged=options.tagged),)


@dataclass(frozen=True, slots=True)
class SwitchWatts:
    """Power of one switch with all its ports at 1 Gbit/s, by the rows of Koibuchi et al. 2011, Table 2."""

    model: ModelName  # of the switch
    figure: Literal["watts", "ports_percent"] = "watts"  # its watts, or the percentage that the ports take


def switch_watts(options: SwitchWatts) -> tuple[float, ...]:
    """The figure."""
    model = POWER_MODELS[options.model]
    of_ports = SWITCH_MODELS[options.model].ports * model.port["1G"]
    whole = model.base + of_ports
    return (whole if options.figure == "watts" else 100 * of_ports / whole,)


@dataclass(frozen=True, slots=True)
class OwnNumbers:
    """What follows from numbers of a paper by multiplying and dividing."""

    product: tuple[float, ...]
    over: tuple[float, ...] = ()  # what that is divided by


def own_numbers(options: OwnNumbers) -> tuple[float, ...]:
    """The quotient."""
    return (math.prod(options.product) / math.prod(options.over),)


@dataclass(frozen=True, slots=True)
class MostSaved(PaperFabric):
    """The most that switching parallel links off can save: all but one of each pair of switches."""

    model: ModelName = "PC5324"  # of all switches


def most_saved(options: MostSaved) -> tuple[float, ...]:
    """Percent of the power of all switches, their hosts' ports counted."""
    wiring = proved_plan(options).wiring
    model = POWER_MODELS[options.model]
    left = ["1G" if plane == 0 else "off" for plane in wiring.plane.tolist()]
    after, before = (fabric_watts(wiring, model, speeds).sum() for speeds in (left, ["1G"] * wiring.link_count))
    return (float(100 * (1 - after / before)),)


@dataclass(frozen=True, slots=True)
class Bound(PaperFabric):
    """Static bound of the throughput under uniform traffic, by the paths alone."""

    drawings: int = 1  # of networks or dead links drawn at random, one value each


def static_bound(options: Bound) -> tuple[float, ...]:
    """Share of a link's rate that each host can send, of each drawing; 1 at most."""
    from testbed.experiments.analyse.channel_load import ALL_TO_ALL, load_of  # noqa: PLC0415 - compiles kernels

    found = []
    for drawing in range(1, options.drawings + 1):
        plan = proved_plan(options, drawing)
        load = load_of(plan.topology, plan.routes, ALL_TO_ALL, 1)
        found.append(min(load.saturation or math.inf, 1.0))
    return tuple(np.asarray(found, dtype=np.float64).tolist())


@dataclass(frozen=True, slots=True)
class SegmentChanges(PaperFabric):
    """What the death of a link takes when only its segment changes, over what it takes when all is computed anew."""

    figure: Literal["switches", "entries"] = "switches"  # switches that need another entry, or those entries
    every: int = 8  # each which link dies, one at a time, from the first
    drawings: int = 10  # of networks, one value each


def segment_changes(options: SegmentChanges) -> tuple[float, ...]:
    """Sum over the links locally, over the sum anew, of each drawing."""
    from testbed.fabric.routing.segment_tables import first_step, next_step  # noqa: PLC0415 - compiles kernels

    found = []
    for drawing in range(1, options.drawings + 1):
        topology = proved_plan(options, drawing).topology
        whole = first_step(topology, 0)
        local = anew = 0
        for link in range(0, topology.link_count, options.every):
            alive = np.ones(topology.link_count, dtype=np.bool_)
            alive[link] = False
            step = next_step(topology, whole, alive)
            local += step.switches if options.figure == "switches" else step.entries
            anew += step.anew_switches if options.figure == "switches" else step.anew_entries
        found.append(local / anew)
    return tuple(found)
