"""Machine code kept on disk is that of today's sources."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import testbed.kernels

CALLEE = "from testbed.kernels.jit import jit\n\n\n@jit\ndef callee():\n    return {}\n"
CALLER = (
    "from testbed.kernels.callee import callee\nfrom testbed.kernels.jit import jit\n\n\n"
    "@jit\ndef caller():\n    return callee() + 1\n"
)


def called(folder: Path) -> str:
    program = "from testbed.kernels.caller import caller; print(caller())"
    environment = {**os.environ, "PYTHONPATH": str(folder), "NUMBA_CACHE_DIR": str(folder / "cache")}
    done = subprocess.run(
        [sys.executable, "-P", "-c", program] if sys.version_info >= (3, 11) else [sys.executable, "-c", program],
        cwd=folder, env=environment, capture_output=True, text=True, check=True,
    )  # fmt: skip
    return done.stdout.strip()


def test_a_kernel_is_compiled_anew_when_one_it_calls_in_another_file_has_changed(tmp_path):
    package = tmp_path / "testbed" / "kernels"
    package.mkdir(parents=True)
    (tmp_path / "testbed" / "__init__.py").write_text("")
    for name in ("__init__.py", "jit.py"):
        shutil.copy(Path(testbed.kernels.__file__).parent / name, package / name)
    (package / "caller.py").write_text(CALLER)
    (package / "callee.py").write_text(CALLEE.format(1))
    assert called(tmp_path) == "2"
    made = [(file, file.stat().st_mtime_ns) for file in (tmp_path / "cache").rglob("*.nb?")]
    assert made
    (package / "other.py").write_text("")  # no concern of theirs
    (package / "caller.py").touch()
    assert called(tmp_path) == "2"
    assert [(file, file.stat().st_mtime_ns) for file in (tmp_path / "cache").rglob("*.nb?")] == made
    (package / "callee.py").write_text(CALLEE.format(20))
    assert called(tmp_path) == "21"


def test_kernels_can_be_interpreted_without_importing_numba():
    program = (
        "import sys; import numpy as np; from testbed.kernels.vlans import used_entries as kernel; "
        "print(type(kernel).__name__, 'numba' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], env={**os.environ, "NUMBA_DISABLE_JIT": "1"},
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert done.stdout.split() == ["function", "False"]


INNER = (
    "from testbed.kernels.jit import jit, jit_inner\n\n\n@jit_inner\ndef inner(n):\n    return n + 1\n\n\n"
    "@jit\ndef outer(n):\n    return inner(n)\n"
)


def test_what_only_kernels_call_cannot_be_called_otherwise(tmp_path):
    package = tmp_path / "testbed" / "kernels"
    package.mkdir(parents=True)
    (tmp_path / "testbed" / "__init__.py").write_text("")
    for name in ("__init__.py", "jit.py"):
        shutil.copy(Path(testbed.kernels.__file__).parent / name, package / name)
    (package / "made.py").write_text(INNER)
    refused = "inner is called by kernels only: it has no entry for the interpreter"
    for first in ("", "print(made.outer(1));"):
        program = (
            f"from testbed.kernels import made\n{first}\ntry:\n    made.inner(1)\nexcept TypeError as e:\n    print(e)"
        )
        for _ in ("compiled", "from the disk"):
            done = subprocess.run(
                [sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=True,
                env={**os.environ, "PYTHONPATH": str(tmp_path), "NUMBA_CACHE_DIR": str(tmp_path / "cache")},
            )  # fmt: skip
            assert done.stdout.split("\n")[:-1] == (["2"] if first else []) + [refused]
