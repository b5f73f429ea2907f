"""The pytest plugin, in pytest runs of its own."""

from __future__ import annotations

from pathlib import Path

import pytest

from testbed.devices import Options, export_plan
from testbed.planning import make_plan
from tests.fabrics import scenario_of

pytest_plugins = ["pytester"]

IMPORT = "from testbed.ui.pytest_plugin import assert_delivered, assert_isolated, assert_deadlock_free, assert_vlans\n"


@pytest.fixture
def run(pytester, monkeypatch):
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")

    def tests(*lines: str):
        pytester.makepyfile(IMPORT + "\n".join(lines))
        return pytester.runpytest_subprocess("-p", "testbed.ui.pytest_plugin", "-p", "no:cacheprovider")

    return tests


@pytest.mark.slow
def test_a_proved_fabric_passes(run):
    found = run(
        "def test_all(fabric):",
        "    hall = fabric('ring4')",
        "    assert hall is fabric('ring4')",
        "    assert_delivered(hall)",
        "    assert_delivered(hall, ('h1', 'h2'))",
        "    assert_deadlock_free(hall)",
        "    assert_vlans(hall, {10, 11})",
        "    assert_vlans(hall, at_most=2)",
    )
    found.assert_outcomes(passed=1)


@pytest.mark.slow
def test_failures_have_the_witness(run):
    found = run(
        "def test_cycle(fabric):",
        "    assert_deadlock_free(fabric('ring5-deadlock'))",
        "def test_vlans(fabric):",
        "    assert_vlans(fabric('ring4'), {10, 12})",
        "def test_many(fabric):",
        "    assert_vlans(fabric('ring4'), at_most=1)",
        "def test_isolated(fabric):",
        "    assert_isolated(fabric('ring4'), ['h1'], ['h2', 'h3'])",
        "def test_unknown(fabric):",
        "    assert_delivered(fabric('ring4'), ('h1', 'h99'))",
        "def test_no_scenario(fabric):",
        "    fabric('rnig4')",
    )
    found.assert_outcomes(failed=6)
    found.stdout.fnmatch_lines(
        [
            "ring5-deadlock: can deadlock",
            "the channel dependency graph has a cycle: s1→s2 waits for *",
            "  witness: s1→s2, s2→s3, *",
            "ring4: other VLANs than expected: missing [[]12], besides [[]11]",
            "ring4: 2 VLANs, and 1 are allowed: [[]10, 11]",
            "ring4: not isolated: h1→h2, h1→h3, h2→h1, h3→h1",
            "ring4 has no host h99",
            'rnig4: no scenario of that name. Did you mean "ring4"?*',
        ]
    )


@pytest.mark.slow
def test_saved_configurations(run, pytester):
    made = export_plan(make_plan(scenario_of("topology: {kind: mesh, sizes: [3, 2]}")), Options("csv"))
    for name in ("saved", "broken"):
        (pytester.path / name).mkdir()
        for file, text in made.files.items():
            changed = text.replace("s1,3,s4,2,,10-11,,yes", "s1,3,s4,2,,10,,yes") if name == "broken" else text
            (pytester.path / name / file).write_text(changed)
    found = run(
        "def test_good(fabric):",
        "    assert_delivered(fabric('saved'))",
        "    assert_deadlock_free(fabric('saved'))",
        "def test_bad(fabric):",
        "    assert_delivered(fabric('broken'), ('h4', 'h1'))",
    )
    found.assert_outcomes(passed=1, failed=1)
    found.stdout.fnmatch_lines(
        ["broken: not delivered: h4→h1", "cut: 3 pairs h4→h1, *: a frame is dropped after s4:2*"]
    )


@pytest.mark.slow
def test_a_network_of_which_nothing_was_audited_proves_nothing(run, pytester):
    """Ports of hosts that are shut: no pair is left, and no assertion passes."""
    port = "interface GigabitEthernet1/0/{}\n shutdown\n"
    for name, ending in (("saved", ""), ("strange", "interface GigabitEthernet1/0/3\n switchport protected\n")):
        (pytester.path / name).mkdir()
        shut = port.format(1) + port.format(2)
        text = (
            f"no spanning-tree vlan 1-4094\n{shut if name == 'saved' else shut.replace('shutdown', '!')}{ending}end\n"
        )
        (pytester.path / name / "s1.txt").write_text(text)
        rows = "switch,port,peer,peer_port\ns1,Gi1/0/1,h1,\ns1,Gi1/0/2,h2,\n"
        (pytester.path / name / "cabling.csv").write_text(rows)
    asked = ("delivered(x)", "deadlock_free(x)", "loop_free(x)", "isolated(x, ['h1'], ['h2'])", "vlans(x, at_most=5)")
    found = run(
        "from testbed.ui.pytest_plugin import assert_loop_free",
        "import pytest",
        f"@pytest.mark.parametrize('asked', {asked!r})",
        "@pytest.mark.parametrize('name', ['saved', 'strange'])",
        "def test_all(fabric, name, asked):",
        "    x = fabric(name)",
        "    eval('assert_' + asked)",
        "def test_a_plan(fabric):",
        "    assert_loop_free(fabric('ring4'))",
    )
    found.assert_outcomes(failed=10, passed=1)
    found.stdout.fnmatch_lines(
        [
            "saved: nothing is proved",
            "no port that leads anywhere is in a VLAN, so no frame was followed",
            "the port of h1 carries nothing",
            "strange: nothing is proved",
            's1.txt line 7: GigabitEthernet1/0/3: "switchport protected" may decide which frames the port carries*',
        ]
    )


def test_pytest_finds_it():
    text = (Path(__file__).parents[3] / "pyproject.toml").read_text()
    assert '[project.entry-points.pytest11]\ntestbed = "testbed.ui.pytest_plugin"\n' in text
