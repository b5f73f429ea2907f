"""The live page: updates a second, what they cost a load, and what an open page costs while nobody looks."""

from __future__ import annotations

import http.client
import json
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from urllib.parse import urlsplit

from benchmarks.table import Figure, median_text, progress
from benchmarks.telemetry import measure
from testbed.engines.lab.control.build import build_lab
from testbed.engines.lab.control.client import LabClient
from testbed.engines.lab.control.launch import read_start_time
from testbed.engines.lab.control.registry import Entry
from testbed.experiments.run.loads.context import Context
from testbed.planning import Plan, make_plan
from testbed.scenario import find_scenario, load_scenario
from testbed.ui.live.lab_source import LabSource
from testbed.ui.live.server import Page, listening_socket, serve_page

_SCENARIO, _DILATION = "torus8x8", 500
_LOOK = 5.0  # s
_FILES = ("", "live.css", "main.js", "fabric.js", "lab.js", "panel.js", "chart.js", "words.js", "fabric")


def live(runs: int) -> list[Figure]:
    """Figures of one lab, each as often as there are runs."""
    plan = make_plan(load_scenario(find_scenario(_SCENARIO), [f"lab.dilation={_DILATION}"]))
    progress(f"building {_SCENARIO}")
    with build_lab(plan) as lab, _page(lab, plan) as address:
        first, rates, idle = [], [], []
        for number in range(1, runs + 1):
            progress(f"run {number} of {runs}: nobody looks, then one viewer")
            idle.append(100 * _processor(_LOOK))
            first.append(_first_picture(address))
            rates.append(_updates(address))
        ratios, under = _cost(Context(plan, lab, {}, lambda name, text: None, progress), address, runs)
    name = f"{_SCENARIO} at dilation {_DILATION}"
    return [
        Figure(f"{name}: page, scripts, fabric and first reading (at most 1 s)", median_text(first, "s")),
        Figure(f"{name}: updates a second, no load (at least 5)", median_text(rates, "")),
        Figure(f"{name}: updates a second under load (at least 5)", median_text(under, "")),
        Figure(f"{name}: goodput with / without a viewer (at least 0.98)", median_text(ratios, "")),
        Figure(f"{name}: server while nobody looks (at most 5 %)", median_text(idle, "% of a processor")),
    ]


@contextmanager
def _page(lab: LabClient, plan: Plan) -> Iterator[str]:
    entry = Entry("bench", lab.namespaces.init, read_start_time(lab.namespaces.init), plan.scenario.name, plan.digest)
    page = Page(LabSource(plan, "bench", lambda: entry if entry.holds else None))
    with listening_socket(None) as listening, serve_page(page, listening) as address:
        yield address


def _processor(seconds: float) -> float:
    """The share of a processor that this program takes, whose other threads are the server's."""
    before = time.process_time()
    time.sleep(seconds)
    return (time.process_time() - before) / seconds


@contextmanager
def _readings(address: str) -> Iterator[Iterator[float]]:
    """When each reading came."""
    where = urlsplit(address)
    with closing(http.client.HTTPConnection(str(where.hostname), where.port, timeout=30)) as connection:
        connection.request("GET", f"{where.path}events")
        with connection.getresponse() as answer:
            yield (
                time.monotonic() for line in answer if line.startswith(b"data: ") and "reading" in json.loads(line[6:])
            )


def _first_picture(address: str) -> float:
    where, began = urlsplit(address), time.monotonic()
    with closing(http.client.HTTPConnection(str(where.hostname), where.port, timeout=30)) as connection:
        for name in _FILES:
            connection.request("GET", where.path + name)
            connection.getresponse().read()
    with _readings(address) as readings:
        return next(readings) - began


def _updates(address: str) -> float:
    with _readings(address) as readings:
        began = next(readings)
        for count, at in enumerate(readings, 1):
            if at - began > _LOOK:
                return count / (at - began)
    raise RuntimeError("the page has ended")


def _cost(context: Context, address: str, runs: int) -> tuple[list[float], list[float]]:
    """Goodput with a viewer over goodput without, in pairs of loads whose order alternates; updates meanwhile."""
    measure(context, watched=False)  # the first load makes caches
    ratios, rates = [], []
    for number in range(1, runs + 1):
        goodput = {}
        for looked_at in (False, True) if number % 2 else (True, False):
            progress(f"pair {number} of {runs}, {'with' if looked_at else 'without'} a viewer")
            found: list[float] = []
            stop = threading.Event()
            viewer = threading.Thread(target=_watch, args=(address, found, stop))
            if looked_at:
                viewer.start()
            goodput[looked_at] = measure(context, watched=False)[0]
            stop.set()
            if looked_at:
                viewer.join()
                rates.append((len(found) - 1) / (found[-1] - found[0]))
        ratios.append(goodput[True] / goodput[False])
    return ratios, rates


def _watch(address: str, found: list[float], stop: threading.Event) -> None:
    with _readings(address) as readings:
        for at in readings:
            found.append(at)
            if stop.is_set():
                return
