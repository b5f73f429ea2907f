"""Labs that `testbed up` builds and leaves running: a small file each in a folder, from before anything starts."""

from __future__ import annotations

import fcntl
import json
import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import MISSING, asdict, dataclass, fields
from pathlib import Path

from testbed.base.errors import CapabilityError, InputError, LabError, argument, did_you_mean
from testbed.base.files import read_text, write_whole
from testbed.base.limits import parse_json
from testbed.engines.lab.control import record_folder
from testbed.engines.lab.control.launch import NOT_YOURS, Lab, Namespaces, labs, read_start_time

FOLDER = record_folder.find_folder()
OTHER_RECORDS = "kvm-"  # how names of files begin there that are not of labs
_LOCK = ".lock"
_REMEDY = "set XDG_RUNTIME_DIR to a folder of your own" if os.geteuid() else "make it writable"
_LONGEST = 100  # bytes; a file is named after it
_GIVE_UP = 30.0  # seconds that a program has to end the lab it is building
_PAUSE = 0.01


@dataclass(frozen=True, slots=True)
class Entry:
    """A running lab."""

    name: str  # of the lab
    init: int  # pid of its process 1
    born: int  # start time of that process in clock ticks, so that a recycled pid is not taken for it
    scenario: str  # its scenario's name
    digest: str  # of its plan
    owner: int = 0  # pid of the program that measures in it and ends it; 0 = none, it was left running

    @property
    def namespaces(self) -> Namespaces:
        """The lab's namespaces."""
        return Namespaces(self.init)

    @property
    def seconds(self) -> float:
        """How long process 1 has run, by a clock that nobody sets."""
        return time.clock_gettime(time.CLOCK_BOOTTIME) - self.born / os.sysconf("SC_CLK_TCK")

    @property
    def holds(self) -> bool:
        """Whether the lab still is."""
        return self.namespaces.is_alive() and read_start_time(self.init) == self.born


@dataclass(frozen=True, slots=True)
class NameReservation:
    """A name that a program has taken for the lab it is building."""

    name: str  # of the lab
    owner: int  # pid of the program
    owner_born: int  # its start time in clock ticks

    @property
    def holds(self) -> bool:
        """Whether the program still runs; if not, its lab has ended with it."""
        return read_start_time(self.owner) == self.owner_born


def check_name(name: str) -> None:
    """Refuse a name that no lab can have.

    Raises:
        InputError: it cannot be the name of a file.
    """
    if not name.replace("-", "").replace("_", "").isalnum():
        raise InputError.one(argument("name"), f'should be letters, digits, "-" and "_", not "{name[:_LONGEST]}"')
    if len(name.encode()) > _LONGEST:
        raise InputError.one(argument("name"), f"should be {_LONGEST} letters at most, not {len(name.encode())}")


@contextmanager
def reserve_name(name: str) -> Iterator[None]:
    """Hold a name, while its lab is built in the block, which ends in `register`.

    Raises:
        InputError: a lab of that name is running, or being built.
        CapabilityError: records cannot be written.
    """
    with _lock_records():
        held = _read(_file(name))
        if isinstance(held, Entry) and held.holds:
            raise InputError.one(
                name,
                f"a lab of that name is already running; end it with `testbed down {name}`, or give this one another "
                f"{argument('name')}",
            )
        if isinstance(held, NameReservation) and held.holds:
            another = f"give this one another {argument('name')}"
            sentence = f"a lab of that name is being built by process {held.owner}; {another}"
            raise InputError.one(name, sentence)
        claim = NameReservation(name, os.getpid(), read_start_time(os.getpid()))
        _write(claim)
    try:
        yield
    except BaseException:
        with _lock_records():
            if _read(_file(name)) == claim:
                _file(name).unlink(missing_ok=True)
        raise


def register(name: str, namespaces: Namespaces, scenario: str, digest: str) -> None:
    """Record a lab that is built, and let it outlive this program."""
    with _lock_records():
        _write(Entry(name, namespaces.init, read_start_time(namespaces.init), scenario, digest))
    namespaces.detach()


def forget(entry: Entry) -> None:
    """Remove the record of a lab, unless another has taken its name."""
    with _lock_records():
        if _read(_file(entry.name)) == entry:
            _file(entry.name).unlink(missing_ok=True)


def entries() -> list[Entry]:
    """All running labs; records of labs that have died are removed where that is allowed."""
    return [one for one in _read_held_records() if isinstance(one, Entry)]


def in_use() -> list[Entry]:
    """Labs in which a program measures, such as those of `testbed run`: named after their scenarios, in no record.

    Of several with one scenario the oldest has its bare name, which it so keeps when others begin.
    """
    recorded = entries()
    known, names = {entry.init for entry in recorded}, {entry.name for entry in recorded}
    building = {claim.owner for claim in being_built()}
    found = []
    for lab in sorted(labs(), key=lambda one: (read_start_time(one.init), one.init)):
        if lab.init in known or lab.owner in building or not lab.has_owner or not lab.namespaces.is_listening():
            continue
        name = lab.scenario if lab.scenario not in names else f"{lab.scenario}-{lab.owner}"
        names.add(name)
        found.append(Entry(name, lab.init, read_start_time(lab.init), lab.scenario, "", lab.owner))
    return found


def running() -> list[Entry]:
    """All labs that can be looked into: those left running, and those in which a program measures."""
    return [*entries(), *in_use()]


def being_built() -> list[NameReservation]:
    """Names of labs that are being built."""
    return [one for one in _read_held_records() if isinstance(one, NameReservation)]


def list_orphans() -> list[Lab]:
    """Labs that are in no record and whose program is gone."""
    known = {entry.init for entry in entries()}
    return [lab for lab in labs() if lab.init not in known and not lab.has_owner]


def find(name: str | None) -> Entry:
    """Return the lab of a name, or the only one: of those left running, and where there is none of those in use.

    Raises:
        InputError: there is none, or several and no name.
    """
    standing, used = entries(), in_use()
    found = [*standing, *used]
    names = [entry.name for entry in found]
    if name is None and len(standing or used) == 1:
        return (standing or used)[0]
    if name is not None and (owner := next((one.owner for one in being_built() if one.name == name), None)):
        raise InputError.one(name, f"is still being built, by process {owner}")
    if not found:
        others = "; of another user's labs, such as root's, that user asks" if os.geteuid() else ""
        raise InputError.one(name or "", f"no lab is running; build one with `testbed up NAME`{others}")
    if name is None:
        raise InputError.one("", f"several labs are running, so give a name: {', '.join(names)}")
    for entry in found:
        # The longer name of a lab in use stays its own when the other lab of that scenario has ended.
        if name == entry.name or (entry.owner and name == f"{entry.scenario}-{entry.owner}"):
            return entry
    raise InputError.one(name, f"no running lab of that name.{did_you_mean(name, names)} Running: {', '.join(names)}")


def find_standing(name: str | None) -> Entry:
    """As find(), for who wants to end it.

    Raises:
        InputError: also where a program measures in it.
    """
    entry = find(name)
    if entry.owner:
        sentence = f"process {entry.owner} measures in it and ends it; interrupt that: kill -INT {entry.owner}"
        raise InputError.one(entry.name, sentence)
    return entry


@contextmanager
def loading(entry: Entry) -> Iterator[None]:
    """Keep other programs from loading a lab in the block, which would change what this one measures.

    Raises:
        InputError: a program measures in it already.
    """
    if entry.owner:
        raise InputError.one(entry.name, f"process {entry.owner} measures in it; wait for its end")
    with _file(entry.name).open() as record:
        try:
            fcntl.flock(record, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise InputError.one(entry.name, "another program loads it; wait for its end") from error
        yield


def kill_builder(claim: NameReservation) -> None:
    """End the program that is building a lab, and with it the lab.

    Raises:
        CapabilityError: records cannot be written.
        LabError: it does not end.
    """
    for number in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.kill(claim.owner, number)
        except ProcessLookupError:
            pass
        except PermissionError as error:
            raise CapabilityError(NOT_YOURS) from error
        until = time.monotonic() + _GIVE_UP
        while claim.holds and time.monotonic() < until:
            time.sleep(_PAUSE)
        if not claim.holds:
            break
    until = time.monotonic() + _GIVE_UP
    while any(lab.owner == claim.owner for lab in labs()) and time.monotonic() < until:
        time.sleep(_PAUSE)
    if claim.holds:
        raise LabError(f"process {claim.owner}, which builds the lab {claim.name}, does not end")


@contextmanager
def _lock_records() -> Iterator[None]:
    """Let one program at a time change records.

    Raises:
        CapabilityError: records cannot be written.
    """
    try:
        record_folder.make(FOLDER)
        handle = os.open(FOLDER / _LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        sentence = f"{FOLDER} cannot be written ({error.strerror}), so no lab can be left running; {_REMEDY}"
        raise CapabilityError(sentence) from error
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def _read_held_records() -> list[Entry | NameReservation]:
    found: list[Entry | NameReservation] = []
    stale: list[Entry | NameReservation] = []
    record_folder.check(FOLDER)
    for file in sorted(FOLDER.glob("*.json")):
        one = _read(file)
        if one is not None:
            (found if one.holds else stale).append(one)
    if stale and os.access(FOLDER, os.W_OK):
        with _lock_records():
            for one in stale:
                if _read(_file(one.name)) == one:  # nobody has taken the name since
                    _file(one.name).unlink(missing_ok=True)
    return found


def _file(name: str) -> Path:
    return FOLDER / f"{name}.json"


def _read(file: Path) -> Entry | NameReservation | None:
    try:
        return _parse_record(file)
    except (OSError, ValueError):
        return None  # there is none, or it is told by damaged()


def _parse_record(file: Path) -> Entry | NameReservation:
    """What a record says.

    Raises:
        OSError: it cannot be read.
        ValueError: it is no record; the text says why.
    """
    facts = parse_json(read_text(file))
    if not isinstance(facts, dict):
        raise ValueError("it should be a JSON object")
    kind = Entry if "init" in facts else NameReservation
    known = {one.name: int if one.type == "int" else str for one in fields(kind)}
    required = [one.name for one in fields(kind) if one.default is MISSING]
    lacking = [name for name in required if name not in facts]
    if lacking:
        raise ValueError(f"it lacks {', '.join(lacking)}")
    said = {name: value for name, value in facts.items() if name in known}  # another version may have written more
    for name, value in said.items():
        if type(value) is not known[name]:
            raise ValueError(f"its {name} should be {'a whole number' if known[name] is int else 'text'}")
    if facts["name"] != file.stem:
        raise ValueError(f"it is of the lab {facts['name'][:_LONGEST]!r}")
    return kind(**said)


def list_damaged() -> list[str]:
    """Records that nothing can be learned from, each as a sentence with what to do."""
    found = []
    for file in sorted(FOLDER.glob("*.json")):
        if file.name.startswith(OTHER_RECORDS):
            continue
        try:
            _parse_record(file)
        except FileNotFoundError:
            continue  # its lab has just ended
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or error
            found.append(
                f"{file}: is damaged: {reason}; remove it (rm {file}), and end what runs without a record with "
                "`testbed down --all`"
            )
    return found


def _write(record: Entry | NameReservation) -> None:
    try:
        write_whole(_file(record.name), json.dumps(asdict(record)).encode(), mode=0o644)
    except OSError as error:
        raise CapabilityError(f"{_file(record.name)} cannot be written: {error.strerror}") from error
