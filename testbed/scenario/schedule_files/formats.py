"""The formats of schedules of messages, and which one a file is in."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePath

from testbed.base.errors import InputError
from testbed.base.files import read_text
from testbed.base.limits import FABRIC_FILE
from testbed.fabric.schedules import Schedule
from testbed.fabric.topologies.any_graph import quote_name
from testbed.scenario.named_files import leads_out
from testbed.scenario.schedule_files import goal, htsim, simgrid_ti


@dataclass(frozen=True, slots=True)
class ScheduleFormat:
    """One entry of the table."""

    read: Callable[[str, Callable[[str], str]], Schedule]  # of a text, and of what returns the text of a file beside it
    constructs: Mapping[str, str]  # of the format → what the reader does with each
    begins: re.Pattern[str]  # what is in such a file and in none of the formats that come after it
    of: str  # what writes or reads such files


SCHEDULE_FORMATS: dict[str, ScheduleFormat] = {
    "goal": ScheduleFormat(
        lambda text, beside: goal.read_goal(text), goal.CONSTRUCTS, re.compile(r"^\s*num_ranks\s", re.MULTILINE),
        "LogGOPSim, Schedgen",
    ),
    "htsim": ScheduleFormat(
        lambda text, beside: htsim.read_htsim(text), htsim.CONSTRUCTS, re.compile(r"^\s*Nodes\s+[0-9]", re.MULTILINE),
        "htsim, connection matrices",
    ),
    "simgrid": ScheduleFormat(
        simgrid_ti.read_simgrid_ti, simgrid_ti.CONSTRUCTS,
        re.compile(r"^\s*p?[0-9]+\s+[a-z]+|\A(?:\s*[^\s]+\.(?:txt|trace)\s*$)+", re.MULTILINE),
        "SimGrid, time-independent traces",
    ),
}  # fmt: skip


def read_schedule(file: Path) -> Schedule:
    """Read a schedule; what a list of files names is looked for in its folder alone.

    Raises:
        InputError: it cannot be read, is in no known format, or all that is wrong with it.
    """
    text = _read(file, None, str(file))

    def read_beside(name: str) -> str:
        if leads_out(name):
            raise InputError.one(quote_name(name), "lies outside of the folder of the list; put it there")
        for one in dict.fromkeys((name, PurePath(name).name)):
            if (file.parent / one).is_file():
                return _read(file.parent / one, file.parent, quote_name(name))
        raise InputError.one(quote_name(name), f"there is no such file in {file.parent}")

    try:
        for entry in SCHEDULE_FORMATS.values():
            if entry.begins.search(text):
                return entry.read(text, read_beside)
        known = ", ".join(entry.of for entry in SCHEDULE_FORMATS.values())
        raise InputError.one("", f"is in no known format of schedules; known are those of {known}")
    except InputError as error:
        raise InputError([problem.in_file(str(file)) for problem in error.problems]) from error


def _read(file: Path, folder: Path | None, place: str) -> str:
    try:
        return read_text(file, folder, most=FABRIC_FILE)
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise InputError.one(place, f"cannot be read: {reason}") from error
