"""Which examples Hypothesis draws, and in which order and beside which others tests run.

Hypothesis draws the same examples in every run, so that a change is judged by itself. With TESTBED_EXPLORE_SECONDS=N it
draws those of a seed (`--hypothesis-seed`) instead, and more of them, for tests in an order of the seed, which begin in
the first N seconds.

With pytest-xdist, tests of labs, which mostly wait, run beside those that compute. Tests that measure run last, while
no others do: those marked `quiet` two at a time, those marked `alone` one by one.
"""

from __future__ import annotations

import os
import random
import stat
import sys
import time
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.internal.conjecture import providers

from testbed.base.jit import INTERPRETED
from tests.turns import SEATS, compile_once, locked, turn

# Times say nothing on a machine that others use too; plans are made, and kernels compiled, while examples are drawn.
UNTIMED = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("same", UNTIMED, max_examples=80, derandomize=True, database=None)
settings.register_profile("explore", UNTIMED, max_examples=240, database=None, print_blob=True)
_EXPLORE = float(os.environ.get("TESTBED_EXPLORE_SECONDS") or 0)
settings.load_profile("explore" if _EXPLORE else "same")
# Otherwise Hypothesis also draws what stands in the modules that are imported: examples would be others with any change
# of the project, and with any choice of tests. There is no public way.
providers._get_local_constants = lambda: providers._local_constants

_HERE = Path(__file__).parent
# Begin first, each in another process: these compile the largest kernels.
_COMPILING = ("test_assignment_table", "test_buffer_occupancy", "test_run_simulated")
_BEGUN = pytest.StashKey[float]()


def _folder_of_locks(config: pytest.Config) -> Path | None:
    """Shared by all workers of this run; None where there are none."""
    return Path(config.getoption("basetemp")).parent if hasattr(config, "workerinput") else None


def pytest_configure(config: pytest.Config) -> None:
    state = TemporaryDirectory(
        prefix="testbed-state-"
    )  # plug-ins that tests trust are not trusted by whoever runs them
    config.add_cleanup(state.cleanup)
    os.environ["XDG_STATE_HOME"] = state.name
    if (folder := _folder_of_locks(config)) is not None and not INTERPRETED:
        compile_once(folder)
    if _HERE.stat().st_uid == os.getuid():  # elsewhere root leaves no files
        sys.dont_write_bytecode = False


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(collector: pytest.Collector) -> Iterator[None]:
    """One process reads a module of tests and rewrites its assertions; the others find what it has stored."""
    folder = _folder_of_locks(collector.config)
    alone = folder is not None and isinstance(collector, pytest.Module)
    with locked(folder / f"{collector.nodeid.replace('/', '.')}.lock") if folder and alone else nullcontext():
        return (yield)


@pytest.hookimpl(tryfirst=True)  # before xdist reads the groups, and before -m and -k choose
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if _EXPLORE:
        random.Random(config.getoption("--hypothesis-seed")).shuffle(items)
        return
    for item in items:
        folder = item.path.relative_to(_HERE).parts[0]
        if folder == "lab":
            item.add_marker(pytest.mark.lab)
        elif folder != "vm" and not item.get_closest_marker("xdist_group"):
            item.add_marker(pytest.mark.xdist_group(f"{folder}/{item.path.stem}"))
        if folder == "property":
            item.add_marker(pytest.mark.slow)
    if "minutes" not in config.option.markexpr:
        items[:] = [item for item in items if not item.get_closest_marker("minutes")]
    items[:] = _in_order(items)


def _in_order(items: list[pytest.Item]) -> list[pytest.Item]:
    """Tests of labs evenly among the others, and those that measure at the end: a process for each seat."""
    alone = [item for item in items if item.get_closest_marker("alone")]
    quiet = [item for item in items if item.get_closest_marker("quiet")]
    apart = {*quiet, *alone}
    together = [item for item in items if item not in apart]
    for item in quiet:
        item.add_marker(pytest.mark.xdist_group(f"seat {_seat(item)}"))
    for item in alone:
        item.add_marker(pytest.mark.xdist_group(f"seat {SEATS - 1}"))
    labs = [item for item in together if item.get_closest_marker("lab")]
    labs.sort(key=lambda item: item.get_closest_marker("xdist_group") is None)  # what is longest begins first
    others = [item for item in together if not item.get_closest_marker("lab")]
    others.sort(key=lambda item: item.path.stem not in _COMPILING)
    placed = [((n + 0.5) / len(kind), item) for kind in (labs, others) for n, item in enumerate(kind)]
    return [item for _, item in sorted(placed, key=lambda one: one[0])] + quiet + alone


def _seat(item: pytest.Item) -> int | None:
    quiet = item.get_closest_marker("quiet")
    return None if quiet is None else int(quiet.kwargs["seat"])


def pytest_collection_finish(session: pytest.Session) -> None:
    session.config.stash[_BEGUN] = time.monotonic()


def pytest_runtest_setup(item: pytest.Item) -> None:
    if _EXPLORE and time.monotonic() > item.config.stash[_BEGUN] + _EXPLORE:
        pytest.skip(f"the {_EXPLORE:g} s for exploring are over")


@pytest.hookimpl(wrapper=True, tryfirst=True)  # before its time limit begins
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    folder = _folder_of_locks(item.config)
    alone = item.get_closest_marker("alone") is not None
    with nullcontext() if folder is None else turn(folder, alone=alone, seat=_seat(item)):
        return (yield)


@pytest.fixture
def secret(tmp_path: Path) -> Iterator[Path]:
    """A file in a folder of this user alone, where planted links lead; a test that changes either fails."""
    folder = tmp_path / "roots"
    folder.mkdir()
    file = folder / "secret"
    file.write_bytes(b"secret")
    file.chmod(0o600)
    yield file
    status = file.stat()
    assert (file.read_bytes(), status.st_uid, stat.S_IMODE(status.st_mode)) == (b"secret", os.getuid(), 0o600)
    assert list(folder.iterdir()) == [file]
    assert folder.stat().st_uid == os.getuid()
