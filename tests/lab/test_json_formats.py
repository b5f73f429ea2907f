"""What the commands of labs print as JSON conforms to what is published."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.json_formats import conforms

_TESTBED = [sys.executable, "-m", "testbed"]


def test_a_lab_from_up_to_down(untouched, tmp_path):
    name = f"json-{os.getpid()}"
    (tmp_path / "two.yaml").write_text(
        "topology: {kind: mesh, sizes: [2]}\nlab: {dilation: 100}\nworkloads: [{kind: ping, count: 1}]\n"
    )

    def printed(command: str, *words: str) -> dict[str, Any]:
        argv = [*_TESTBED, command, *words, "--json"]
        done = subprocess.run(argv, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.returncode in (0, 3), done.stderr
        return conforms(command, done.stdout)

    printed("up", "two.yaml", "--name", name)
    try:
        assert printed("status", name)["labs"][0]["lab"] == name
        printed("link", name, "s1-s2")
        printed("switch", name, "s1")
        with subprocess.Popen([*_TESTBED, "exec", name, "h1", "--", "ping", "-c", "40", "-i", "0.1", "h2"]) as ping:
            printed("capture", name, "s1-s2", "--count", "4")
            assert printed("watch", name, "--every", "0.5")["flows"]
            ping.wait()
        assert Path(tmp_path, printed("load", name)["results"]).is_dir()
        assert not printed("watch", name, "--every", "0.1")["flows"]
    finally:
        ended = printed("down", name)
    assert [one["lab"] for one in ended["ended"]] == [name]
    printed("run", "two.yaml")
    printed("storm", "--seconds", "0.5")
