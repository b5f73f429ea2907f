"""What a lab's client and its agent say to each other arrives as it was, and nothing else is taken for it."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from testbed.base.errors import LabError
from testbed.base.messages import (
    ControllerStatus,
    Count,
    CpuShare,
    Disturbance,
    Disturbed,
    LinkChange,
    LoadRequest,
    Observation,
    Output,
    Process,
    Snapshot,
    Status,
    SwitchState,
)
from testbed.engines.lab.build_order import StormReading
from testbed.engines.lab.control import operations as ask
from testbed.engines.lab.control.build import build_order
from testbed.engines.lab.control.json_lines import decode, encode
from testbed.engines.lab.control.launch import _environment
from testbed.engines.lab.control.operation import OPERATIONS, ControllerOperation, Operation, PartwiseOperation
from tests.fabrics import plan_of

_SNAPSHOT = Snapshot(1.5, 1e9, (Count(10, 1), Count(20, 2)), (Count(0, 0),), 5, 1, 9, None, {"switches": (0.25, 1.0)})
_LOAD = LoadRequest(
    processes=(Process("a", "h1", ("true",), 5201, {"A": "b"}, only_env=True), Process("b", None, ())),
    limit=3.5,
    window=(0.5, 2.0),
    departures=0.5,
    timeline=(Disturbance(False, (0, 1), (2,), (3,), 1.5),),
)
_OBSERVATION = Observation(
    {"a": Output(0, "x\n", "")}, _SNAPSHOT, _SNAPSHOT, ("a",), 2.0, None, 3.25, (Disturbed(1.0, 2.0, "no"),), "r.npz",
)  # fmt: skip


@pytest.mark.parametrize(
    "value",
    [
        _LOAD,
        _OBSERVATION,
        build_order(plan_of("torus", sizes=[3, 3])),
        ask.SetSpeeds({3: 0.5}),
        ask.Disturb(Disturbance(up=True, links=(LinkChange(3, 1e8, None, 0.01, reset=True),))),
        ask.SetRates(1e6, 1e7, None, 50.0),
        ask.WatchStorm(1.0, 0.2, {"s1": ["a"]}),
        Status("idle", 1, 2, 3, "kernel", None, None),
        ControllerStatus({"s1": SwitchState("gone", since=3.0)}, off=("s1–s2",), slower={"s1–s2": 0.5}),
    ],
    ids=lambda value: type(value).__name__,
)
def test_records_arrive_as_they_were(value):
    assert decode(type(value), json.loads(encode(value))) == value


@pytest.mark.parametrize(
    ("request_type", "answer", "value"),
    [
        (ask.SetRates, {"processors": 0.5, "quota_us": 5000, "period_us": 10000}, CpuShare(0.5, 5000, 10000)),
        (ask.SetRates, None, None),
        (ask.SetSpeeds, None, None),
        (ask.Reach, [["h1", "h2"]], [("h1", "h2")]),
        (ask.DumpFlows, {"s1": ["x"]}, {"s1": ["x"]}),
        (ask.WatchStorm, [{"seconds": 0, "frames": 3, "busiest": 1}], [StormReading(0.0, 3, 1)]),
        (ask.Learn, "raw", "raw"),
    ],
)
def test_answers_have_the_type_of_their_request(request_type, answer, value):
    found = decode(request_type.answer_type(), answer)
    assert (type(found), found) == (type(value), value)


def test_each_operation_has_a_name_and_is_carried_out():
    declared = {kind for kind in vars(ask).values() if isinstance(kind, type) and issubclass(kind, Operation)}
    declared -= {Operation, PartwiseOperation, ControllerOperation}
    assert set(OPERATIONS.values()) == declared
    assert [kind.__name__ for kind in declared if kind.carry_out is Operation.carry_out] == []


@pytest.mark.parametrize(
    ("kind", "raw", "sentence"),
    [
        (CpuShare, {"processors": 0.5, "quota_us": 1}, "^CpuShare came without period_us$"),
        (CpuShare, {"processors": 0.5, "quota_us": 1, "period_us": 2, "more": 3}, "where .* pass CpuShare$"),
        (
            CpuShare,
            {"processors": "0.5", "quota_us": 1, "period_us": 2},
            r"^'0\.5' came .* <class 'float'>$",
        ),
        (CpuShare, {"processors": True, "quota_us": 1, "period_us": 2}, "^'True' came"),
        (CpuShare, None, "^'None' came"),
        (Count, {"bytes": 1.0, "frames": 1}, r"^'1\.0' came"),
        (Disturbance, {"up": True, "channels": ["a"]}, "^'a' came"),
        (tuple[str, str], ["a"], "pass 2 values$"),
    ],
)
def test_what_is_no_such_record_is_refused(kind, raw, sentence):
    with pytest.raises(LabError, match=sentence):
        decode(kind, raw)


def test_a_controller_may_say_more_than_is_asked():
    raw = {"switches": {"s1": {"state": "in step", "since": 1, "later": 2}}, "in_step": 1, "mood": "fine"}
    assert decode(ControllerStatus, raw, more_keys=True) == ControllerStatus({"s1": SwitchState("in step", 1.0)}, 1)
    with pytest.raises(LabError, match="pass ControllerStatus"):
        decode(ControllerStatus, raw)


def test_the_agent_starts_light():
    """Each of these takes longer to import than all that an agent needs."""
    heavy = (
        "numpy",
        "numba",
        "pydantic",
        "yaml",
        "http.client",
        "testbed.planning",
        "testbed.workloads",
        "testbed.base.model",
    )
    script = f"import sys, testbed.engines.lab.control.agent; print([name for name in {heavy} if name in sys.modules])"
    assert (
        subprocess.run(
            [sys.executable, "-c", script], capture_output=True, text=True, check=True, env=_environment()
        ).stdout
        == "[]\n"
    )
