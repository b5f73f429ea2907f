"""The comparison of two runs, file by file."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.same_runs import main


def _folder(place: Path, **files: str) -> Path:
    written = {
        "samples.csv": "metric,value\n",
        "raw/1-ping/h1-h2.txt": "64 bytes",
        "manifest.json": place.name,
        **files,
    }
    for name, text in written.items():
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        (place / name).write_text(text)
    return place


def test_runs_that_delivered_the_same_are_the_same(tmp_path, capsys):
    folders = [_folder(tmp_path / name, **{"console.log": name}) for name in "abc"]
    assert main([str(folder) for folder in folders]) == 0
    said = capsys.readouterr().out
    assert said.startswith("the same 2 files: digests ")
    assert len(set(said.split()[-3:])) == 2  # the last has no comma


@pytest.mark.parametrize(
    "files", [{"raw/1-ping/h1-h2.txt": "65 bytes"}, {"telemetry-1.npz": "x"}, {"samples.csv": "metric,other\n"}]
)
def test_a_file_that_differs_or_is_in_one_alone_is_named(files, tmp_path, capsys):
    one, other = _folder(tmp_path / "a"), _folder(tmp_path / "b", **files)
    assert main([str(one), str(other)]) == 1
    assert f"files differ: {next(iter(files))}; digests " in capsys.readouterr().out


def test_folders_without_output_are_not_the_same_as_each_other(tmp_path):
    empty = tmp_path / "empty"
    empty.mkdir()
    with pytest.raises(SystemExit, match="nothing to compare"):
        main([str(empty), str(empty)])
    with pytest.raises(SystemExit, match="2"):
        main([str(empty)])
