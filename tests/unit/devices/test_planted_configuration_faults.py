"""Faults planted in configurations and cabling: how many there are that `check` and `audit` find, each by a test."""

from __future__ import annotations

from tests.unit.devices import test_audit
from tests.unit.ui import test_check_command

WANTED = 40


def test_there_are_enough_of_them_and_no_two_are_alike():
    """Each is a case of a parametrised test that fails where it is not found."""
    found = [
        *(("check", *case) for case in test_check_command.CASES),
        *(("audit", name) for name in test_audit.FAULTS),
        *(("cabling", *case) for case in test_audit.CABLING_FAULTS),
    ]
    assert len(set(found)) == len(found) >= WANTED
    for test, cases in (
        (test_check_command.test_a_planted_fault_is_found, test_check_command.CASES),
        (test_audit.test_a_planted_fault_is_found_with_its_witness, test_audit.FAULTS),
        (test_audit.test_cabling_that_contradicts_itself, test_audit.CABLING_FAULTS),
    ):
        assert [mark.args[1] for mark in test.pytestmark if mark.name == "parametrize"] == [cases]
