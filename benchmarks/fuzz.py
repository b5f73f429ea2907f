"""Feed the program what is nearly right, and store whatever it answers with anything but a sentence.

    make fuzz ARGS="--count 100000 --seed 3"
    make fuzz ARGS="--seconds 60 --only plan --only results"
    make fuzz ARGS="--seconds 1 --frames 20000"        # and frames into labs, as root
    make fuzz ARGS="--count 0 --certificates 100000"   # only false certificates, to their checker
    make fuzz ARGS="--count 0 --networks 100000"       # only networks, to `testbed audit`: 20 minutes or so
    make fuzz ARGS="--again .cache/fuzz/plan-1a2b3c.json"

What is found is made small and stored in .cache/fuzz, and when it is mended goes from there to tests/data/fuzz, whose
files a test feeds for ever. Exit code 1 where something was found.
"""

from __future__ import annotations

import argparse
import faulthandler
import functools
import hashlib
import json
import secrets
import sys
import time
import traceback
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

from benchmarks.command import ROOT
from benchmarks.fuzz_certificates import feed_certificates
from benchmarks.fuzz_frames import ENGINES, feed_frames
from benchmarks.fuzz_inputs import smaller
from benchmarks.fuzz_networks import Judged, draw_network, judge_networks, store_network
from benchmarks.fuzz_targets import TARGETS
from testbed.base.errors import TestbedError
from testbed.base.units import count_noun

FOLDER = ROOT / ".cache" / "fuzz"
_SLOW = 10.0  # seconds that an input may take, without those in which others had the processor
_HANGS = 60.0  # seconds by the clock after which the program says where it is, and ends
_BATCH = 100
_SHOWN = 20  # wrong certificates and networks that are stored


@dataclass(frozen=True)
class Finding:
    """An input that was not answered by a sentence.

    Attributes:
        target: key of TARGETS.
        given: the input.
        error: what happened, and where.
    """

    target: str
    given: Any
    error: str

    def store(self, number: int) -> Path:
        """Write it down; returns the file."""
        name = hashlib.sha256(self.error.encode()).hexdigest()[:8]
        file = FOLDER / f"{self.target}-{name}.json"
        said = {"target": self.target, "error": self.error, "seed": number, "given": self.given}
        file.write_text(json.dumps(said, indent=1))
        return file


class _TooSlowError(Exception):
    """An input took longer than it may."""


def feed(target: str, given: Any) -> None:
    """Give an input to a target.

    Raises:
        Exception: anything but a sentence came of it, or it took too long.
    """
    began = _own_time()
    try:
        TARGETS[target].feed(given)
    except TestbedError as error:
        str(error).encode("utf-8", "surrogatepass")
    took = _own_time() - began
    if took > _SLOW:
        raise _TooSlowError(f"it took {took:.0f} s")


def _own_time() -> float:
    """Seconds by the clock, less those for which this thread waited for a processor that others had."""
    try:
        waited = int(Path("/proc/thread-self/schedstat").read_text().split()[1])
    except OSError:  # the kernel does not count them
        waited = 0
    return time.monotonic() - waited / 1e9


def _place(error: Exception) -> str:
    """What an exception is and where in the project it was raised: two of one place are one finding."""
    if isinstance(error, _TooSlowError):
        return "too slow"
    frames = traceback.extract_tb(error.__traceback__)
    ours = [frame for frame in frames if f"{ROOT}/testbed" in frame.filename or f"{ROOT}/controllers" in frame.filename]
    last = (ours or frames)[-1]
    name = Path(last.filename)
    where = name.relative_to(ROOT) if name.is_relative_to(ROOT) else name.name
    return f"{type(error).__name__} at {where}:{last.lineno}"


class _Search:
    """The search of one target, a batch at a time."""

    def __init__(self, target: str, number: int, until: float) -> None:
        self.target = target
        self.count = 0
        self.findings: list[Finding] = []
        self._number, self._until = number, until
        self._known: set[str] = set()

    def batch(self, count: int) -> None:
        """Draw some more."""
        for _ in range(count):
            if time.monotonic() > self._until:
                return
            given = TARGETS[self.target].draw(Random(f"{self._number} {self.target} {self.count}"))
            self.count += 1
            told = self._told(given)
            where = told.partition(": ")[0]
            if told and where not in self._known:
                self._known.add(where)
                least = smaller(given, functools.partial(self._leads_to, where))
                self.findings.append(Finding(self.target, least, self._told(least)))

    def _leads_to(self, where: str, given: Any) -> bool:
        return self._told(given).partition(": ")[0] == where

    def _told(self, given: Any) -> str:
        """What an input leads to, and where; empty where that is a sentence."""
        with _watched(self.target, given):
            try:
                feed(self.target, given)
            except Exception as error:
                return f"{_place(error)}: {str(error)[:300]}"
        return ""


@contextmanager
def _watched(target: str, given: Any) -> Iterator[None]:
    """End the program where an input never ends, with the place and the input told."""
    (FOLDER / "current.json").write_text(json.dumps({"target": target, "given": given}))
    faulthandler.dump_traceback_later(_HANGS, exit=True)
    try:
        yield
    finally:
        faulthandler.cancel_dump_traceback_later()


def _certificates(count: int, seed: int) -> tuple[int, int]:
    """Check changed plans and certificates, and say what came of it; returns how many, and how many were wrong."""
    found = feed_certificates(count, seed)
    done, no = sum(found.counts.values()), sum(found.refused.values())
    told = Counter(truth for _, truth in found.judged.elements())
    sys.stdout.write(
        f"{'certificates':15} {done:8,} of {len(found.counts)} kinds: {no:,} refused, {done - no:,} accepted, "
        f"{len(found.wrong)} of these wrongly; of {sum(told.values()):,} judged {told['true']:,} true, "
        f"{told['false']:,} false, {told['unknown']:,} of which an interpreter cannot tell\n"
    )
    for kind, plan, certificate in found.wrong[:_SHOWN]:
        name = hashlib.sha256(json.dumps([kind, plan, certificate]).encode()).hexdigest()[:8]
        file = FOLDER / f"certificate-{name}.json"
        file.write_text(json.dumps({"kind": kind, "seed": seed, "plan": plan, "certificate": certificate}))
        sys.stdout.write(f"  {kind}: {file}\n")
    return done, len(found.wrong)


def _networks(count: int, seed: int, first: int) -> tuple[int, int]:
    """Audit random networks beside a model of 802.1Q; returns how many, and of how many the two do not say the same."""
    began = shown = time.monotonic()
    found = Judged(0, Counter(), [])
    try:
        for found in judge_networks(count, seed, first):
            if time.monotonic() - shown > 5:
                shown = time.monotonic()
                sys.stderr.write(
                    f"{found.done:,} networks in {shown - began:.0f} s, {count_noun(len(found.wrong), 'finding')}\n"
                )
    except KeyboardInterrupt:
        sys.stderr.write("interrupted; what was found until then:\n")
    for number, dialect, said in found.wrong[:_SHOWN]:
        folder = store_network(draw_network(seed, number), FOLDER / "networks" / f"{seed}-{number}", said)
        sys.stdout.write(f"{dialect}: {said[0]}\n  testbed audit {folder}\n")
        sys.stdout.write(f"  make fuzz ARGS='--count 0 --networks 1 --first {number} --seed {seed}'\n")
    told = ", ".join(f"{number:,} {what}" for what, number in sorted(found.counts.items()))
    sys.stdout.write(f"{'networks':15} {found.done:8,} ({told}), {count_noun(len(found.wrong), 'finding')}\n")
    return found.done, len(found.wrong)


def _frames(engine: str, count: int, seed: int) -> tuple[int, int]:
    """Send frames into a lab; returns how many, and how many times something was wrong."""
    done = wrongs = 0
    for batch, wrong in feed_frames(engine, count, seed):
        done += batch
        if wrong:
            wrongs += 1
            sys.stdout.write(f"{wrong}\n")
    sys.stdout.write(f"{'frames, ' + engine:15} {done:8,} inputs, {count_noun(wrongs, 'finding')}\n")
    return done, wrongs


def main() -> None:
    """Search until the time or the inputs are used up."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, help="how long; default 60, or as long as --count takes")
    parser.add_argument("--count", type=int, help="how many inputs")
    parser.add_argument("--seed", type=int, default=secrets.randbelow(1 << 32))
    parser.add_argument("--only", action="append", choices=list(TARGETS), help="a target; may be given again")
    parser.add_argument("--frames", type=int, default=0, help="also so many into a lab of each engine; needs root")
    parser.add_argument("--certificates", type=int, default=0, help="also so many changed plans and certificates")
    parser.add_argument("--networks", type=int, default=0, help="also so many random networks, to testbed audit")
    parser.add_argument("--first", type=int, default=0, help="number of the first of these, to see one again")
    parser.add_argument("--again", type=Path, help="feed a stored finding, and show what comes of it")
    asked = parser.parse_args()
    if asked.again is not None:
        said = json.loads(asked.again.read_text())
        feed(said["target"], said["given"])
        sys.stdout.write("it is answered by a sentence\n")
        return
    names = asked.only or list(TARGETS)
    seconds = asked.seconds or (60.0 if asked.count is None else 1e9)
    sys.stdout.write(f"the seed is {asked.seed}; the same inputs again: --seed {asked.seed}\n")
    FOLDER.mkdir(parents=True, exist_ok=True)
    began = time.monotonic()
    searches = [_Search(name, asked.seed, began + seconds) for name in names]
    most = 1 << 60 if asked.count is None else asked.count
    weight = sum(TARGETS[name].share for name in names)
    shown = began
    while time.monotonic() < began + seconds and (count := sum(s.count for s in searches)) < most:
        left = max(1, most - count)
        for search in searches:
            share = TARGETS[search.target].share / weight
            search.batch(max(1, min(int(_BATCH * share * len(names)), int(left * share) + 1)))
            if time.monotonic() - shown > 5:
                shown = time.monotonic()
                done, found = sum(s.count for s in searches), sum(len(s.findings) for s in searches)
                sys.stderr.write(f"{done:,} inputs in {shown - began:.0f} s, {count_noun(found, 'finding')}\n")
    findings = [finding for search in searches for finding in search.findings]
    for finding in findings:
        sys.stdout.write(f"{finding.error}\n  make fuzz ARGS='--again {finding.store(asked.seed)}'\n")
    for search in searches:
        sys.stdout.write(
            f"{search.target:15} {search.count:8,} inputs, {count_noun(len(search.findings), 'finding')}\n"
        )
    (FOLDER / "current.json").unlink(missing_ok=True)
    total, broken = sum(search.count for search in searches), 0
    if asked.certificates:
        count, broken = _certificates(asked.certificates, asked.seed)
        total += count
    if asked.networks:
        count, wrongs = _networks(asked.networks, asked.seed, asked.first)
        total, broken = total + count, broken + wrongs
    for engine in ENGINES if asked.frames else ():
        count, wrongs = _frames(engine, asked.frames, asked.seed)
        total, broken = total + count, broken + wrongs
    bad = len(findings) + broken
    sys.stdout.write(f"{total:,} inputs in {time.monotonic() - began:.0f} s: {bad} without a sentence, or wrong\n")
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        sys.exit(130)
