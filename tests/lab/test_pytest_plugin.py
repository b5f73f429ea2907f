"""The plugin's `lab` fixture, in a pytest run of its own."""

from __future__ import annotations

import pytest

from .leftovers import processes_of

pytest_plugins = ["pytester"]


@pytest.mark.long
def test_a_lab_stands_while_its_test_runs_and_ends_with_it(untouched, pytester, monkeypatch):
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    pytester.makepyfile(
        """
        from testbed.engines.lab.control.launch import labs

        SETTINGS = {"topology.switches": 3, "routing.kind": "updown", "lab.dilation": 100}
        seen = []

        def test_pings(lab):
            ring = lab("ring4", SETTINGS)
            seen.append(ring.core.namespaces.init)
            assert ring.unreachable() == []
            assert " 0% packet loss" in ring.host("h1").run(["ping", "-c", "1", "h3"]).stdout

        def test_it_is_gone():
            assert seen[0] not in {lab.init for lab in labs()}

        def test_that_fails(lab):
            ring = lab("ring4", SETTINGS)
            seen.append(ring.core.namespaces.init)
            assert ring.host("h1").run(["sh", "-c", "exit 3"]).exit_code == 0

        def test_that_is_gone_as_well():
            assert seen[1] not in {lab.init for lab in labs()}

        def test_a_scenario_that_is_none(lab):
            lab("rnig4")
        """
    )
    found = pytester.runpytest_subprocess("-p", "testbed.ui.pytest_plugin", "-p", "no:cacheprovider")
    found.assert_outcomes(passed=3, failed=2)
    found.stdout.fnmatch_lines(['*rnig4: no scenario of that name. Did you mean "ring4"?*'])
    assert not [
        command for command in processes_of(untouched).values() if "testbed.engines.lab.control.agent" in command
    ]


@pytest.mark.long
def test_what_the_machine_lacks_skips_or_fails_with_the_reason(pytester, monkeypatch):
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    pytester.makeconftest(
        """
        from testbed.experiments.run import open_vswitch as lab
        from testbed.base.errors import CapabilityError

        def lacking(scenario):
            raise CapabilityError("no Open vSwitch: no lab can be built; apt install openvswitch-switch")

        lab.require = lacking
        """
    )
    pytester.makepyfile("def test_pings(lab):\n    lab('ring4')\n")
    for required, outcome in (("0", {"skipped": 1}), ("1", {"failed": 1})):
        monkeypatch.setenv("TESTBED_REQUIRE_LAB", required)
        found = pytester.runpytest_subprocess("-p", "testbed.ui.pytest_plugin", "-p", "no:cacheprovider", "-rs")
        found.assert_outcomes(**outcome)
        found.stdout.fnmatch_lines(["*no Open vSwitch: no lab can be built; apt install openvswitch-switch*"])
