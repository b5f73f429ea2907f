"""The topology as switches' LLDP frames tell it, and how it differs from the plan's.

Each port says which it is, again and again, and what hears that is joined to it. An end is a switch and a port. Time
goes by rounds, in each of which all ends say it once: a program that gets no processor for a while misses none.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from testbed.base.model import Topology

End = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Heard:
    """What a port has heard last: from which end, and in which round."""

    of: End
    at: int


class CollectedTopology:
    """Which port hears which.

    Args:
        topology: of the plan.
        lasts: rounds for which what a port has heard holds.

    Attributes:
        planned: port of a link → port at the link's other end, both ways.
    """

    def __init__(self, topology: Topology, lasts: int) -> None:
        self._topology, self._lasts = topology, lasts
        ends = list(zip(topology.channel_source.tolist(), topology.out_port.tolist(), strict=True))
        self.planned: dict[End, End] = {end: ends[channel ^ 1] for channel, end in enumerate(ends)}
        self._hosts = dict(
            zip(zip(topology.host_switch.tolist(), topology.host_port.tolist(), strict=True),
                range(topology.host_count), strict=True)
        )  # fmt: skip
        self._heard: dict[End, Heard] = {}

    # -------------------------------------------------------------------------------------------------------- heard

    def on_lldp(self, here: End, there: End, now: int) -> None:
        """A frame that `there` has sent came in `here`."""
        self._heard[here] = Heard(there, now)

    def assume_up(self, silent: Collection[End], now: int) -> None:
        """Take for heard what the plan has, but by some ends, until that is not heard in time."""
        for here, there in self.planned.items():
            if here not in silent:
                self.on_lldp(here, there, now)

    def extend(self, here: End, now: int) -> None:
        """What an end has heard last, if anything, still holds."""
        if here in self._heard:
            self.on_lldp(here, self._heard[here].of, now)

    def forget(self, ends: Collection[End]) -> None:
        """These ends carry nothing: what they have heard, and what has heard them, is no more."""
        self._heard = {here: said for here, said in self._heard.items() if here not in ends and said.of not in ends}

    def list_late(self, now: int) -> list[End]:
        """Ends that have missed some frames."""
        return [here for here, said in self._heard.items() if now - said.at > self._lasts / 2]

    def expire(self, now: int) -> None:
        """What was not heard again in time holds no longer."""
        self._heard = {here: said for here, said in self._heard.items() if now - said.at <= self._lasts}

    # ------------------------------------------------------------------------------------------------------- and so

    @property
    def neighbours(self) -> dict[End, End]:
        """Which end each end hears."""
        return {here: said.of for here, said in self._heard.items()}

    def silent_ends(self) -> set[End]:
        """Ends of the plan's links that do not hear the end that they should."""
        joined = self.neighbours
        return {here for here, there in self.planned.items() if joined.get(here) != there}

    def links(self) -> list[str]:
        """What is joined, in both directions, by the names of ports."""
        joined = self.neighbours
        pairs = sorted({(min(a, b), max(a, b)) for a, b in joined.items() if joined.get(b) == a})
        return [f"{self._name(one)} – {self._name(other)}" for one, other in pairs]

    def differences(self) -> list[str]:
        """How what is joined differs from the plan, a sentence for each link; none where it agrees.

        First links that the plan does not have, with where their ends should lead; then planned ones that are not
        there, unless both their ends were named before.
        """
        joined, named, found = self.neighbours, set[End](), list[str]()
        for one, other in _pairs(joined):
            if self.planned.get(one) != other:
                named |= {one, other}
                back = "" if joined.get(one) == other and joined.get(other) == one else ", in one direction"
                found.append(
                    f"{self._name(one)} is joined to {self._name(other)}{back}; "
                    f"in the plan {self._describe_end(one)}, and {self._describe_end(other)}"
                )
        for one, other in _pairs(self.planned):
            deaf = [(here, there) for here, there in ((one, other), (other, one)) if joined.get(here) != there]
            if not deaf or {one, other} <= named:
                continue
            if len(deaf) == 2:
                found.append(f"{self._name(one)} is not joined to {self._name(other)}")
            else:
                here, there = deaf[0]
                found.append(f"{self._name(here)} hears nothing of {self._name(there)}, which hears it")
        return found

    def _describe_end(self, end: End) -> str:
        """Where an end leads in the plan."""
        name = self._name(end)
        if end in self.planned:
            return f"{name} leads to {self._name(self.planned[end])}"
        if end in self._hosts:
            return f"{name} is the port of {self._topology.host_name(self._hosts[end])}"
        return f"{name} leads nowhere"

    def _name(self, end: End) -> str:
        return f"{self._topology.switch_name(end[0])}-eth{end[1]}"


def _pairs(joined: Mapping[End, End]) -> list[tuple[End, End]]:
    """Each two ends one of which hears the other, once."""
    return sorted({(min(here, there), max(here, there)) for here, there in joined.items()})
