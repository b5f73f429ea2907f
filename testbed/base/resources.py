"""Folders of the project that are no Python: at the top of a clone, inside the package where it is installed."""

from __future__ import annotations

import hashlib
import os
from functools import cache
from pathlib import Path

from testbed.base.version import __version__

PACKAGES = Path(__file__).resolve().parents[2]  # `testbed` is in it, and in a clone `controllers`
_INSIDE = Path(__file__).resolve().parents[1] / "share"  # as pyproject.toml maps them
IN_CLONE = not _INSIDE.is_dir()
SHARE = PACKAGES if IN_CLONE else _INSIDE  # scenarios/, mpi_jobs/, papers/, scripts/, locks/ are in it
CONTROLLERS = "controllers" if IN_CLONE else "testbed.controllers"  # the package of controllers
DISTRIBUTION = "loopfabric"  # what pip calls the project: in registries `testbed` is somebody else's
CACHE = Path("/var/cache/testbed")  # what root builds and keeps: images, boxes, MPI programs of an installed package
# Names the place of such folders to programs in a user namespace, which take themselves for root.
BUILDS = "TESTBED_BUILDS"
_SCRIPT = SHARE / "scripts" / "setup"


def setup(what: str = "system") -> str:
    """What to type for system packages that are missing, `system` or those of `vm`."""
    if IN_CLONE:
        return "run `make setup`" if what == "system" else f"run `scripts/setup {what}`"
    return f"run `bash {_SCRIPT} {'system' if what == 'system' else f'system-{what}'}`"


def install_extra(name: str) -> str:
    """What to type for the packages of an extra, `cluster` or `notebook`."""
    if IN_CLONE:
        return f"in {PACKAGES}: .venv/bin/pip install -e '.[{name}]'"
    wheel = f"{DISTRIBUTION}-{__version__}-py3-none-any.whl"
    return f"pip install './{wheel}[{name}]', with the wheel that this was installed from"


def find_part(name: str) -> Path:
    """Where a file or folder of the project is, given its name at the top of a clone."""
    if name == "controllers" and not IN_CLONE:
        return PACKAGES / "testbed" / name
    return (PACKAGES if name in ("testbed", "controllers") else SHARE) / name


@cache
def find_build_folder(name: str) -> Path:
    """Folder in which programs of a shipped folder are built: itself in a clone, else one named after its content.

    That is also where another user's clone cannot be written.
    """
    source = find_part(name)
    if IN_CLONE and os.access(source, os.W_OK):
        return source
    digest = hashlib.sha256()
    for file in sorted(source.rglob("*")):
        if file.is_file() and "build" not in file.relative_to(source).parts:
            digest.update(f"{file.relative_to(source)} ".encode() + file.read_bytes())
    return Path(os.environ.get(BUILDS) or _of_user()) / f"{name}-{digest.hexdigest()[:12]}"


def _of_user() -> Path:
    if os.geteuid() == 0:
        return CACHE
    cache = os.environ.get("XDG_CACHE_HOME")
    return (Path(cache) if cache else Path.home() / ".cache") / "testbed"
