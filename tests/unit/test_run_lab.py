"""What a run does around its loads, without a lab."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

from testbed.errors import LabError
from testbed.run import in_session
from testbed.run.in_session import Fabric
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


def fabric_of(lab):
    return Fabric(lambda plan, progress: lab, lambda engine, lab: {"engine": engine})


def folder_of():
    return SimpleNamespace(path=Path("results/x.incomplete"), write_plan=lambda environment: None)


def test_a_lab_that_breaks_ends_and_the_folder_is_named(lab):
    told: list[str] = []
    with (
        pytest.raises(LabError, match=r"^s3 is gone\nwhat was stored until then: results/x\.incomplete$"),
        in_session.checked(fabric_of(lab), plan_of("mesh", sizes=[2]), folder_of(), told.append),
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
        in_session.checked(fabric_of(lab), plan_of("mesh", sizes=[2]), folder_of(), lambda text: None),
    ):
        pytest.fail("a load would run")
    assert lab.ended


def test_an_interrupt_ends_the_lab_and_stays_what_it_is(lab):
    with (
        pytest.raises(KeyboardInterrupt),
        in_session.checked(fabric_of(lab), plan_of("mesh", sizes=[2]), folder_of(), lambda text: None),
    ):
        raise KeyboardInterrupt
    assert lab.ended


def test_what_carries_the_frames_says_what_it_is_before_paths_are_checked(lab):
    stored: list[dict[str, object]] = []
    folder = folder_of()
    folder.write_plan = stored.append
    with in_session.checked(fabric_of(lab), plan_of("mesh", sizes=[2]), folder, lambda text: None) as session:
        assert session is lab
    assert stored == [{"engine": "ovs"}]
