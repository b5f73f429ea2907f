"""Plans of hosts that tag as files: each dialect takes them, `check` reads them back, and hosts have their scripts."""

from __future__ import annotations

import os
import subprocess

import pytest

from testbed.devices.check import CheckOptions, check_files
from testbed.devices.export import DIALECTS, Options, export_plan
from testbed.planning import Plan, make_plan
from tests.fabrics import scenario_of


def tagged(extra: str = "") -> Plan:
    return make_plan(
        scenario_of(f"topology: {{kind: mesh, sizes: [3, 2]}}\nassignment: {{kind: host_tagged{extra}}}\n")
    )


def files_of(plan: Plan, dialect: str) -> dict[str, str]:
    return export_plan(plan, Options(dialect, flow_control="keep")).files


@pytest.mark.parametrize("dialect", DIALECTS)
def test_every_dialect_takes_hosts_that_tag_and_is_read_back(dialect):
    plan = tagged()
    found = check_files(plan, files_of(plan, dialect), CheckOptions(dialect=dialect))
    assert (found.settings, found.walks) == ((), ())


def test_a_port_that_has_lost_a_vlan_is_found_with_its_pairs():
    plan = tagged()
    files = files_of(plan, "csv")
    vlan = str(plan.vlans.vlan_ids[0])
    rows = files["ports.csv"].splitlines()
    place = next(n for n, row in enumerate(rows) if ",h1," in row)
    files["ports.csv"] = "\n".join([*rows[:place], rows[place].replace(vlan, "", 1), *rows[place + 1 :]]) + "\n"
    found = check_files(plan, files, CheckOptions(dialect="csv"))
    assert found.settings
    assert any(one.source == "h1" for one in found.walks)


def test_a_script_sends_to_each_host_by_the_vlan_of_their_path(tmp_path):
    plan = tagged(", untagged: [h6]")
    files = files_of(plan, "linux-bridge-iproute2")
    scripts = {name: text for name, text in files.items() if name.startswith("hosts/")}
    assert sorted(scripts) == [f"hosts/h{host}.sh" for host in range(1, 6)]
    # Carried out with programs that only say what they are asked for.
    for program in ("ip", "modprobe", "sysctl"):
        stand_in = tmp_path / program
        stand_in.write_text(f'#!/bin/sh\n[ "$1 $2" = "link show" ] && exit 1\necho {program} "$@"\n')
        stand_in.chmod(0o755)
    said = subprocess.run(
        ["sh", "-s", "nic0"], input=scripts["hosts/h2.sh"], capture_output=True, text=True, check=True,
        env={**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"},
    ).stdout.splitlines()  # fmt: skip
    for vlan in plan.vlans.vlan_ids.tolist():
        assert f"ip link add link nic0 name nic0.{vlan} type vlan id {vlan}" in said
    for other in (0, 2, 3, 4, 5):
        vlan = plan.vlans.host_tag(1, other)
        assert f"ip route replace 10.0.0.{other + 1}/32 dev nic0.{vlan} src 10.0.0.2" in said
        mac = f"02:00:00:00:00:0{other + 1}"
        assert f"ip neighbour replace 10.0.0.{other + 1} lladdr {mac} dev nic0.{vlan} nud permanent" in said
    assert "h6" in files["README.md"]
    assert "hosts/" in files["README.md"]
