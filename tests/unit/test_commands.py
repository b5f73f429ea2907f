"""Commands and processes of a lab, and how they fail."""

from __future__ import annotations

import subprocess
import time

import pytest

from testbed.emulate.commands import first_line
from testbed.errors import LabError


@pytest.mark.parametrize(("script", "line"), [("echo ready; exec sleep 60", b"ready\n"), ("exit 1", b"")])
def test_the_first_line_of_a_process_is_waited_for(script, line):
    with subprocess.Popen(["sh", "-c", script], stdout=subprocess.PIPE) as process:
        assert first_line(process, "the shell", 30.0) == line
        process.kill()


def test_a_process_that_says_nothing_is_named():
    began = time.monotonic()
    with subprocess.Popen(["sleep", "60"], stdout=subprocess.PIPE) as process:
        with pytest.raises(LabError, match=r"^the sleeper has not answered in 0\.2 s$"):
            first_line(process, "the sleeper", 0.2)
        process.kill()
    assert 0.2 <= time.monotonic() - began < 30
