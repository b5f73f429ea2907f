"""A folder with somebody else's scenario, and with files that Python and libraries would take for their own."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

# Besides all modules of Python itself. Packages of the project's own names would be found by `-m` or `-c`, too.
_MODULES = ("numba", "yaml", "typer", "distributed", "dask", "mininet", "sitecustomize", "usercustomize", "testbed")
_PACKAGES = ("numpy", "controllers", "msgpack")
# What a Python that reads code or settings there leaves.
_CODE = "with open({mark!r}, 'a') as file:\n    file.write(__name__ + '\\n')\nraise ImportError('planted')\n"
PROGRAM = Path(sys.executable).with_name("testbed")


@dataclass(frozen=True)
class Planted:
    folder: Path
    mark: Path

    def run(self, *words: str, limit: float = 120, **variables: str) -> subprocess.CompletedProcess[str]:
        """Call the program there."""
        return subprocess.run(
            [str(PROGRAM), *words], cwd=self.folder, capture_output=True, text=True, check=False, timeout=limit,
            env={**os.environ, **variables}, stdin=subprocess.DEVNULL,
        )  # fmt: skip

    def taken(self) -> list[str]:
        """Names of the modules that were executed, and of what was made by settings."""
        names = self.mark.read_text().split() if self.mark.exists() else []
        return [*names, *(["cache of numba"] if (self.folder / "of-numba").exists() else [])]


def plant(folder: Path) -> Planted:
    """Put the files into a folder."""
    mark = folder.with_name(f"{folder.name}-taken")
    folder.mkdir()
    code = _CODE.format(mark=str(mark))
    for name in {*sys.stdlib_module_names, *_MODULES}:
        (folder / f"{name}.py").write_text(code)
    for name in _PACKAGES:
        (folder / name).mkdir()
        (folder / name / "__init__.py").write_text(code)
    (folder / ".numba_config.yaml").write_text("cache_dir: ./of-numba\ndisable_jit: 1\ndeveloper_mode: 1\n")
    (folder / "matplotlibrc").write_text("lines.linewidth: 77\n")
    return Planted(folder, mark)
