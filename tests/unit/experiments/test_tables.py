"""Tables of one thing in two layers have the same keys, and a line is all that an engine takes."""

from __future__ import annotations

from pathlib import Path

import pytest

from testbed.base.errors import CapabilityError, InputError, Problem
from testbed.experiments.run import open_vswitch
from testbed.experiments.run.engine import Engine, Prerequisites
from testbed.experiments.run.engines import engine_named, run_scenario
from testbed.experiments.run.loads.one_load import RUNNERS, load_labels
from testbed.planning import make_plan
from testbed.scenario.engines import ENGINES
from testbed.scenario.workloads import WORKLOADS
from tests.fabrics import scenario_of

PLAN = make_plan(scenario_of("topology: {kind: mesh, sizes: [2]}\nworkloads: [{kind: ping}]\n"))


def test_every_engine_runs_and_every_load_has_a_runner():
    assert all(isinstance(engine_named(name), Engine) for name in ENGINES)
    assert set(RUNNERS) == set(WORKLOADS)


def test_labels_are_parameters():
    for kind in WORKLOADS.values():
        assert set(kind.labels) <= set(kind.spec.__dataclass_fields__)


@pytest.mark.parametrize(("missing", "error", "sentence"), [
    (Prerequisites((Problem("lab", "is wrong", "a.yaml"),), ("no QEMU",)), InputError, "a.yaml: lab: is wrong"),
    (
        Prerequisites((), ("no QEMU; get it", "no image; build it")),
        CapabilityError,
        "no QEMU; get it\nno image; build it",
    ),
])  # fmt: skip
def test_what_an_engine_lacks_is_told_before_it_starts_anything(monkeypatch, missing, error, sentence):
    class Lacking(Engine):
        def find_missing(self, plan, progress):
            return missing

        def measure(self, plan, results, progress):
            pytest.fail("it was started")

    monkeypatch.setattr(open_vswitch, "OpenVSwitchEngine", Lacking)
    with pytest.raises(error) as raised:
        run_scenario(PLAN, Path("results"), lambda text: None)
    assert str(raised.value) == sentence


def test_a_load_is_told_by_its_labels():
    (load,) = PLAN.scenario.workloads
    assert load_labels(load) == {"pattern": "complement"}
