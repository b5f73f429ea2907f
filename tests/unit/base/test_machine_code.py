"""Machine code that somebody else can have written is not loaded: it is read as pickles."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from testbed.base import machine_code
from testbed.base.machine_code import is_trusted
from tests.unit.fabric.test_kernels_jit import copy_jit

_OTHER = 12345
_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
_KERNEL = "from testbed.base.jit import jit\n\n\n@jit\ndef made():\n    return 1\n"


@pytest.fixture(autouse=True)
def fresh():
    machine_code.is_trusted.cache_clear()


@pytest.fixture
def place(tmp_path) -> Path:
    """A folder with machine code, below another one."""
    folder = Path(tmp_path, "above", "kept")
    folder.mkdir(parents=True)
    for one in (tmp_path, folder.parent, folder):
        one.chmod(0o755)
    (folder / "x.1.nbc").write_bytes(b"")
    (folder / "x.1.nbc").chmod(0o644)
    return folder


def trusted(folder: Path, owner: int | None = None) -> bool:
    is_trusted.cache_clear()
    return is_trusted(str(folder), os.geteuid() if owner is None else owner)


def test_what_only_its_user_can_write_is_trusted_if_made_or_not(place):
    assert trusted(place)
    assert trusted(place / "new")


@pytest.mark.parametrize("part", ["x.1.nbc", ".", ".."])
@pytest.mark.parametrize("bits", [0o002, 0o020])
def test_a_file_a_folder_or_a_parent_that_others_can_write(place, part, bits, monkeypatch):
    monkeypatch.setattr(machine_code, "_is_own_group", lambda status: False)
    one = place / part
    one.chmod(one.stat().st_mode | bits)
    assert not trusted(place)


def test_a_parent_all_can_write_is_right_if_names_are_safe(place):
    place.parent.chmod(0o1777)
    assert trusted(place)
    place.chmod(0o1777)  # here anybody could put a file
    assert not trusted(place)


def test_the_group_that_a_user_has_alone_may_write(place, monkeypatch):
    place.chmod(0o775)
    monkeypatch.setattr(machine_code, "_is_own_group", lambda status: True)
    assert trusted(place)


@_root
@pytest.mark.parametrize("part", ["x.1.nbc", ".", ".."])
def test_what_belongs_to_another_user(place, part):
    os.chown(place / part, _OTHER, _OTHER)
    assert not trusted(place)
    assert trusted(place, owner=_OTHER)  # who has the code can change that as well


@_root
def test_a_link_of_another_user_or_over_a_folder_of_one(place, tmp_path):
    link = tmp_path / "link"
    link.symlink_to(place)
    assert trusted(link)
    os.chown(link, _OTHER, _OTHER, follow_symlinks=False)
    assert not trusted(link)
    theirs = tmp_path / "theirs"
    theirs.mkdir()
    os.chown(theirs, _OTHER, _OTHER)
    (theirs / "back").symlink_to("../above")
    (tmp_path / "mine").symlink_to("theirs/back/kept")
    assert not trusted(tmp_path / "mine")


@pytest.mark.slow
def test_code_others_can_write_is_compiled_anew_with_a_sentence(tmp_path):
    package = tmp_path / "testbed" / "fabric" / "kernels"
    package.mkdir(parents=True)
    copy_jit(package)
    (package / "made.py").write_text(_KERNEL)
    cache = tmp_path / "open" / "cache"
    cache.mkdir(parents=True)
    cache.parent.chmod(0o777)
    done = subprocess.run(
        [sys.executable, "-c", "from testbed.fabric.kernels.made import made; print(made())"],
        cwd="/", text=True, check=True,
        env={**os.environ, "PYTHONPATH": str(tmp_path), "NUMBA_CACHE_DIR": str(cache)}, capture_output=True,
    )  # fmt: skip
    assert done.stdout == "1\n"
    assert "machine code is not kept, because no folder for it can be written, or others can write it" in done.stderr
    assert list(cache.rglob("*.nb?")) == []
    shutil.rmtree(tmp_path / "testbed")
