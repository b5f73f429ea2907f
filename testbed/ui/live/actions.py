"""What buttons of the page do: what commands do, by the same functions, and which command that would be."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from testbed.base.errors import InputError, TestbedError
from testbed.base.messages import LinkState, Tap
from testbed.engines.connect_lab import connect
from testbed.experiments.run.link_commands import LOST, describe_link, list_disturbances, read_words
from testbed.experiments.run.switch_kills import set_switch
from testbed.experiments.run.write_capture import CaptureFile, Recorded, record
from testbed.ui.live.background_jobs import Jobs
from testbed.ui.live.lab_source import LabSource, number_of
from testbed.ui.live.log_line import Line

_WORDS = ("rate", "delay", "loss")
_LONGEST = 40  # characters of a figure


class _StoppedError(Exception):
    """Somebody has stopped a capture."""


class Actions:
    """Buttons of one lab.

    Args:
        source: the lab.
        tell: is given lines that come later than the answer, from any thread.
    """

    def __init__(self, source: LabSource, tell: Callable[[Line], object]) -> None:
        self._source, self._tell = source, tell
        self._captures: dict[str, threading.Event] = {}
        self._threads: list[threading.Thread] = []
        self._lock = threading.Lock()
        self._jobs = Jobs(source, tell)

    @property
    def jobs(self) -> dict[str, str]:
        """How far what is under way for this page is, by what it is: `load` or `regulation`."""
        return self._jobs.steps

    @property
    def capturing(self) -> list[str]:
        """Names of links and hosts whose frames are being captured."""
        with self._lock:
            return sorted(self._captures)

    def do(self, asked: Mapping[str, Any]) -> Line:
        """Carry out what a page asks for.

        Raises:
            TestbedError: it cannot be done, or is no such thing.
        """
        kind = asked.get("do")
        if kind in ("down", "up", "reset", "change"):
            return self._change(kind, self._link(asked), asked)
        if kind in ("capture", "stop"):
            tap, where = self._place(asked)
            return self._capture(tap, where) if kind == "capture" else self._stop(where)
        if kind in ("kill", "start"):
            return self._switch(asked, up=kind == "start")
        if kind == "load":
            return self._jobs.load(str(asked.get("words", "")))
        if kind in ("regulate", "all on"):
            return self._jobs.regulate(all_on=kind == "all on")
        if kind == "end":
            return self._jobs.stop()
        kinds = "down, up, reset, change, capture, stop, kill, start, load, regulate, all on or end"
        raise InputError.one("do", f"should be {kinds}")

    def close(self) -> None:
        """Stop what is under way; files are whole afterwards."""
        with self._lock:
            for stop in self._captures.values():
                stop.set()
        for thread in self._threads:
            thread.join()
        self._jobs.close()

    def _switch(self, asked: Mapping[str, Any], *, up: bool) -> Line:
        """Kill a switch, or start it again."""
        source = self._source
        switch = number_of(str(asked.get("switch")), source.plan.wiring.switch_count, "switch")
        name, word = source.plan.wiring.switch_name(switch), "start" if up else "kill"
        source.ask(lambda lab: set_switch(lab, source.plan, switch, up=up, place=name))
        controller = source.ask(lambda lab: lab.facts.controller)
        source.refresh_lab()
        lost = f"; {LOST}" if not up and controller != "segment_manager" else ""
        return Line(source.command("switch", name, f"--{word}"), f"{name}: {'running' if up else 'killed'}{lost}")

    def _link(self, asked: Mapping[str, Any]) -> int:
        return number_of(str(asked.get("link")), self._source.plan.wiring.link_count, "link")

    def _place(self, asked: Mapping[str, Any]) -> tuple[Tap, str]:
        wiring = self._source.plan.wiring
        if "host" in asked:
            host = number_of(str(asked["host"]), wiring.host_count, "host")
            return Tap(host=host), wiring.host_name(host)
        link = self._link(asked)
        return Tap(link), wiring.channel_name(2 * link).replace("→", "-")

    def _change(self, kind: str, link: int, asked: Mapping[str, Any]) -> Line:
        source = self._source
        texts = {word: str(asked[word])[:_LONGEST] for word in _WORDS if asked.get(word)} if kind == "change" else {}
        if kind == "change" and not texts:
            raise InputError.one("change", "name a rate, a delay or a loss")
        words = read_words(texts, place="")
        name = source.plan.wiring.channel_name(2 * link).replace("→", "-")
        options = [f"--{kind}"] if kind != "change" else [one for word in texts for one in (f"--{word}", texts[word])]
        down, up, reset = kind == "down", kind == "up", kind == "reset"
        changes = source.ask(lambda lab: list_disturbances(lab, link, words, down=down, up=up, reset=reset, place=""))
        for change in changes:
            source.ask(lambda lab, change=change: lab.disturb(change))  # type: ignore[misc]
        state, controller = source.ask(lambda lab: (lab.link_states().get(link, LinkState()), lab.facts.controller))
        source.refresh_lab()
        lost = f"; {LOST}" if down and controller != "segment_manager" else ""
        return Line(source.command("link", name, *options), f"{name}: {describe_link(source.plan, link, state)}{lost}")

    def _capture(self, tap: Tap, where: str) -> Line:
        with self._lock:
            if where in self._captures:
                raise InputError.one(where, "is being captured already")
            self._captures[where] = stop = threading.Event()
        stack = ExitStack()
        try:
            name = self._free_name(where)
            lab = connect(self._source.entry().namespaces)
            stack.callback(lab.close)
            frames = stack.enter_context(lab.capture(tap))
            file = stack.enter_context(CaptureFile(name))
        except BaseException:
            stack.close()
            with self._lock:
                del self._captures[where]
            raise
        command = self._source.command("capture", where, "--file", name)

        def check_stopped(so_far: Recorded) -> None:
            del so_far
            if stop.is_set():
                raise _StoppedError

        def run() -> None:
            so_far, problem = Recorded(), ""
            with stack:
                try:
                    record(frames, file, so_far, progress=check_stopped)
                except _StoppedError:
                    pass
                except TestbedError as error:
                    problem = f"{error.sentence}; "
            with self._lock:
                del self._captures[where]
            lost = f"; {so_far.lost} further frames passed faster than they could be kept" if so_far.lost else ""
            said = f"{problem}{name} has {so_far.frames} frames, {so_far.bytes} bytes, of {so_far.seconds:.1f} s{lost}"
            self._tell(Line(command, said, bool(problem)))

        thread = threading.Thread(target=run, name=f"capture of {where}", daemon=True)
        self._threads.append(thread)
        thread.start()
        return Line(command, f"capturing {where} into {name}")

    def _free_name(self, where: str) -> str:
        """A file that is not there yet, in the folder in which the page was opened."""
        stem = f"{self._source.name}-{where.replace('#', '-')}"
        number = 1
        while Path(name := f"{stem}{'' if number == 1 else f'-{number}'}.pcapng").exists():
            number += 1
        return name

    def _stop(self, where: str) -> Line:
        with self._lock:
            stop = self._captures.get(where)
        if stop is None:
            raise InputError.one(where, "is not being captured")
        stop.set()
        return Line("", f"stopping the capture of {where}")
