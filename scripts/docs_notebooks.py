"""Pages of the documentation site that show the notebooks of examples/ with what they print, run anew each time."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import nbformat
from nbclient import NotebookClient

FOLDER = Path(__file__).resolve().parents[1] / "examples" / "notebooks"


def pages() -> list[tuple[str, str]]:
    """The name and the text of a page for each notebook; they run side by side, each in a folder of its own.

    Raises:
        CellExecutionError: a cell raised, and with what.
    """
    files = sorted(FOLDER.glob("*.ipynb"))
    with ThreadPoolExecutor() as pool:
        return [(f"notebooks/{file.stem}.md", text) for file, text in zip(files, pool.map(page, files), strict=True)]


def page(file: Path) -> str:
    """A notebook with its outputs, as Markdown."""
    notebook = nbformat.read(file, as_version=4)
    with tempfile.TemporaryDirectory() as folder:
        env = {**os.environ, "JUPYTER_PLATFORM_DIRS": "1", "IPYTHONDIR": f"{folder}/.ipython"}
        client = NotebookClient(
            notebook, timeout=120, resources={"metadata": {"path": folder}},
            extra_arguments=["--log-level=ERROR"],  # which says each time that its ports are not encrypted
        )  # fmt: skip
        client.execute(env=env)
    parts = []
    for cell in notebook.cells:
        parts += _code(cell) if cell.cell_type == "code" else [cell.source]
        if len(parts) == 1:
            parts.append(f"This page is `examples/notebooks/{file.name}` with what it printed when the site was built.")
    return "\n\n".join(parts)


def _code(cell: Any) -> Iterator[str]:
    yield f"```python\n{cell.source}\n```"
    for output in cell.outputs:
        if output.get("name") == "stderr":
            continue  # how far it is
        data = output.get("data", {})
        if "text/html" in data:
            yield f"<div>\n{data['text/html']}\n</div>"
        else:
            yield f"```text\n{data.get('text/plain', output.get('text', '')).rstrip()}\n```"
