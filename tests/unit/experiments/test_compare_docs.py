"""The example of docs/comparing.md is a sweep file that this program reads."""

from __future__ import annotations

import re
from pathlib import Path

from testbed.experiments.sweep.read_sweep import parse_sweep

TEXT = (Path(__file__).parents[3] / "docs" / "comparing.md").read_text(encoding="utf-8")


def test_the_example_of_a_sweep_file_is_one(tmp_path):
    (tmp_path / "mine.yaml").write_text("topology: {kind: ring, switches: 3}\n")
    (example,) = re.findall(r"```yaml\n(description:.*?)```", TEXT, re.DOTALL)
    sweep, problems = parse_sweep(example, tmp_path / "example.yaml")
    assert problems == []
    assert sweep is not None
    assert len(sweep.combinations) == 6
    assert [figure.name for figure in sweep.figures] == ["example-1", "queues"]


def test_every_sweep_of_the_papers_is_told_of():
    folder = Path(__file__).parents[3] / "scenarios" / "sweeps"
    assert {file.name for file in folder.glob("*.yaml")} == set(re.findall(r"^\| `([\w-]+\.yaml)`", TEXT, re.MULTILINE))
