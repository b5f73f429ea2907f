"""What the parts of a fabric say, put together to what the whole would."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any, TypeVar

from testbed.base.errors import LabError
from testbed.base.messages import (
    Disturbance,
    Disturbed,
    Facts,
    FrameCounts,
    LinkReadings,
    LinkState,
    Observation,
    PairReadings,
    ShortCuts,
    Snapshot,
    Status,
)
from testbed.engines.lab.control import requests as ask
from testbed.engines.machines.clocks import Clock
from testbed.engines.machines.parts import Part
from testbed.engines.machines.questions import concerns

_T = TypeVar("_T")


def merge_answers(request: ask.Request[Any], parts: Sequence[Part], said: Sequence[Any]) -> Any:
    """The answer to a question to the whole; `said` are those of the parts, see questions.for_parts().

    Raises:
        LabError: parts do not fit each other.
    """
    if isinstance(request, ask.Trace):
        lines = [iter(its) for its in said]
        part_of = {switch: number for number, part in enumerate(parts) for switch in part.order.switches}
        return [next(lines[part_of[switch]]) for switch, _ in request.frames]
    by_kind: dict[type[ask.Request[Any]], Callable[[], Any]] = {
        ask.Build: lambda: facts(parts, said),
        ask.GetFacts: lambda: facts(parts, said),
        ask.GetStatus: lambda: status(parts, said),
        ask.SetRates: lambda: next((one for one in said if one is not None), None),
        ask.WriteFile: lambda: said[0],
        ask.ShowFolder: lambda: None,
        ask.Learn: lambda: _words(said),
        ask.TakeFile: lambda: "".join(said),
        ask.CheckShaping: lambda: shaping(parts, said),
        ask.GetLinks: lambda: links(parts, said),
        ask.SetSpeeds: lambda: None,
        ask.ForgetFlows: lambda: None,
        ask.ReadLinks: lambda: link_readings(parts, said),
        ask.ReadPairs: lambda: pair_readings(parts, said),
        ask.CountFrames: lambda: frames(parts, said),
        ask.DumpFlows: lambda: _merge_maps(said),
        ask.DumpGroups: lambda: _merge_maps(said),
        ask.DumpShortCuts: lambda: ShortCuts(
            _merge_maps(one.entries for one in said), _merge_maps(one.off for one in said), 0
        ),
        ask.Reach: lambda: list(chain.from_iterable(said)),
    }
    return by_kind[type(request)]()


def _merge_maps(said: Iterable[Any]) -> dict[Any, Any]:
    return {key: value for one in said for key, value in one.items()}


def _words(said: Iterable[str]) -> str:
    return " / ".join(dict.fromkeys(word for word in said if word))


def facts(parts: Sequence[Part], said: Sequence[Facts]) -> Facts:
    """What the fabric is.

    Raises:
        LabError: machines forward frames in different ways.
    """
    kinds = {one.datapath: part.machine for part, one in zip(parts, said, strict=True)}
    if len(kinds) > 1:
        shown = ", ".join(f"{machine} has the {kind} one" for kind, machine in kinds.items())
        raise LabError(f"the machines have different datapaths of Open vSwitch: {shown}; set lab.datapath: userspace")
    return replace(
        said[0],
        version=_words(one.version for one in said),
        kernel=_words(one.kernel for one in said),
        switch_daemons=tuple(chain.from_iterable(one.switch_daemons for one in said)),
        holders=_merge_maps(one.holders for one in said),
        groups=_merge_maps(one.groups for one in said),
        cpu_share=next((one.cpu_share for one in said if one.cpu_share is not None), None),
        most_share=min(one.most_share for one in said),
        seconds={step: max(one.seconds.get(step, 0.0) for one in said) for step in said[0].seconds},
        fast_path=any(one.fast_path for one in said),
        why_slow=_words(one.why_slow for one in said),
        tsq_backpressure_reason=_words(one.tsq_backpressure_reason for one in said),
        machines={host.name: number for number, part in enumerate(parts) for host in part.order.hosts},
    )


def status(parts: Sequence[Part], said: Sequence[Status]) -> Status:
    """What the fabric is doing; a link that is cut counts once."""
    count = len({link for part in parts for link in part.links})
    hosts, switches = (sum(getattr(one, what) for one in said) for what in ("hosts", "switches"))
    return replace(said[0], hosts=hosts, switches=switches, links=count)


def shaping(parts: Sequence[Part], said: Sequence[Sequence[str]]) -> list[str]:
    """What is not shaped as asked, with the machine."""
    return [f"on {part.machine}: {text}" for part, texts in zip(parts, said, strict=True) for text in texts]


def links(parts: Sequence[Part], said: Sequence[dict[int, LinkState]]) -> dict[int, LinkState]:
    """Links that are not as planned; one that is cut is up where both ends are."""
    found: dict[int, LinkState] = {}
    for part, states in zip(parts, said, strict=True):
        for here, state in states.items():
            link = part.links[here]
            found[link] = replace(state, up=state.up and found.get(link, state).up)
    return found


def link_readings(parts: Sequence[Part], said: Sequence[LinkReadings]) -> LinkReadings:
    """What all links have carried; the time is the first machine's, and others read some ms apart."""
    channels, hosts = sum(len(part.channels) for part in parts), sum(len(part.hosts) for part in parts)

    def directions(part: Part) -> list[int]:
        return [*part.channels, *(channels + host for host in part.hosts)]

    def both(part: Part) -> list[int]:
        return [*directions(part), *(channels + hosts + host for host in part.hosts)]

    return LinkReadings(
        time=said[0].time,
        dilation=said[0].dilation,
        bytes=_gather_in_order(parts, both, [one.bytes for one in said]),
        frames=_gather_in_order(parts, both, [one.frames for one in said]),
        rates=_gather_in_order(parts, directions, [one.rates for one in said]),
        waiting=_gather_in_order(parts, directions, [one.waiting for one in said]),
        drops=_gather_in_order(parts, directions, [one.drops for one in said]),
    )


def pair_readings(parts: Sequence[Part], said: Sequence[PairReadings]) -> PairReadings:
    """Bytes between hosts; each machine counts what its own have sent, by numbers of the whole."""
    pairs = tuple(sorted(chain.from_iterable(one.pairs for one in said)))
    return PairReadings(said[0].time, pairs, _prefix_machines(parts, [one.why_not for one in said]))


def _prefix_machines(parts: Sequence[Part], said: Sequence[str]) -> str:
    """Sentences, each with its machine."""
    return _words(f"on {part.machine}: {text}" if text else "" for part, text in zip(parts, said, strict=True))


def _gather_in_order(
    parts: Sequence[Part], numbers: Callable[[Part], Sequence[int]], said: Sequence[Sequence[_T]]
) -> tuple[_T, ...]:
    """What parts say of their hosts, switches or channels, in the order of the whole."""
    found = {
        number: value
        for part, values in zip(parts, said, strict=True)
        for number, value in zip(numbers(part), values, strict=True)
    }
    return tuple(found[number] for number in range(len(found)))


def frames(parts: Sequence[Part], said: Sequence[FrameCounts]) -> FrameCounts:
    """Everything that counts frames."""
    places = dict.fromkeys(where for one in said for where in one.lost)
    return FrameCounts(
        arrived=sum(one.arrived for one in said),
        lost={where: sum(one.lost.get(where, 0) for one in said) for where in places},
        flooded=sum(one.flooded for one in said),
        channels=_gather_in_order(parts, lambda part: part.channels, [one.channels for one in said]),
        to_hosts=_gather_in_order(parts, lambda part: part.hosts, [one.to_hosts for one in said]),
        admitted=_gather_in_order(parts, lambda part: part.switches, [one.admitted for one in said]),
        refused={why: sum(one.refused.get(why, 0) for one in said) for one in said for why in one.refused},
    )


def disturbed(what: Sequence[Disturbance], said: Sequence[Disturbed], clocks: Sequence[Clock]) -> Disturbed:
    """When something was carried out, by the first machine's clock.

    `what`: the shares of the parts; `said`: what they did.
    """
    mine = [(done, clock.ahead) for share, done, clock in zip(what, said, clocks, strict=True) if concerns(share)]
    return Disturbed(
        min(done.began - ahead for done, ahead in mine),
        max(done.ended - ahead for done, ahead in mine),
        _words(done.error for done, _ in mine),
    )


def load(
    parts: Sequence[Part],
    said: Sequence[Observation],
    clocks: Sequence[Clock],
    timelines: Sequence[Sequence[Disturbance]] = (),
) -> Observation:
    """What came of a load; moments are by the first machine's clock. `timelines`: the shares of the parts in events.

    All machines count over the same time but for some ms, since all are told to begin at once; each by its own clock.
    Snapshots have the clocks and processors of the machine that had least time left: it is what may have spoilt
    figures.
    """
    busiest = busiest_of(said)
    before, after = (snapshot(parts, [getattr(one, moment) for one in said], busiest) for moment in ("before", "after"))
    return replace(
        said[busiest],
        outputs=_merge_maps(one.outputs for one in said),
        before=before,
        after=after,
        timed_out=tuple(chain.from_iterable(one.timed_out for one in said)),
        start=max(one.start - clock.ahead for one, clock in zip(said, clocks, strict=True)),
        seconds=max(one.seconds for one in said),
        no_matrix=_prefix_machines(parts, [one.no_matrix for one in said]),
        disturbed=tuple(
            disturbed(shares, done, clocks)
            for shares, done in zip(
                zip(*timelines, strict=True), zip(*(one.disturbed for one in said), strict=False), strict=False
            )
        ),
        clock_error=max(clock.error for clock in clocks),
        ahead={host.name: clock.ahead for part, clock in zip(parts, clocks, strict=True) for host in part.order.hosts},
    )  # fmt: skip


def busiest_of(said: Sequence[Observation]) -> int:
    """Number of the part whose machine had least time left."""
    return min(range(len(said)), key=lambda number: _measure_idle_share(said[number]))


def _measure_idle_share(one: Observation) -> float:
    return (one.after.idle - one.before.idle) / max(one.after.total - one.before.total, 1)


def snapshot(parts: Sequence[Part], said: Sequence[Snapshot], busiest: int) -> Snapshot:
    """Counters of all parts, and the clocks and processors of one."""
    kinds = dict.fromkeys(kind for one in said for kind in one.processes)
    return replace(
        said[busiest],
        channels=_gather_in_order(parts, lambda part: part.channels, [one.channels for one in said]),
        hosts=_gather_in_order(parts, lambda part: part.hosts, [one.hosts for one in said]),
        counted=_gather_in_order(
            parts, lambda part: part.channels, [one.counted or [one.time] * len(one.channels) for one in said]
        ),
        processes={kind: tuple(chain.from_iterable(one.processes.get(kind, ()) for one in said)) for kind in kinds},
    )
