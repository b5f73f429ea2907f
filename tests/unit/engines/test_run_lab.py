"""What a run does around its loads, without a lab."""

from __future__ import annotations

import dataclasses
import errno
from pathlib import Path
from types import SimpleNamespace

import pytest

from testbed.base.errors import LabError
from testbed.base.messages import Facts
from testbed.engines.ovs import bpf, first_hop
from testbed.experiments.run import in_session, realtime
from testbed.experiments.run import open_vswitch as ovs
from testbed.experiments.run.in_session import SessionEngine
from testbed.planning.rates import at_dilation
from tests.fabrics import plan_of


class StandIn:
    """A lab that answers nothing and notes its end."""

    facts = SimpleNamespace()
    ended = False

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.ended = True


@pytest.fixture
def lab(monkeypatch):
    monkeypatch.setattr(in_session, "check_paths", lambda plan, lab: None)
    return StandIn()


def engine_of(lab):
    class EngineOfOneLab(SessionEngine):
        def find_missing(self, plan, progress):
            raise NotImplementedError

        def open_fabric(self, plan, progress):
            return lab

        def describe_environment(self, lab):
            return {"engine": "ovs"}

    return EngineOfOneLab()


def folder_of():
    return SimpleNamespace(path=Path("results/x.incomplete"), write_plan=lambda environment: None)


def test_a_lab_that_breaks_ends_and_the_folder_is_named(lab):
    told: list[str] = []
    with (
        pytest.raises(LabError, match=r"^s3 is gone\nwhat was stored until then: results/x\.incomplete$"),
        engine_of(lab).open_checked(plan_of("mesh", sizes=[2]), folder_of(), told.append),
    ):
        raise LabError("s3 is gone")
    assert lab.ended
    assert told == ["checking the path of every pair"]


def test_paths_that_are_not_the_plans_are_told_with_the_folder(lab, monkeypatch):
    def wrong(plan, lab):
        raise LabError("the lab is not what the plan says")

    monkeypatch.setattr(in_session, "check_paths", wrong)
    with (
        pytest.raises(LabError, match=r"^the lab is not what the plan says\nwhat was stored until then: results/x"),
        engine_of(lab).open_checked(plan_of("mesh", sizes=[2]), folder_of(), lambda text: None),
    ):
        pytest.fail("a load would run")
    assert lab.ended


def test_an_interrupt_ends_the_lab_and_stays_what_it_is(lab):
    with (
        pytest.raises(KeyboardInterrupt),
        engine_of(lab).open_checked(plan_of("mesh", sizes=[2]), folder_of(), lambda text: None),
    ):
        raise KeyboardInterrupt
    assert lab.ended


def test_what_carries_frames_says_what_it_is_before_paths(lab):
    stored: list[dict[str, object]] = []
    folder = folder_of()
    folder.write_plan = stored.append
    with engine_of(lab).open_checked(plan_of("mesh", sizes=[2]), folder, lambda text: None) as session:
        assert session is lab
    assert stored == [{"engine": "ovs"}]


def facts_of(**others):
    asked = dict.fromkeys((field.name for field in dataclasses.fields(Facts)), ())
    return Facts(**{**asked, "controller": None, "cpu_share": None, "pace": "", **others})


def test_results_say_what_the_switches_are():
    session = SimpleNamespace(facts=facts_of(datapath="userspace", version="3.1.0"))
    told = ovs.OpenVSwitchEngine().describe_environment(session)
    assert (told["open_vswitch"], told["datapath"], "switches" in told) == ("3.1.0", "userspace", False)
    session = SimpleNamespace(facts=facts_of(datapath="model", version="testbed 0.9"))
    told = realtime.RealtimeEngine().describe_environment(session)
    assert (told["switches"], told["datapath"], "open_vswitch" in told) == ("model, testbed 0.9", "model", False)


@pytest.mark.parametrize(("pace", "told"), [
    ("", {}), ("SCHED_FIFO 10 on processor 3", {"pace": "SCHED_FIFO 10 on processor 3"}),
])  # fmt: skip
def test_results_say_how_a_model_keeps_pace(pace, told):
    plan = at_dilation(plan_of("mesh", sizes=[2]), 10.0)
    facts = in_session.lab_facts(plan, None, SimpleNamespace(facts=facts_of(pace=pace)))
    assert {key: value for key, value in facts.items() if key == "pace"} == told


def test_it_is_said_where_sockets_wait_for_queues_of_switches(monkeypatch):
    def refuse(*arguments):
        raise OSError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(bpf, "load", refuse)
    assert first_hop.copy_at(["s1-eth1"]) == "Operation not permitted"
    sentence = (
        "TCP loses too few frames, since hosts' sockets wait for queues of switches, too: Operation not permitted"
    )
    facts = facts_of(why_slow="", tsq_backpressure_reason="Operation not permitted")
    said: list[str] = []
    ovs.say_what_lacks(facts, said.append)
    assert said == [sentence]
    assert ovs.of_facts("ovs", facts)["host_sockets"] == sentence
    assert "host_sockets" not in ovs.of_facts("ovs", facts_of(tsq_backpressure_reason=""))
