"""What failures cost: the lab's times, what the controller says and what the probes saw, put together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from testbed.base.messages import ControllerStatus
from testbed.base.model import Topology
from testbed.experiments.run.checks.fidelity import Finding, Verdict
from testbed.experiments.run.loads.context import LoadResult
from testbed.planning.failover.failure_effects import Outlook
from testbed.results.samples import Failure
from testbed.scenario.workloads.probe import Passage

# Before the death of a link a datagram may have been on its way to it: s, where nothing else is on the links.
ON_THE_WAY = 0.05


@dataclass(slots=True)
class Assessment:
    """What failures cost."""

    events: list[Failure] = field(default_factory=list)  # for each moment at which something happened
    findings: list[Finding] = field(default_factory=list)  # what should not have been


def assess(
    topology: Topology,
    outlooks: Sequence[Outlook],
    pairs: Sequence[tuple[int, int]],
    passages: Sequence[Passage],
    result: LoadResult,
    status: ControllerStatus,
    on_the_way: float = ON_THE_WAY,
) -> Assessment:
    """Put together what the lab did, what the controller says and what the probes saw.

    Args:
        topology: the fabric.
        outlooks: of each event.
        pairs: that were watched.
        passages: of their datagrams.
        result: with the times at which events were carried out.
        status: of the controller, afterwards.
        on_the_way: laboratory seconds that a datagram can be under way.
    """
    found = Assessment()
    for number, done in enumerate(result.disturbed):
        if done.error:
            event = outlooks[number].change.event
            found.findings.append((Verdict.FAIL, f'"{event}" could not be carried out: {done.error}'))
    if len(result.disturbed) < len(outlooks):
        event = outlooks[len(result.disturbed)].change.event
        found.findings.append((Verdict.FAIL, f'the load ended before "{event}"'))
    moments = _moments(outlooks[: len(result.disturbed)])
    deaths = [result.disturbed[numbers[0]].began for numbers in moments]
    unsure = result.clock_error  # of what is told by the clocks of two machines
    # What was under way when something died was sent before, and is lost by that death, not by the event before it.
    edges = [
        death - min(on_the_way, (death - earlier) / 2)
        for death, earlier in zip(deaths, [-np.inf, *deaths], strict=False)
    ]
    for place, numbers in enumerate(moments):
        death, last = deaths[place], place + 1 == len(moments)
        following = np.inf if last else deaths[place + 1]
        heard = [event for event in status.events if death - unsure <= event.detected < following - unsure]
        over = result.disturbed[numbers[-1]].ended + unsure
        managers = [n for n in numbers if outlooks[n].change.manager]
        deposed = [result.disturbed[n] for n in managers if outlooks[n].change.event.action == "kill"]
        outlook, words = outlooks[numbers[-1]], "; ".join(str(outlooks[n].change.event) for n in numbers)
        windows = [passage.sent_between(edges[place], np.inf if last else edges[place + 1]) for passage in passages]
        # Others lose datagrams only where queues are full, which no backup path ends.
        back = [window.back_after(death, over) if outlook.diversion.hit[pair] else None
                for pair, window in zip(pairs, windows, strict=True)]  # fmt: skip
        found.events.append(
            {
                "event": words,
                "at": death - result.start,
                "detection": heard[0].detected - death if heard else None,
                "diverted": heard[0].diverted - death if heard else None,
                "takeover": max((seconds for seconds in back if seconds is not None), default=None),
                # of a manager that was killed: until the next one steers
                "manager_takeover": max((one.ended - one.began for one in deposed if not one.error), default=None),
                "recovery": _find_latest([event.recovered for event in heard], death),
                "settled": _find_latest([event.settled for event in heard], death),
                "frames_lost": sum(window.lost_count for window in windows),
                "lost_by_pair": [window.lost_count for window in windows],
                "hosts_moved": sum(event.hosts_moved for event in heard),
                "cut_off": int(outlook.cut.sum()),
                "without_backup": int(outlook.diversion.waiting.sum()),
                "routing_after": outlook.after.routing,
                "deadlock": [cycle.sentence for cycle in outlook.cycles],
            }
        )
        if not heard and len(managers) < len(numbers):
            found.findings.append((Verdict.FAIL, f'the controller did not notice "{words}"'))
        for (source, end), passage, window in zip(pairs, passages, windows, strict=True):
            silent = window.outage > min(on_the_way, np.ptp(window.sent) / 2 if len(window.sent) else np.inf)
            if (silent or passage.sent_between(over, following).all_lost) and not outlook.cut[source, end]:
                pair = f"{topology.host_name(source)}→{topology.host_name(end)}"
                found.findings.append((Verdict.FAIL, f'nothing of {pair} arrived any more after "{words}"'))
    return found


def _moments(outlooks: Sequence[Outlook]) -> list[list[int]]:
    """Numbers of events, those of one time together."""
    found: list[list[int]] = []
    for number, outlook in enumerate(outlooks):
        if found and outlooks[found[-1][-1]].change.event.at == outlook.change.event.at:
            found[-1].append(number)
        else:
            found.append([number])
    return found


def _find_latest(times: Sequence[float | None], death: float) -> float | None:
    """The latest of some times, from the death on; None where one is yet to come, or there are none."""
    there = [time for time in times if time is not None]
    return max(there) - death if there and len(there) == len(times) else None
