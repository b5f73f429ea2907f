"""A bridge of this machine is compared with the plan, by the command of docs/real-switches.md."""

from __future__ import annotations

import subprocess
import sys

from testbed.planning import make_plan
from testbed.scenario import find_scenario, parse_scenario

from .bridges import bridges


def test_a_bridge_is_as_planned_until_a_vlan_is_taken_away():
    file = find_scenario("ring4")  # the smallest
    plan = make_plan(parse_scenario(file.read_text(encoding="utf-8"), str(file)))
    command = (sys.executable, "-m", "testbed", "check", "--bridge", "br0=s3", "--against", "ring4")
    with bridges(plan) as standing:
        assert "br0 matches ring4" in standing.run(2, *command)
        standing.run(2, "bridge", "vlan", "delete", "dev", "swp2", "vid", "11")
        entering = ["nsenter", f"--net=/proc/{standing.switch[2]}/ns/net", *command]
        done = subprocess.run(entering, capture_output=True, text=True, check=False)
    assert done.returncode == 1, done.stderr
    assert "s3" in done.stdout
    assert "VLAN 11" in done.stdout, done.stdout
