"""The image of the virtual machine: named after a digest of what it is made from, built in full or not at all."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from testbed.base.errors import CapabilityError
from testbed.base.resources import CACHE, IN_CLONE, SHARE, setup
from testbed.base.untrusted_text import escape_line
from testbed.engines.vm.building import (
    BUILDING,
    clean_up,
    hold_build_lock,
    missing_commands,
    require_root,
    require_space,
    run_script,
)
from testbed.engines.vm.project import pack_project

# What the image is made from. The project itself is not part of it: each run brings it as it then is.
INPUTS = ("scripts/vm-image", "scripts/vm-init", "scripts/vm-initrd", "scripts/setup", "locks/dev.txt")
_PARTS = ("root.img", "vmlinuz", "initrd.img", "versions")
_BUILD = "make vm" if IN_CLONE else "testbed vm build"
_WHAT = "the image of the virtual machine"
# While it is built: the root file system, the image of it, and packages as they were fetched.
NEEDED_BYTES = 5 << 30
# That of Ubuntu 22.04, the oldest system that is supported.
_OLDEST_QEMU = (6, 2)
_VERSION = re.compile(r"version (\d+)\.(\d+)")
_COMMANDS = ("debootstrap", "mke2fs", "unshare", "setpriv", "chroot")


@dataclass(frozen=True, slots=True)
class Image:
    """A whole image."""

    folder: Path  # named after the digest of its inputs

    @property
    def root(self) -> Path:
        """The root file system, raw ext4."""
        return self.folder / "root.img"

    @property
    def kernel(self) -> Path:
        """Debian's kernel."""
        return self.folder / "vmlinuz"

    @property
    def initrd(self) -> Path:
        """Its first file system, with the drivers of the disks."""
        return self.folder / "initrd.img"

    @property
    def versions(self) -> dict[str, str]:
        """Kernel and packages in it: name → version."""
        rows = (line.split() for line in (self.folder / "versions").read_text().splitlines())
        return {row[0]: row[1] for row in rows}


def image_digest(root: Path = SHARE, inputs: Sequence[str] = INPUTS) -> str:
    """Twelve hexadecimal digits that change with any input of the image."""
    digest = hashlib.sha256()
    for name in inputs:
        content = (root / name).read_bytes()
        digest.update(f"{name} {len(content)}\n".encode() + content)
    return digest.hexdigest()[:12]


def image_folder(cache: Path = CACHE) -> Path:
    """Where the image of the present inputs belongs."""
    return cache / f"vm-{image_digest()}"


def find_image(cache: Path = CACHE) -> Image | None:
    """Return the image of the present inputs, or None where it was not built."""
    folder = image_folder(cache)
    return Image(folder) if all((folder / part).is_file() for part in _PARTS) else None


def require_image() -> Image:
    """Return the image of the present inputs.

    Raises:
        CapabilityError: there is none.
    """
    found = find_image()
    if found is None:
        raise CapabilityError(
            f"there is no image of the virtual machine for this version of the project ({image_folder()}); without it "
            f"no lab runs in one; run `{_BUILD}`, which takes several minutes once"
        )
    return found


def build_image(progress: Callable[[str], None], cache: Path = CACHE) -> Image:
    """Build the image unless it is there.

    It is made under another name and renamed when it is whole. What an interrupted building left is removed.

    Raises:
        CapabilityError: this machine cannot build it: no root, a command or disk space is missing; nothing was made.
        LabError: building failed; nothing is left.
    """
    found = find_image(cache)
    if found is not None:
        return found
    _require_means(cache)
    with hold_build_lock(cache, "the virtual machine's image", progress):
        found = find_image(cache)
        if found is not None:
            return found
        final = image_folder(cache)
        for stale in cache.glob(f"vm-*{BUILDING}"):
            shutil.rmtree(stale)
        if final.exists():
            shutil.rmtree(final)
        working = final.with_name(final.name + BUILDING)
        working.mkdir()
        try:
            _build(working, progress)
            for part in _PARTS:
                with (working / part).open("rb") as file:
                    os.fsync(file.fileno())
            working.rename(final)
        except BaseException:
            clean_up(working)
            raise
    return Image(final)


def _build(working: Path, progress: Callable[[str], None]) -> None:
    source = working / "project.tar"
    pack_project(source, {})
    run_script(
        "vm-image", [str(working), str(source)], _WHAT, working / "errors",
        lambda line: progress(f"building the virtual machine's image: {line}"),
    )  # fmt: skip
    source.unlink()


def _require_means(cache: Path) -> None:
    require_root(_WHAT, "vm")
    missing = missing_commands(_COMMANDS)
    if missing:
        raise CapabilityError(
            f"missing: {', '.join(missing)}; without them no image of the virtual machine can be built; {setup('vm')}"
        )
    require_space(cache, NEEDED_BYTES, _WHAT)


def qemu_version() -> str:
    """First line of what QEMU says of its version.

    Raises:
        CapabilityError: it is not installed, or too old.
    """
    try:
        said = subprocess.run(["qemu-system-x86_64", "--version"], capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError) as error:
        raise CapabilityError(
            "qemu-system-x86_64 is missing or does not start; without it no virtual machine runs; "
            f"{setup('vm')} (package qemu-system-x86)"
        ) from error
    first = said.partition("\n")[0].strip()
    found = _VERSION.search(first)
    if found is None or (int(found[1]), int(found[2])) < _OLDEST_QEMU:
        raise CapabilityError(
            f'qemu-system-x86_64 calls itself "{escape_line(first)}"; the virtual machine needs version '
            f"{'.'.join(map(str, _OLDEST_QEMU))} or later; {setup('vm')} on Debian 12 or Ubuntu 22.04 or later, or put "
            "a newer one first in PATH"
        )
    return first
