"""`links.rates`: single links slower than the others, in plan, prediction, lab and model; refused elsewhere."""

from __future__ import annotations

import numpy as np
import pytest

from testbed.base.errors import InputError
from testbed.dataplane.predict import transport
from testbed.engines.lab.control.build import build_order
from testbed.engines.simulate.packet_settings import PICOSECONDS
from testbed.engines.simulate.switch_model import live_model
from testbed.experiments.regulate.run import require_regulable
from testbed.planning import Plan, make_plan
from testbed.planning.rates import channel_rates, fair_rates
from testbed.planning.store import plan_from_json, plan_to_json
from testbed.scenario import parse_scenario
from testbed.scenario.read_scenario import as_dict, scenario_of_blocks

RING = "topology: {kind: ring, switches: 3}\nrouting: {kind: updown}\n"
RATES = "links: {rate: 1G, rates: {s1-s2: 100M, s3-eth2: 500 Mbit/s}}\n"


def plan_of(text: str) -> Plan:
    return make_plan(parse_scenario(text, "test.yaml"))


def rate_of(plan: Plan, name: str) -> list[float]:
    wiring, rates = plan.wiring, np.broadcast_to(channel_rates(plan), 2 * plan.wiring.link_count)
    pair = set(name.split("-"))
    return [
        float(rates[channel]) for channel in range(len(rates)) if set(wiring.channel_name(channel).split("→")) == pair
    ]


def test_links_have_their_rate_in_both_directions_or_that_of_all():
    plan = plan_of(RING + RATES)
    told = {name: rate_of(plan, name) for name in ("s1-s2", "s2-s3", "s1-s3")}
    by_port = next(name for name in ("s2-s3", "s1-s3") if told[name] == [5e8, 5e8])
    assert told == {"s1-s2": [1e8, 1e8], "s2-s3": [1e9, 1e9], "s1-s3": [1e9, 1e9]} | {by_port: [5e8, 5e8]}
    assert plan.digest == plan_of(RING).digest  # what is forwarded is the same


def test_predictions_laboratories_and_models_have_them():
    plan = plan_of(RING + RATES)
    pairs, wire = [(0, 1), (1, 0)], transport("udp", 1470)
    slow, quick = fair_rates(plan, pairs, wire), fair_rates(plan_of(RING), pairs, wire)
    assert slow == pytest.approx(quick / 10)
    link = next(n for n in range(3) if set(plan.wiring.channel_name(2 * n).split("→")) == {"s1", "s2"})
    assert build_order(plan_of(f"{RING}{RATES}lab: {{dilation: 10}}")).speeds[link] == pytest.approx(0.1)
    live = live_model(plan_of(f"{RING}{RATES}engine: realtime"))
    assert live.live.byte_time[2 * link] == round(8 * PICOSECONDS / 1e8)


def test_they_are_stored_and_come_back():
    plan = plan_of(RING + RATES)
    again = plan_from_json(plan_to_json(plan))
    assert again.speeds.tolist() == plan.speeds.tolist()
    assert again.scenario.links == plan.scenario.links
    assert scenario_of_blocks(as_dict(plan.scenario), "test.yaml").links == plan.scenario.links
    assert "rates" not in as_dict(plan_of(RING).scenario)["links"]


@pytest.mark.parametrize(
    ("rates", "sentence"),
    [
        ("{s1-s4: 100M}", 'links.rates.s1-s4: there is no link, port or host "s1-s4"'),
        ("{h1: 100M}", "links.rates.h1: is the link of a host, which has links.host_rate"),
        ("{s1-s2: 100M, s2-s1: 50M}", "links.rates.s2-s1: is the same link as s1-s2; remove one"),
        ("{s1-s2: 2G}", "links.rates.s1-s2: is 2 Gbit/s and links.rate 1 Gbit/s; make links.rate that of the fastest"),
        ("{s1-s2: 100}", "links.rates.s1-s2: 100 is not a rate; write a number and a unit"),
        ("[s1-s2]", "links.rates: should be a block such as {s1-s2: 100 Mbit/s}"),
    ],
)
def test_what_they_cannot_be_is_a_sentence(rates, sentence):
    with pytest.raises(InputError) as caught:
        plan_of(f"{RING}links: {{rates: {rates}}}")
    assert str(caught.value.problems[0]).startswith(f"test.yaml: {sentence}")


def test_what_takes_all_links_for_alike_refuses_them():
    with pytest.raises(InputError, match=r"links.rates: gives single links a rate, and links.aggregate: true makes"):
        plan_of(f"{RING}links: {{aggregate: true, rates: {{s1-s2: 100M}}}}")
    with pytest.raises(InputError, match=r"links.rates: is for engine: ovs or vm or realtime only, not simulate"):
        plan_of(f"{RING}{RATES}engine: simulate")
    with pytest.raises(InputError, match=r"links.rates: regulation takes all links between switches for alike"):
        require_regulable(plan_of(RING + RATES))
    with pytest.raises(InputError, match=r"lab.dilation: a lab link would run at 50 kbit/s"):
        plan_of(f"{RING}links: {{rates: {{s1-s2: 100M}}}}\nlab: {{dilation: 2000}}")
