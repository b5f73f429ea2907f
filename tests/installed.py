"""The wheel in an environment of its own, used from an empty folder; for tests of what an installed package can do."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import venv
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]


@dataclass(frozen=True)
class Installed:
    environment: Path
    wheel: Path

    def run(self, *words: str, cwd: Path, **variables: str) -> subprocess.CompletedProcess[str]:
        inherited = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "COLUMNS")}
        # Compiled anew, kernels would take longer than all else; tests/unit has what they do.
        env = {**inherited, "HOME": str(cwd), "NUMBA_DISABLE_JIT": "1", **variables}
        command = [str(self.environment / "bin" / "testbed"), *words]
        return subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False, env=env)


def install(folder: Path) -> Installed:
    """Build the wheel of the working tree and install it; what it needs is taken from this environment."""
    pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check"]
    build = ["wheel", "--no-deps", "--no-build-isolation", "--no-index", "--wheel-dir", str(folder), str(ROOT)]
    subprocess.run([*pip, *build], check=True)
    (wheel,) = folder.glob("*.whl")
    environment = folder / "environment"
    venv.create(environment, symlinks=True)  # without the system's packages, and so without its Mininet
    python = environment / "bin" / "python"
    install = ["--python", str(python), "install", "--no-deps", "--no-index", "--no-compile", str(wheel)]
    subprocess.run([*pip, *install], check=True)
    own = Path(sysconfig.get_path("purelib", vars={"base": str(environment)}))
    # Behind its own packages, and without the line that adds this clone.
    (own / "needed.pth").write_text(f"{sysconfig.get_path('purelib')}\n")
    return Installed(environment, wheel)
