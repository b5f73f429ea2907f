"""The notebooks of the examples as they are stored; that they run and what they print, the test of the site sees."""

from __future__ import annotations

from pathlib import Path

import nbformat

NOTEBOOKS = sorted((Path(__file__).parents[3] / "examples" / "notebooks").glob("*.ipynb"))


def test_they_are_stored_without_what_they_printed():
    assert len(NOTEBOOKS) == 3
    for file in NOTEBOOKS:
        notebook = nbformat.read(file, as_version=4)
        assert not any(cell.get("outputs") for cell in notebook.cells)
