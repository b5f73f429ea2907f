"""Groups of processes that share a limited part of the processors: one for each host of a lab, by Linux' cgroups.

Both versions are spoken: `cpu.cfs_quota_us` and `cpu.cfs_period_us` of version 1, `cpu.max` of version 2. The kernel
does not remove groups with the lab's namespaces. So process 1 of a lab holds a lock on the lab's group as long as it
lives, and whoever finds a group of that name without a lock removes it: the program that ended the lab, or the next
one that starts a lab.
"""

from __future__ import annotations

import fcntl
import os
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import count
from pathlib import Path

from testbed.base.errors import LabError
from testbed.engines.lab.hosts.commands import build_join_command, run

_MOUNTS = Path("/proc/self/mountinfo")
_OWN_GROUPS = Path("/proc/self/cgroup")
_PREFIX = "testbed-lab-"
# The kernel's limits are 1 ms for what a period gives and 1 s for the period. Below 10 ms the ticks of its clock,
# which are up to 10 ms apart, make it inexact.
_MIN_QUOTA, _MIN_PERIOD = 1_000, 10_000
CAPABILITY = "processor shares"
CONSEQUENCE = "hosts cannot be given a share of the processors (lab.cpu_share)"
REMEDY = (
    "run outside a container, on a kernel with CONFIG_CFS_BANDWIDTH; where only version 2 is mounted, "
    "`echo +cpu >/sys/fs/cgroup/cgroup.subtree_control`; without root in a group that is given to you, as "
    "systemd-run makes one of a user's own (docs/rootless.md)"
)
_TRIAL_SHARE = 0.5
_TRIAL_LIMIT = 10.0


@dataclass(frozen=True, slots=True)
class Limit:
    """How much processor time a group gets."""

    quota: int  # µs of processor time in each period
    period: int  # µs

    @classmethod
    def from_share(cls, share: float) -> Limit:
        """The limit with the shortest period that is exact, so that hosts pause as briefly as can be.

        `share`: processors, 0.001 or more.
        """
        period = max(_MIN_PERIOD, round(_MIN_QUOTA / share))
        return cls(max(_MIN_QUOTA, round(share * period)), period)

    @property
    def share(self) -> float:
        """Processors."""
        return self.quota / self.period


@dataclass(frozen=True, slots=True)
class Hierarchy:
    """A mounted hierarchy of groups that can limit processor time."""

    root: Path  # where it is mounted
    version: int  # 1 or 2

    def write_limit(self, group: Path, limit: Limit) -> None:
        """Set a group's limit."""
        if self.version == 1:
            # A period that is short for the old quota is refused, so the quota goes first, by way of none.
            (group / "cpu.cfs_quota_us").write_text("-1")
            (group / "cpu.cfs_period_us").write_text(str(limit.period))
            (group / "cpu.cfs_quota_us").write_text(str(limit.quota))
        else:
            (group / "cpu.max").write_text(f"{limit.quota} {limit.period}")

    def read_limit(self, group: Path) -> Limit | None:
        """A group's limit as the kernel has it; None = it has none."""
        if self.version == 1:
            names = ("cpu.cfs_quota_us", "cpu.cfs_period_us")
            quota, period = ((group / name).read_text().strip() for name in names)
        else:
            quota, period = (group / "cpu.max").read_text().split()
        return None if quota in ("-1", "max") else Limit(int(quota), int(period))


def find_hierarchy() -> Hierarchy | None:
    """The mounted hierarchy that has the controller of processor time, or None."""
    try:
        lines = _MOUNTS.read_text().splitlines()
    except OSError:
        return None
    found = None
    for line in lines:
        before, _, after = line.partition(" - ")
        kind, _, options = after.split(" ", 2)
        # Blanks and the like are written \040 there.
        place = Path(re.sub(r"\\([0-7]{3})", lambda octal: chr(int(octal[1], 8)), before.split(" ")[4]))
        # What is mounted may be covered by something else.
        if kind == "cgroup" and "cpu" in options.split(",") and (place / "cgroup.procs").exists():
            return Hierarchy(_find_given(place, 1), 1)
        if kind == "cgroup2" and found is None and "cpu" in _words(place / "cgroup.controllers"):
            found = Hierarchy(_find_given(place, 2), 2)
    return found


def _find_given(root: Path, version: int) -> Path:
    """The group under which this program may make others: the hierarchy's first one, or the nearest that it is given.

    In version 2 a group with processes has no others in it, so that its own group is not asked there.
    """
    if os.access(root, os.W_OK):
        return root
    for line in _words(_OWN_GROUPS):
        number, names, path = line.split(":", 2)
        if (version == 2 and number == "0") or (version == 1 and "cpu" in names.split(",")):
            own = root / path.lstrip("/")
            for group in [own, *own.parents][version - 1 :]:
                if not group.is_relative_to(root):
                    break
                if os.access(group, os.W_OK) and os.access(group / "cgroup.procs", os.W_OK):
                    return group
    return root


class LabGroup:
    """The groups of one lab's hosts; they last until this process ends and somebody calls `remove_stale`.

    Raises:
        LabError: they cannot be made.
    """

    def __init__(self, hierarchy: Hierarchy, name: str) -> None:
        self.hierarchy = hierarchy
        self._limits: dict[str, Limit] = {}
        try:
            self.folder, self._lock = _locked_folder(hierarchy, name)
            if hierarchy.version == 2:
                (self.folder / "cgroup.subtree_control").write_text("+cpu")
        except OSError as error:
            raise LabError(f"no group of processes can be made in {hierarchy.root}: {error.strerror}") from error

    def limit(self, hosts: Sequence[str], share: float) -> None:
        """Give each host a share, making its group where there is none.

        Raises:
            LabError: it cannot be set.
        """
        wanted = Limit.from_share(share)
        try:
            for host in hosts:
                (self.folder / host).mkdir(exist_ok=True)
                self.hierarchy.write_limit(self.folder / host, wanted)
                self._limits[host] = wanted
        except OSError as error:
            raise LabError(f"{error.filename} cannot be set: {error.strerror}") from error

    def procs(self) -> dict[str, str]:
        """Host → the file that a process writes its number into to join the host's group."""
        return {host: str(self.folder / host / "cgroup.procs") for host in self._limits}

    def read_back(self) -> dict[str, Limit | None]:
        """Limits as the kernel has them, by host."""
        return {host: self.hierarchy.read_limit(self.folder / host) for host in self._limits}

    def problems(self) -> list[str]:
        """Differences between the limits asked for and the kernel's; one sentence each."""
        return limit_problems(self._limits, self.read_back())

    def remove(self) -> None:
        """Remove all groups; their processes must have ended."""
        for host in self._limits:
            (self.folder / host).rmdir()
        self.folder.rmdir()
        os.close(self._lock)


def limit_problems(wanted: Mapping[str, Limit], got: Mapping[str, Limit | None]) -> list[str]:
    """Compare limits asked for with the kernel's; one sentence a difference."""
    return [
        f"{host}: asked for {limit.quota} µs of processor time in {limit.period} µs, "
        f"the kernel has {_format_limit(got[host])}"
        for host, limit in wanted.items()
        if got[host] != limit
    ]


def _format_limit(limit: Limit | None) -> str:
    return "no limit" if limit is None else f"{limit.quota} in {limit.period}"


def remove_stale() -> None:
    """Remove the groups of labs that have ended, as far as this is root's; other groups are left alone."""
    hierarchy = find_hierarchy()
    if hierarchy is None or not os.access(hierarchy.root, os.W_OK):
        return
    for folder in hierarchy.root.glob(f"{_PREFIX}*"):
        with suppress(FileNotFoundError):  # somebody else was quicker
            handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                _remove(folder)
            except OSError:
                pass  # its lab lives, or the kernel is still ending its processes; the next one removes it
            finally:
                os.close(handle)


def _remove(folder: Path) -> None:
    for inner in folder.iterdir():
        if inner.is_dir():
            inner.rmdir()
    folder.rmdir()


def _locked_folder(hierarchy: Hierarchy, name: str) -> tuple[Path, int]:
    """Make a folder that no other process has, and lock it."""
    for number in count(1):
        folder = hierarchy.root / f"{_PREFIX}{name}-{number}"
        try:
            folder.mkdir()
        except FileExistsError:
            continue
        handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        fcntl.flock(handle, fcntl.LOCK_EX)
        if _is(folder, handle):
            return folder, handle
        os.close(handle)  # taken for stale and removed in between
    raise AssertionError("count() does not end")


def _is(folder: Path, handle: int) -> bool:
    try:
        return os.path.samestat(folder.stat(), os.fstat(handle))
    except FileNotFoundError:
        return False


def _words(file: Path) -> list[str]:
    try:
        return file.read_text().split()
    except OSError:
        return []


def try_shares() -> tuple[bool, str]:
    """Whether hosts can be given shares here: a group is made, limited, read back, entered, and removed.

    Returns:
        Whether it works, and what was found.
    """
    hierarchy = find_hierarchy()
    if hierarchy is None:
        return False, "no cgroup hierarchy with the controller cpu is mounted"
    if (hierarchy.root.parent / "cgroup.procs").exists():  # a group that is given to this user, not the first one
        with suppress(OSError):
            (hierarchy.root / "cgroup.subtree_control").write_text("+cpu")
    if hierarchy.version == 2 and "cpu" not in _words(hierarchy.root / "cgroup.subtree_control"):
        return False, f"{hierarchy.root} does not hand the controller cpu on to its groups"
    try:
        group = LabGroup(hierarchy, "trial")
        try:
            group.limit(["h1"], _TRIAL_SHARE)
            run(build_join_command(group.procs()["h1"], ["true"]), timeout=_TRIAL_LIMIT)
            problems = group.problems()
        finally:
            group.remove()
    except (LabError, OSError) as error:
        return False, str(error)
    return not problems, problems[0] if problems else f"version {hierarchy.version}, {hierarchy.root}"
