"""A lab of modelled switches on a machine that has neither Open vSwitch nor Mininet."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

# Where this program looks, nothing in the places of their programs can be executed, and Mininet's package is empty.
_WITHOUT = """
for program in ovs-vswitchd ovsdb-server ovs-vsctl ovs-ofctl ovs-appctl ovs-dpctl mnexec mn ethtool; do
    for folder in $(echo "$PATH:/usr/sbin" | tr : ' '); do
        [ ! -e "$folder/$program" ] || mount --bind /dev/null "$folder/$program"
    done
done
mount -t tmpfs none /usr/lib/python3/dist-packages/mininet
exec "$@"
"""


@pytest.fixture
def run_without(tmp_path):
    def run(*words):
        command = ["unshare", "--mount", "sh", "-ec", _WITHOUT, "sh", sys.executable, "-m", "testbed", *words]
        return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=250)

    return run


@pytest.mark.long
def test_modelled_switches_run_without_open_vswitch_and_mininet(run_without, untouched):
    loads = 'workloads=[{"kind": "ping", "count": 2}, {"kind": "iperf3", "protocol": "udp", "seconds": 1}]'
    words = ("--engine", "realtime", "--set", loads, "--set", "lab.dilation=200", "--json")
    done = run_without("run", "ring4", *words)
    assert done.returncode in (0, 3), done.stdout + done.stderr
    assert {sample["metric"] for sample in json.loads(done.stdout)["samples"]} >= {"rtt_mean", "goodput"}
    refused = run_without("run", "ring4")
    assert refused.returncode == 2
    assert "no lab of Open vSwitch can be built; one of modelled switches can (engine: realtime)" in refused.stderr
