"""Boxes for Vagrant, made from the image of the virtual machine; named after a digest, there in full or not at all."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path

from testbed.base.errors import CapabilityError
from testbed.base.resources import CACHE
from testbed.engines.vm.building import (
    BUILDING,
    clean_up,
    hold_build_lock,
    missing_commands,
    require_root,
    require_space,
    run_script,
)
from testbed.engines.vm.image import INPUTS, image_digest, require_image

PROVIDERS = ("libvirt", "virtualbox")
BOX_INPUTS = (*INPUTS, "scripts/vm-box", "scripts/vm-box.ovf", "scripts/vagrant.pub")
_WHAT = "the box for Vagrant"
# While it is made: the disk, and beside it first the root file system, then the disk in a provider's form and the box.
NEEDED_BYTES = 6 << 30
_PACKAGES = {
    "mke2fs": "e2fsprogs", "qemu-img": "qemu-utils", "mount": "mount", "unshare": "util-linux", "setpriv": "util-linux",
}  # fmt: skip


def box_file(provider: str, folder: Path = CACHE) -> Path:
    """Where the box of the present inputs for a provider belongs. The Vagrantfile looks for files of this name."""
    return folder / f"testbed-{image_digest(inputs=BOX_INPUTS)}-{provider}.box"


def build_boxes(providers: Sequence[str], progress: Callable[[str], None], folder: Path = CACHE) -> list[Path]:
    """Make boxes from the image, except those that are there, and return all.

    They are made under other names and renamed when all are whole. What an interrupted building left is removed.

    Raises:
        CapabilityError: this machine cannot make them: no root, no image, or a command or disk space is missing.
        LabError: making them failed; nothing is left.
    """
    boxes = {provider: box_file(provider, folder) for provider in providers}
    if not _list_lacking(boxes):
        return list(boxes.values())
    _require_means(folder)
    image = require_image()
    with hold_build_lock(CACHE, _WHAT, progress):
        lacking = _list_lacking(boxes)
        for stale in folder.glob(f"testbed-*{BUILDING}"):
            clean_up(stale)
        if not lacking:
            return list(boxes.values())
        working = folder / f"testbed-{image_digest(inputs=BOX_INPUTS)}{BUILDING}"
        try:
            working.mkdir(parents=True)
            run_script(
                "vm-box", [str(working), str(image.root), *lacking], _WHAT, working / "errors",
                lambda line: progress(f"making {_WHAT}: {line}"),
            )  # fmt: skip
            for provider in lacking:
                made = working / f"{provider}.box"
                made.chmod(0o644)  # Vagrant is a user's program
                with made.open("rb") as file:
                    os.fsync(file.fileno())
            for provider in lacking:
                (working / f"{provider}.box").rename(boxes[provider])
        finally:
            clean_up(working)
    return list(boxes.values())


def _list_lacking(boxes: dict[str, Path]) -> list[str]:
    return [provider for provider, file in boxes.items() if not file.is_file()]


def _require_means(folder: Path) -> None:
    require_root(_WHAT, "vagrant-box")
    missing = missing_commands(list(_PACKAGES))
    if missing:
        packages = " ".join(sorted({_PACKAGES[name] for name in missing}))
        raise CapabilityError(
            f"missing: {', '.join(missing)}; without them no box for Vagrant can be made; run "
            f"`apt-get install {packages}`"
        )
    require_space(folder, NEEDED_BYTES, _WHAT)
