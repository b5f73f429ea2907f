"""Figures that answers are held against: computed from what the exercise gives, never written down."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from testbed.base.errors import InputError
from testbed.dataplane.predict import Wires, fair_goodput, routed_ways, transport
from testbed.fabric.power import POWER_MODELS, fabric_watts
from testbed.fabric.routing.paths import channel_load
from testbed.fabric.traffic import flows
from testbed.planning.failures import failure_outlooks
from testbed.planning.summary import summary
from testbed.scenario.parameter_models import not_one_of
from testbed.ui.teaching.flood import on_links
from testbed.ui.teaching.student_folder import Work

Words = Mapping[str, str]


def figure(work: Work, asked: Words) -> float:
    """The figure that a block such as `{figure: plan, file: ring.yaml, key: vlans}` asks for."""
    kind = asked.get("figure")
    if kind not in [*FIGURES]:
        raise InputError.one("expect.figure", not_one_of(kind, [*FIGURES]))
    return FIGURES[str(kind)](work, asked)


def number_of(figures: Mapping[str, object], key: str) -> float:
    """A figure; of a list its length."""
    value = figures[key]
    value = len(value) if isinstance(value, list) else value
    assert isinstance(value, int | float)
    return float(value)


def _plan(work: Work, asked: Words) -> float:
    """A key of what `testbed plan --format json` prints of a scenario of the exercise."""
    return number_of(summary(work.given_plan(asked["file"])), asked["key"])


def _own_plan(work: Work, asked: Words) -> float:
    """Likewise of a scenario of the student's, once it is another than that which was given."""
    if work.is_unmodified(asked["file"]):
        raise InputError.one("", "is as it was given; do its task first", asked["file"])
    return number_of(summary(work.plan(asked["file"])), asked["key"])


def _rate(work: Work, asked: Words) -> float:
    """Mbit/s of a link between switches."""
    return work.given_plan(asked["file"]).scenario.links.rate / 1e6


def _links(work: Work, asked: Words) -> float:
    return float(work.wiring(asked["file"]).link_count)


def _copies(work: Work, asked: Words) -> float:
    """Copies of a broadcast of h1 on links in a hop, switches as they are delivered."""
    return float(on_links(work.given_switches("", asked["wiring"]), 0, int(asked["hop"])))


def _unused_links(work: Work, asked: Words) -> float:
    """Links of a plan that carry nothing either way."""
    plan = work.given_plan(asked["file"])
    load = channel_load(plan.topology, plan.routes).reshape(-1, 2).sum(axis=1)
    return float((load == 0).sum())


def _outlook(work: Work, asked: Words) -> float:
    """A figure of what the only event of the only load of a scenario leaves; of lists their length."""
    plan = work.given_plan(asked["file"])
    (found,) = failure_outlooks(plan)[0]
    return number_of(found.as_dict(plan.topology), asked["key"])


def _fair(work: Work, asked: Words) -> float:
    """Mbit/s that the flow `pair` gets when all flows of a pattern share every link max–min fairly, UDP."""
    rates = fair_shares(work, asked["file"], asked["pattern"])
    return rates[asked["pair"]]


def _watts(work: Work, asked: Words) -> float:
    """Watts of a fabric with all links on."""
    wiring = work.wiring(asked["file"])
    return float(np.sum(fabric_watts(wiring, POWER_MODELS[asked["model"]], ["1G"] * wiring.link_count)))


def _bound(work: Work, asked: Words) -> float:
    """Milliseconds below which no exchange of all with all ends: the busiest link, or what a host sends."""
    plan, size = work.given_plan(asked["file"]), float(asked["bytes"])
    topology = plan.topology
    busiest = max(summary(plan)["max_channel_load"], topology.host_count - 1)
    return float(busiest * size * 8 / plan.scenario.links.rate * 1e3)


FIGURES: dict[str, Callable[[Work, Words], float]] = {
    "plan": _plan,
    "own_plan": _own_plan,
    "rate": _rate,
    "links": _links,
    "copies": _copies,
    "unused_links": _unused_links,
    "outlook": _outlook,
    "fair": _fair,
    "watts": _watts,
    "bound": _bound,
}


def fair_shares(work: Work, file: str, pattern: str) -> dict[str, float]:
    """Mbit/s of each flow of a pattern by its name, `h1-h2`."""
    plan = work.given_plan(file)
    topology, rates = plan.topology, plan.scenario.links
    pairs = flows(pattern, topology, plan.scenario.lab.seed)
    if not pairs:
        raise InputError.one(file, f'"{pattern}" gives no flow')
    wires = Wires(topology, transport("udp", 1470), rates.rate, rates.edge_rate)
    found = fair_goodput(wires, pairs, routed_ways(topology, plan.routes, pairs))
    return {
        f"{topology.host_name(a)}-{topology.host_name(b)}": float(rate) / 1e6
        for (a, b), rate in zip(pairs, found, strict=True)
    }
