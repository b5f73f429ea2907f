"""Programs of a name that a test decides about, first on PATH: what calls them is as in earnest."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

# What building an image or a box looks for.
_BUILDERS = ("debootstrap", "mke2fs", "qemu-img", "mount", "setpriv", "chroot")


def put_program(monkeypatch: pytest.MonkeyPatch, folder: Path, name: str, script: str) -> None:
    """Put a script of bash first on PATH."""
    program = folder / "bin" / name
    program.parent.mkdir(exist_ok=True)
    program.write_text(f"#!/bin/bash\n{script}\n")
    program.chmod(0o755)
    if str(program.parent) not in os.environ["PATH"].split(":"):
        monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")


def put_qemu(monkeypatch: pytest.MonkeyPatch, folder: Path, script: str) -> None:
    """Put one in place of QEMU.

    It finds the file for results in $1 and the one for the console in $2, as QEMU does, in its command line.
    """
    version = '[[ $1 != --version ]] || { echo "QEMU emulator version 7.2.0"; exit; }'
    find = (
        "for word; do case $word in file,id=console,path=*) console=${word##*path=} ;; "
        "*backend-file,id=results,*) results=${word##*mem-path=} ;; esac; done"
    )
    put_program(monkeypatch, folder, "qemu-system-x86_64", f'{version}\n{find}\nset -- "$results" "$console"\n{script}')


def put_builder(monkeypatch: pytest.MonkeyPatch, folder: Path, script: str) -> None:
    """Put one in place of `unshare`, which a building starts with its script and that one's arguments.

    It finds the script's name in $1 and the arguments behind it. Programs that are looked for are there.
    """
    for name in _BUILDERS:
        if name != "setpriv":  # which starts it
            put_program(monkeypatch, folder, name, "exit 1")
    take = 'while [[ $1 == -* ]]; do shift; done; name=${1##*/}; shift; set -- "$name" "$@"'
    put_program(monkeypatch, folder, "unshare", f"{take}\n{script}")
