"""What a lab's process 1 is started with."""

from __future__ import annotations

import subprocess
import sys

import pytest

from testbed.engines.lab.control import launch


@pytest.mark.skipif(sys.version_info >= (3, 12), reason="Python has no distutils of its own from 3.12 on")
def test_the_agent_does_without_setuptools():
    pytest.importorskip("mininet")
    code = "import sys, testbed.engines.lab.control.agent as _, testbed.engines.lab.hosts.mininet_network as _; "
    code += "print('mininet.node' in sys.modules, 'setuptools' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=launch._environment()
    )
    assert done.stdout == "True False\n"


def test_a_lab_of_modelled_switches_needs_no_mininet():
    code = "import sys; sys.modules['mininet'] = None; import testbed.engines.lab.control.agent as _; "
    code += "import testbed.engines.realtime.model_network, testbed.engines.realtime.process; print('built')"
    environment = {**launch._environment(), "NUMBA_DISABLE_JIT": "1"}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, env=environment)
    assert done.stdout == "built\n", done.stderr


def test_the_agent_loads_nothing_of_the_planner_that_takes_time():
    code = "import sys, testbed.engines.lab.control.agent as _; "
    code += "print({'numba', 'numpy', 'testbed.dataplane.predict'} & set(sys.modules))"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=launch._environment()
    )
    assert done.stdout == "set()\n"


def test_the_agent_finds_this_package_and_the_callers_variables(monkeypatch):
    monkeypatch.setenv("PATH", "/mine")
    monkeypatch.setenv("NPB_DIR", "/opt/npb")
    environment = launch._environment()
    assert environment["PATH"] == "/mine:/usr/local/sbin:/usr/sbin:/sbin:/usr/bin:/bin"
    assert environment["NPB_DIR"] == "/opt/npb"
