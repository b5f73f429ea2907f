"""The notebooks of the examples run from top to bottom, each in a folder of its own."""

from __future__ import annotations

from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

NOTEBOOKS = sorted((Path(__file__).parents[2] / "examples" / "notebooks").glob("*.ipynb"))


def output(cell):
    return "".join(
        text for found in cell.outputs for text in found.get("data", {}).get("text/plain", found.get("text", ""))
    )


@pytest.mark.parametrize("file", NOTEBOOKS, ids=lambda file: file.stem)
def test_a_notebook_runs(file, tmp_path, monkeypatch):
    monkeypatch.setenv("JUPYTER_PLATFORM_DIRS", "1")
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    notebook = nbformat.read(file, as_version=4)
    assert not any(cell.get("outputs") for cell in notebook.cells), "is stored without what it printed"
    NotebookClient(notebook, timeout=120, resources={"metadata": {"path": str(tmp_path)}}).execute()
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert all(cell.outputs for cell in cells[1:])
    said = "\n".join(map(output, cells))
    assert {"1": "proved: deadlock free", "2": 'unknown key. Did you mean "root"', "3": "samples.parquet"}[
        file.stem[0]
    ] in said


def test_there_are_three():
    assert len(NOTEBOOKS) == 3
