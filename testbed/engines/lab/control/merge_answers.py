"""What the parts of a fabric over several machines answer, put together to what the whole would."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any, TypeVar

from testbed.base.errors import LabError
from testbed.base.messages import Facts, FrameCounts, LinkReadings, LinkState, PairReadings, Status
from testbed.engines.lab.fabric_part import Part

_T = TypeVar("_T")


def merge_maps(answers: Iterable[Any]) -> dict[Any, Any]:
    """What all have, by keys that no two have."""
    return {key: value for one in answers for key, value in one.items()}


def join_words(answers: Iterable[str]) -> str:
    """Different words, each once."""
    return " / ".join(dict.fromkeys(word for word in answers if word))


def merge_facts(parts: Sequence[Part], answers: Sequence[Facts]) -> Facts:
    """What the fabric is.

    Raises:
        LabError: machines forward frames in different ways.
    """
    kinds = {one.datapath: part.machine for part, one in zip(parts, answers, strict=True)}
    if len(kinds) > 1:
        shown = ", ".join(f"{machine} has the {kind} one" for kind, machine in kinds.items())
        raise LabError(f"the machines have different datapaths of Open vSwitch: {shown}; set lab.datapath: userspace")
    return replace(
        answers[0],
        version=join_words(one.version for one in answers),
        kernel=join_words(one.kernel for one in answers),
        switch_daemons=tuple(chain.from_iterable(one.switch_daemons for one in answers)),
        holders=merge_maps(one.holders for one in answers),
        groups=merge_maps(one.groups for one in answers),
        cpu_share=next((one.cpu_share for one in answers if one.cpu_share is not None), None),
        most_share=min(one.most_share for one in answers),
        seconds={step: max(one.seconds.get(step, 0.0) for one in answers) for step in answers[0].seconds},
        fast_path=any(one.fast_path for one in answers),
        why_slow=join_words(one.why_slow for one in answers),
        tsq_backpressure_reason=join_words(one.tsq_backpressure_reason for one in answers),
        machines={host.name: number for number, part in enumerate(parts) for host in part.order.hosts},
    )


def merge_status(parts: Sequence[Part], answers: Sequence[Status]) -> Status:
    """What the fabric is doing; a link that is cut counts once."""
    count = len({link for part in parts for link in part.links})
    hosts, switches = (sum(getattr(one, what) for one in answers) for what in ("hosts", "switches"))
    return replace(answers[0], hosts=hosts, switches=switches, links=count)


def merge_shaping(parts: Sequence[Part], answers: Sequence[Sequence[str]]) -> list[str]:
    """What is not shaped as asked, with the machine."""
    return [f"on {part.machine}: {text}" for part, texts in zip(parts, answers, strict=True) for text in texts]


def merge_links(parts: Sequence[Part], answers: Sequence[dict[int, LinkState]]) -> dict[int, LinkState]:
    """Links that are not as planned; one that is cut is up where both ends are."""
    found: dict[int, LinkState] = {}
    for part, states in zip(parts, answers, strict=True):
        for here, state in states.items():
            link = part.links[here]
            found[link] = replace(state, up=state.up and found.get(link, state).up)
    return found


def merge_link_readings(parts: Sequence[Part], answers: Sequence[LinkReadings]) -> LinkReadings:
    """What all links have carried; the time is the first machine's, and others read some ms apart."""
    channels, hosts = sum(len(part.channels) for part in parts), sum(len(part.hosts) for part in parts)

    def directions(part: Part) -> list[int]:
        return [*part.channels, *(channels + host for host in part.hosts)]

    def list_ports(part: Part) -> list[int]:
        return [*directions(part), *(channels + hosts + host for host in part.hosts)]

    return LinkReadings(
        time=answers[0].time,
        dilation=answers[0].dilation,
        bytes=gather_in_order(parts, list_ports, [one.bytes for one in answers]),
        frames=gather_in_order(parts, list_ports, [one.frames for one in answers]),
        rates=gather_in_order(parts, directions, [one.rates for one in answers]),
        waiting=gather_in_order(parts, directions, [one.waiting for one in answers]),
        drops=gather_in_order(parts, directions, [one.drops for one in answers]),
    )


def merge_pair_readings(parts: Sequence[Part], answers: Sequence[PairReadings]) -> PairReadings:
    """Bytes between hosts; each machine counts what its own have sent, by numbers of the whole."""
    pairs = tuple(sorted(chain.from_iterable(one.pairs for one in answers)))
    return PairReadings(answers[0].time, pairs, name_machines(parts, [one.why_not for one in answers]))


def name_machines(parts: Sequence[Part], answers: Sequence[str]) -> str:
    """Sentences, each with its machine."""
    return join_words(f"on {part.machine}: {text}" if text else "" for part, text in zip(parts, answers, strict=True))


def gather_in_order(
    parts: Sequence[Part], numbers: Callable[[Part], Sequence[int]], answers: Sequence[Sequence[_T]]
) -> tuple[_T, ...]:
    """What parts say of their hosts, switches or channels, in the order of the whole."""
    found = {
        number: value
        for part, values in zip(parts, answers, strict=True)
        for number, value in zip(numbers(part), values, strict=True)
    }
    return tuple(found[number] for number in range(len(found)))


def merge_frames(parts: Sequence[Part], answers: Sequence[FrameCounts]) -> FrameCounts:
    """Everything that counts frames."""
    places = dict.fromkeys(where for one in answers for where in one.lost)
    return FrameCounts(
        arrived=sum(one.arrived for one in answers),
        lost={where: sum(one.lost.get(where, 0) for one in answers) for where in places},
        flooded=sum(one.flooded for one in answers),
        channels=gather_in_order(parts, lambda part: part.channels, [one.channels for one in answers]),
        to_hosts=gather_in_order(parts, lambda part: part.hosts, [one.to_hosts for one in answers]),
        admitted=gather_in_order(parts, lambda part: part.switches, [one.admitted for one in answers]),
        refused={why: sum(one.refused.get(why, 0) for one in answers) for one in answers for why in one.refused},
    )
