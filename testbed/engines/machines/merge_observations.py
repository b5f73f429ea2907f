"""What machines observed of a load and of what happened meanwhile, put together by the first machine's clock."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import chain

from testbed.base.messages import Disturbance, Disturbed, Observation, Snapshot
from testbed.engines.lab.control.merge_answers import gather_in_order, join_words, merge_maps, name_machines
from testbed.engines.lab.control.split_requests import has_effect
from testbed.engines.lab.fabric_part import Part
from testbed.engines.machines.clock_offsets import Clock


def merge_disturbed(what: Sequence[Disturbance], answers: Sequence[Disturbed], clocks: Sequence[Clock]) -> Disturbed:
    """When something was carried out, by the first machine's clock.

    `what`: the shares of the parts; `answers`: what they did.
    """
    mine = [(done, clock.ahead) for share, done, clock in zip(what, answers, clocks, strict=True) if has_effect(share)]
    return Disturbed(
        min(done.began - ahead for done, ahead in mine),
        max(done.ended - ahead for done, ahead in mine),
        join_words(done.error for done, _ in mine),
    )


def merge_observations(
    parts: Sequence[Part],
    answers: Sequence[Observation],
    clocks: Sequence[Clock],
    timelines: Sequence[Sequence[Disturbance]] = (),
) -> Observation:
    """What came of a load; moments are by the first machine's clock. `timelines`: the shares of the parts in events.

    All machines count over the same time but for some ms, since all are told to begin at once; each by its own clock.
    Snapshots have the clocks and processors of the machine that had least time left: it is what may have spoilt
    figures.
    """
    busiest = busiest_of(answers)
    before, after = (
        merge_snapshots(parts, [getattr(one, moment) for one in answers], busiest) for moment in ("before", "after")
    )
    return replace(
        answers[busiest],
        outputs=merge_maps(one.outputs for one in answers),
        before=before,
        after=after,
        timed_out=tuple(chain.from_iterable(one.timed_out for one in answers)),
        start=max(one.start - clock.ahead for one, clock in zip(answers, clocks, strict=True)),
        seconds=max(one.seconds for one in answers),
        no_matrix=name_machines(parts, [one.no_matrix for one in answers]),
        disturbed=tuple(
            merge_disturbed(shares, done, clocks)
            for shares, done in zip(
                zip(*timelines, strict=True), zip(*(one.disturbed for one in answers), strict=False), strict=False
            )
        ),
        clock_error=max(clock.error for clock in clocks),
        ahead={host.name: clock.ahead for part, clock in zip(parts, clocks, strict=True) for host in part.order.hosts},
    )  # fmt: skip


def busiest_of(answers: Sequence[Observation]) -> int:
    """Number of the part whose machine had least time left."""
    return min(range(len(answers)), key=lambda number: _measure_idle_share(answers[number]))


def _measure_idle_share(one: Observation) -> float:
    return (one.after.idle - one.before.idle) / max(one.after.total - one.before.total, 1)


def merge_snapshots(parts: Sequence[Part], answers: Sequence[Snapshot], busiest: int) -> Snapshot:
    """Counters of all parts, and the clocks and processors of one."""
    kinds = dict.fromkeys(kind for one in answers for kind in one.processes)
    return replace(
        answers[busiest],
        channels=gather_in_order(parts, lambda part: part.channels, [one.channels for one in answers]),
        hosts=gather_in_order(parts, lambda part: part.hosts, [one.hosts for one in answers]),
        counted=gather_in_order(
            parts, lambda part: part.channels, [one.counted or [one.time] * len(one.channels) for one in answers]
        ),
        processes={kind: tuple(chain.from_iterable(one.processes.get(kind, ()) for one in answers)) for kind in kinds},
    )
