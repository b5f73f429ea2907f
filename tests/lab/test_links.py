"""Links of running labs that change: by hand, in the middle of a load, and where the kernel cannot."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from functools import partial

import pytest

from testbed.base.errors import LabError
from testbed.base.messages import Disturbance, LinkChange, LinkState
from testbed.base.model import host_ip
from testbed.engines.lab.control import registry
from testbed.engines.lab.control.build import build_lab
from testbed.engines.lab.control.client import LabClient
from testbed.engines.local_machine.probe import NETEM, capabilities
from testbed.engines.ovs.netem import MISSING
from testbed.experiments.run.checks.fidelity import Verdict
from testbed.experiments.run.engines import run_scenario
from testbed.results import load_run
from testbed.results.samples import load_changes
from testbed.results.telemetry import load_telemetry
from tests.unit.ui.test_cli_surface import typed

from .conftest import answers, execute, plan_of


def netem() -> bool:
    return next(one.present for one in capabilities() if one.name == NETEM)


@pytest.fixture
def lab() -> Iterator[LabClient]:
    """Two switches, one link, which is slowed down by 100."""
    with build_lab(plan_of("topology: {kind: mesh, sizes: [2]}\nlab: {dilation: 100}")) as made:
        yield made


def changed(lab: LabClient, **words) -> dict[int, LinkState]:
    lab.disturb(Disturbance(up=True, links=(LinkChange(0, **words),)))
    assert lab.shaping_problems() == []
    return lab.link_states()


def rates(lab: LabClient) -> set[str]:
    """What the kernel shapes both ends of the link to."""
    shown = execute(lab, "sh", "-c", "tc class show dev s1-eth2; tc class show dev s2-eth2")
    return {line.split(" rate ")[1].split()[0] for line in shown.splitlines() if line.startswith("class htb")}


@pytest.mark.vm
def test_rates_are_of_the_real_world_and_are_told(lab):
    plan = lab.plan()
    assert lab.link_states() == {}
    assert rates(lab) == {"10Mbit"}
    assert changed(lab, rate=5e8) == {0: LinkState(rate=5e8)}
    assert rates(lab) == {"5Mbit"}
    assert [one.sentence for one in lab.deviations(plan)] == [
        "s1-s2 was changed from outside the scenario and is not as planned: rate 500 Mbit/s"
    ]
    lab.disturb(Disturbance(up=False, channels=(0,)))
    assert lab.link_states() == {0: LinkState(rate=5e8, up=False)}
    assert not answers(lab, "h1", 1)
    assert not answers(lab, "h2", 0)
    lab.disturb(Disturbance(up=True, channels=(0, 1)))
    assert changed(lab, reset=True) == {}
    assert rates(lab) == {"10Mbit"}
    assert lab.deviations(plan) == []
    assert lab.reach() == []
    with pytest.raises(LabError, match=r"there is no link 1: they have the numbers 0 to 0"):
        lab.disturb(Disturbance(up=True, links=(LinkChange(1, rate=1e8),)))


@pytest.mark.vm
def test_delay_and_loss_or_why_not(lab):
    """A kernel without netem says so, and nothing has changed; one with it does it in real-world figures."""
    if not netem():
        with pytest.raises(LabError) as caught:
            changed(lab, rate=5e8, delay=1e-4)
        assert str(caught.value) == f"that could not be carried out: {MISSING}"
        assert (lab.link_states(), rates(lab), lab.shaping_problems()) == ({}, {"10Mbit"}, [])
        return
    quick = round_trip(lab)
    # 100 µs each way are 10 ms at dilation 100.
    assert changed(lab, rate=5e8, delay=1e-4) == {0: LinkState(rate=5e8, delay=1e-4)}
    assert rates(lab) == {"5Mbit"}
    assert 20 <= round_trip(lab) < 20 + quick + 15
    assert changed(lab, loss=1.0) == {0: LinkState(rate=5e8, delay=1e-4, loss=1.0)}
    assert not answers(lab, "h1", 1)
    assert not answers(lab, "h2", 0)
    assert changed(lab, reset=True) == {}
    assert lab.reach() == []
    assert round_trip(lab) < 20


def round_trip(lab: LabClient) -> float:
    """The shortest of ten, in ms."""
    text = execute(lab, "ping", "-q", "-n", "-c", "10", "-i", "0.05", host_ip(1), host="h1")
    return float(text.split(" = ")[1].split("/")[0])


@pytest.mark.long
def test_the_command_changes_and_tells(lab):
    name, plan = f"links-{os.getpid()}", lab.plan()
    registry.register(name, lab.namespaces, plan.scenario.name, plan.digest)
    entry = registry.find(name)
    link = partial(typed, "link", name)
    try:
        as_planned = "s1-s2: up, rate 1 Gbit/s (as planned), delay 0 s, loss 0 %\n"
        assert link("s1-s2")[1] == as_planned
        told = link("s2-s1", "--rate", "500M")[1]
        assert told == "s1-s2: up, rate 500 Mbit/s (1 Gbit/s planned), delay 0 s, loss 0 %\n"
        _, down, said = link("s1-eth2", "--down", "--format", "json")
        assert json.loads(down) == {
            "schema_version": 1, "lab": name, "link": "s1-s2", "up": False,
            "planned_rate": 1e9, "rate": 5e8, "delay": 0.0, "loss": 0.0,
        }  # fmt: skip
        assert "no lab.controller: segment_manager moves paths away" in said
        assert link("s1-s2", "--up", "--reset")[1] == as_planned
        for words, sentences in (
            (("s1-s3", "--down"), 'WHERE: there is no link, port or host "s1-s3". Did you mean "s1-s2"?'),
            (("h1", "--down"), "WHERE: h1 is a host; of its link nothing can be changed, name one between switches"),
            (("s1-s2", "--down", "--up"), "--down: cannot go with --up; say one of them"),
            (
                ("s1-s2", "--rate", "5", "--loss", "1"),
                '--rate: should be a rate above 0 with its unit, such as 100M or "100 Mbit/s", not "5"\n'
                '--loss: should be a percentage from 0% to 100%, such as 1%, not "1"',
            ),
            (
                ("s1-s2", "--rate", "5M"),
                "--rate: a lab link would run at 50 kbit/s; below 100 kbit/s nothing can be measured, so use 10 Mbit/s "
                "or more",
            ),
            *([] if netem() else [(("s1-s2", "--loss", "1%"), MISSING)]),
        ):
            assert link(*words) == (2, "", f"{sentences}\n")
        assert link("s1-s2")[1] == as_planned
    finally:
        registry.forget(entry)


@pytest.mark.long
@pytest.mark.alone
def test_a_load_runs_while_a_link_changes(tmp_path):
    """Counted in its telemetry, stored, drawn, undone, and no reason for the verdict to call the run void."""
    plan = plan_of(
        "topology: {kind: mesh, sizes: [2]}\nlab: {dilation: 100}\n"
        "workloads:\n- {kind: iperf3, protocol: udp, omit: 1, seconds: 7, repeats: 2, timeline: ["
        "{at: 3 s, link: s1-s2, rate: 200M}, {at: 6 s, link: s1-s2, reset: true}]}"
    )
    outcome = run_scenario(plan, tmp_path, lambda text: None)
    assert outcome.verdict is not Verdict.FAIL, outcome.reasons
    assert not any("changed" in reason or "rates" in reason for reason in outcome.reasons)
    first, second = load_changes(outcome.folder, "1")
    assert [event["event"] for event in first["events"]] == [
        "at 3 s: link s1-s2 rate 200 Mbit/s", "at 6 s: link s1-s2 reset",
    ]  # fmt: skip
    times = [[event["at"] for event in repeat["events"]] for repeat in (first, second)]
    assert all(3 <= slow < 6 <= back for slow, back in times)
    counted = load_telemetry(outcome.folder, "1")
    assert counted is not None
    links = counted.port_channel >= 0
    for repeat, (slow, back) in enumerate(times):

        def carried(start: float, end: float, repeat: int = repeat) -> float:
            """Bit/s that each way of the link carried between two times."""
            some = (counted.repeat == repeat) & (counted.time > start) & (counted.time <= end)
            return 8 * float(counted.sent_bytes[some][:, links].sum()) / 2 / (end - start)

        assert carried(1.5, 2.8) == pytest.approx(9.5e6, rel=0.15)
        assert carried(slow + 0.5, back - 0.2) == pytest.approx(2e6, rel=0.15)
        assert carried(back + 0.3, 7.8) > 5e6
    assert {sample.metric for sample in load_run(outcome.folder).samples} >= {"goodput", "loss"}
    assert "link s1-s2 rate 200 Mbit/s; " in (outcome.folder / "report.html").read_text()
