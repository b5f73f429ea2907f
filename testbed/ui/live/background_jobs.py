"""What buttons begin that takes longer than an answer: a load, and links that go off by traffic. One of each."""

from __future__ import annotations

import shlex
import threading
from collections.abc import Callable
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path

from testbed.base.errors import InputError, TestbedError
from testbed.engines.connect_lab import connect
from testbed.engines.lab.control import registry
from testbed.engines.lab.control.client import LabClient
from testbed.experiments.regulate import WATCHED, regulate_lab
from testbed.experiments.regulate.power import models_for
from testbed.experiments.run.advice import AskedOfLab
from testbed.experiments.run.checks.fidelity import Verdict
from testbed.experiments.run.load_arguments import as_typed, read_loads
from testbed.experiments.run.load_lab import load_lab, loads_plan
from testbed.planning import Plan
from testbed.ui.live.lab_source import LabSource
from testbed.ui.live.log_line import Line

_RESULTS = Path("results")  # in the folder in which the page was opened, as `testbed load` has it
_LONGEST = 1000  # characters of the words of a load

Work = Callable[[Callable[[str], None]], tuple[str, bool]]


@dataclass(slots=True)
class _Job:
    """Something that is under way."""

    lab: LabClient  # a connection of its own
    step: str = "begins"  # how far it is
    stopped: bool = False  # whether somebody has ended it
    thread: threading.Thread | None = None


class Jobs:
    """Long work in one lab, each in a thread and over a connection of its own.

    Args:
        source: the lab.
        tell: is given the line of what came of it, from that thread.
    """

    def __init__(self, source: LabSource, tell: Callable[[Line], object]) -> None:
        self._source, self._tell = source, tell
        self._lock = threading.Lock()
        self._jobs: dict[str, _Job] = {}

    @property
    def steps(self) -> dict[str, str]:
        """How far what is under way is, by what it is: `load` or `regulation`."""
        with self._lock:
            return {what: job.step for what, job in self._jobs.items()}

    def load(self, text: str) -> Line:
        """Run loads as `testbed load` does; no words = those of the lab's scenario.

        Raises:
            TestbedError: they are no loads, do not go with this lab, or one runs.
        """
        words = _split_words(text)
        loads = read_loads(words, [self._source.name])
        command = self._source.command("load", *words)

        def prepare(job: _Job) -> Work:
            lab = job.lab
            try:
                plan = loads_plan(lab, loads)
            except InputError as error:
                raise InputError([as_typed(problem) for problem in error.problems]) from error
            asked = AskedOfLab((self._source.name, *words))

            def work(progress: Callable[[str], None]) -> tuple[str, bool]:
                outcome = load_lab(lab, plan, _RESULTS, progress, asked)
                reasons = "".join(f"; {reason}" for reason in outcome.reasons)
                said = f"verdict: {outcome.verdict.word}{reasons}; results: {outcome.folder}"
                return said, outcome.verdict not in (Verdict.PASS, Verdict.WARN)

            return work

        return self._begin(command, "load", "the load runs", prepare)

    def regulate(self, *, all_on: bool) -> Line:
        """Switch links off that the traffic of now does not need, or all on again.

        Raises:
            TestbedError: this lab cannot, or that is under way.
        """
        words = ("--all-on",) if all_on else ("--seconds", f"{WATCHED:g}")
        command = self._source.command("regulate", "--running", *words)
        said = "waking links" if all_on else "watching the traffic"
        return self._begin(
            command, "regulation", said, lambda job: self._regulation(job, self._source.plan, all_on=all_on)
        )

    def _regulation(self, job: _Job, plan: Plan, *, all_on: bool) -> Work:
        lab = job.lab
        reason = regulate_lab.why_not(lab, plan)
        if reason:
            raise InputError.one("regulate", reason)
        if bool(regulate_lab.off_now(lab)) is not all_on:
            raise InputError.one("regulate", "all links are on" if all_on else "links are off already; switch all on")
        (model, *_) = models_for(plan, None)

        def work(progress: Callable[[str], None]) -> tuple[str, bool]:
            if all_on:
                found = regulate_lab.restore_links(lab, plan, model, progress)
            else:
                found = regulate_lab.switch_off(lab, plan, model, WATCHED, progress, goes_on=lambda: not job.stopped)
            return regulate_lab.describe_result(found), False

        return work

    def stop(self) -> Line:
        """End what is under way, as Ctrl-C does; the lab goes on.

        Raises:
            InputError: nothing is.
        """
        with self._lock:
            under_way = list(self._jobs.values())
            for job in under_way:
                job.stopped = True
                job.lab.abort()
        if not under_way:
            raise InputError.one("end", "nothing is under way")
        return Line("", "ending what is under way")

    def close(self) -> None:
        """End what is under way, and wait for that."""
        with self._lock:
            threads = [job.thread for job in self._jobs.values()]
        if threads:
            with suppress(InputError):  # it has just ended
                self.stop()
        for thread in threads:
            if thread is not None:
                thread.join()

    def _begin(self, command: str, what: str, said: str, prepare: Callable[[_Job], Work]) -> Line:
        """Start work in the lab, unless such work is under way."""
        entry = self._source.entry()
        with ExitStack() as opened:
            job = _Job(connect(entry.namespaces))
            opened.callback(job.lab.close)
            with self._lock:
                if what in self._jobs:
                    raise InputError.one(what, "one is under way; end it first, or wait for its end")
                self._jobs[what] = job
            opened.callback(self._forget, what)
            if what == "load":
                opened.enter_context(registry.loading(entry))
            work = prepare(job)
            held = opened.pop_all()
        job.thread = threading.Thread(
            target=self._run, args=(command, job, work, held), name=f"{what} of the page", daemon=True
        )
        job.thread.start()
        return Line(command, said)

    def _run(self, command: str, job: _Job, work: Work, held: ExitStack) -> None:
        def progress(step: str) -> None:
            job.step = step

        with held:
            try:
                said, wrong = work(progress)
            except TestbedError as error:
                said, wrong = ("ended", False) if job.stopped else (str(error), True)
        self._source.refresh_lab()
        self._tell(Line(command, said, wrong))

    def _forget(self, what: str) -> None:
        with self._lock:
            del self._jobs[what]


def _split_words(text: str) -> list[str]:
    """Words as a shell takes them.

    Raises:
        InputError: it would not.
    """
    if len(text) > _LONGEST:
        raise InputError.one("load", f"should be {_LONGEST} characters at most")
    try:
        return shlex.split(text)
    except ValueError as error:
        raise InputError.one(
            "load", f"{error}; write words as for testbed load, such as iperf3 protocol=udp"
        ) from error
