"""Machine code kept on disk is that of today's sources."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import testbed.base
from testbed.base import jit
from testbed.base.jit import jit_unless_small
from testbed.fabric.kernels.vlans import loops_and_parts

CALLEE = "from testbed.base.jit import jit\n\n\n@jit\ndef callee():\n    return {}\n"
CALLER = (
    "from testbed.fabric.kernels.callee import callee\nfrom testbed.base.jit import jit\n\n\n"
    "@jit\ndef caller():\n    return callee() + 1\n"
)


def copy_jit(package: Path) -> None:
    """Put what compiles into a package of kernels that has nothing else."""
    base = Path(testbed.base.__file__).parent
    copied = package.parents[1] / "base"
    copied.mkdir()
    for name in ("__init__.py", "jit.py", "machine_code.py", "python_isolation.py"):
        shutil.copy(base / name, copied / name)
    for folder in (package, package.parent, package.parents[1]):
        (folder / "__init__.py").write_text("")


def called(folder: Path) -> str:
    program = "from testbed.fabric.kernels.caller import caller; print(caller())"
    environment = {**os.environ, "PYTHONPATH": str(folder), "NUMBA_CACHE_DIR": str(folder / "cache")}
    done = subprocess.run(
        [sys.executable, "-P", "-c", program] if sys.version_info >= (3, 11) else [sys.executable, "-c", program],
        cwd=folder, env=environment, capture_output=True, text=True, check=True,
    )  # fmt: skip
    return done.stdout.strip()


@pytest.mark.slow
def test_a_kernel_is_compiled_anew_when_one_it_calls_changed(tmp_path):
    package = tmp_path / "testbed" / "fabric" / "kernels"
    package.mkdir(parents=True)
    copy_jit(package)
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


@pytest.mark.slow
def test_a_kernel_whose_type_has_another_name_is_compiled_anew(tmp_path):
    """What is kept names the types of arguments, and one that is gone cannot be read."""
    package = tmp_path / "testbed" / "fabric" / "kernels"
    package.mkdir(parents=True)
    copy_jit(package)
    text = (
        "from typing import NamedTuple\nfrom testbed.base.jit import jit\n\n\n"
        "class {0}(NamedTuple):\n    size: int\n\n\n"
        "@jit\ndef measure(pair):\n    return pair.size\n\n\ndef caller():\n    return measure({0}(7))\n"
    )
    for name in ("Pair", "PairOfSwitches"):
        (package / "caller.py").write_text(text.format(name))
        assert called(tmp_path) == "7"


def test_kernels_can_be_interpreted_without_importing_numba():
    program = (
        "import sys; import numpy as np; from testbed.fabric.kernels.vlans import used_entries as kernel; "
        "print(type(kernel).__name__, 'numba' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], env={**os.environ, "NUMBA_DISABLE_JIT": "1"},
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert done.stdout.split() == ["function", "False"]


@pytest.mark.skipif(jit.INTERPRETED, reason="nothing is compiled here")
class TestUnlessSmall:
    """What is small is interpreted, until that has taken as long as numba takes to be loaded."""

    @pytest.fixture
    def fresh(self, monkeypatch):
        """A kernel that tells whether it is interpreted, and calls another; nothing was interpreted yet."""
        monkeypatch.setattr(jit, "_interpreted", jit._Interpreted())
        monkeypatch.setattr(jit, "jit", lambda function: lambda *arguments: ("compiled", arguments))
        called = jit_unless_small(lambda values: ("called", values.sum()))
        return jit_unless_small(lambda values: tuple(called(values)))

    def test_small_arrays_are_interpreted_and_scalars_are_pythons(self, fresh):
        said, total = fresh(np.ones(3, dtype=np.int32))
        assert (said, total, type(total)) == ("called", 3, int)

    def test_large_arrays_are_compiled_also_within_tuples(self, fresh):
        assert fresh(np.zeros(jit._NUMBERS + 1))[0] == "compiled"
        assert jit_unless_small(lambda pair: pair)((np.zeros(2000), np.zeros(2000)))[0] == "compiled"

    def test_once_compiled_a_kernel_stays_so(self, fresh):
        fresh(np.zeros(jit._NUMBERS + 1))
        assert fresh(np.zeros(1))[0] == "compiled"

    def test_when_it_has_taken_long_the_rest_is_compiled(self, fresh):
        assert fresh(np.zeros(1))[0] == "called"
        jit._interpreted.seconds = jit._SECONDS + 0.1
        assert fresh(np.zeros(1))[0] == "compiled"

    def test_what_is_raised_ends_it(self):
        kernel = jit_unless_small(lambda _: 1 // 0)
        for _ in range(2):
            with pytest.raises(ZeroDivisionError):
                kernel(1)
        assert not jit._interpreted.running


@pytest.mark.skipif(jit.INTERPRETED, reason="nothing is compiled here")
def test_interpreted_and_compiled_kernels_give_the_same():
    # A ring of four in the first VLAN, a path in the second, and a link missing in the third.
    tagged = np.array([[1, 1, 1, 1], [1, 1, 1, 0], [1, 1, 0, 0]], dtype=bool)
    links = np.array([[0, 1], [1, 2], [2, 3], [3, 0]], dtype=np.int32)
    kernel: Any = loops_and_parts
    for found in (kernel.compiled(tagged, links, 4, 0), kernel._function(tagged, links, 4, 0)):
        assert found[0].tolist() == [True, False, False]
        assert found[1].tolist() == [[True] * 4, [True] * 4, [True, True, True, False]]


@pytest.mark.slow
def test_a_small_fabric_is_planned_and_begun_without_numba():
    program = (
        "import sys; from testbed.scenario import find_scenario, load_scenario\n"
        "from testbed.planning import make_plan\n"
        "from testbed.experiments.run.engines import find_lab_engine\n"
        "plan = make_plan(load_scenario(find_scenario('torus4x4'))); "
        "find_lab_engine(plan.scenario); print('numba' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


INNER = (
    "from testbed.base.jit import jit, jit_inner\n\n\n@jit_inner\ndef inner(n):\n    return n + 1\n\n\n"
    "@jit\ndef outer(n):\n    return inner(n)\n"
)


@pytest.mark.slow
def test_what_only_kernels_call_cannot_be_called_otherwise(tmp_path):
    package = tmp_path / "testbed" / "fabric" / "kernels"
    package.mkdir(parents=True)
    copy_jit(package)
    (package / "made.py").write_text(INNER)
    refused = "inner is called by kernels only: it has no entry for the interpreter"
    for first in ("", "print(made.outer(1));"):
        program = f"from testbed.fabric.kernels import made\n{first}\ntry:\n    made.inner(1)\n"
        program += "except TypeError as e:\n    print(e)"
        for _ in ("compiled", "from the disk"):
            done = subprocess.run(
                [sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=True,
                env={**os.environ, "PYTHONPATH": str(tmp_path), "NUMBA_CACHE_DIR": str(tmp_path / "cache")},
            )  # fmt: skip
            assert done.stdout.split("\n")[:-1] == (["2"] if first else []) + [refused]


@pytest.mark.slow
def test_compiling_is_told_once_and_not_of_what_is_on_disk(tmp_path):
    package = tmp_path / "testbed" / "fabric" / "kernels"
    package.mkdir(parents=True)
    copy_jit(package)
    (package / "made.py").write_text(INNER)
    program = (
        "from testbed.base.jit import tell_of_compiling\ntell_of_compiling(lambda: print('compiles'))\n"
        "from testbed.fabric.kernels import made\nprint(made.outer(1)); print(made.outer(1.0))"
    )
    for said in ("compiles\n2\n2.0\n", "2\n2.0\n"):
        done = subprocess.run(
            [sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=True,
            env={**os.environ, "PYTHONPATH": str(tmp_path), "NUMBA_CACHE_DIR": str(tmp_path / "cache")},
        )  # fmt: skip
        assert done.stdout == said
