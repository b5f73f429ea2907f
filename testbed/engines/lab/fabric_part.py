"""The part of a fabric that one of several machines builds."""

from __future__ import annotations

from dataclasses import dataclass

from testbed.engines.lab.build_order import BuildOrder


@dataclass(frozen=True, slots=True)
class Part:
    """What one machine builds; numbers are those of the whole fabric."""

    machine: str
    order: BuildOrder
    hosts: tuple[int, ...]  # in the order of order.hosts
    switches: tuple[int, ...]  # in the order of order.switches
    links: tuple[int, ...]  # those of order.links, then those of order.far
    channels: tuple[int, ...]  # into which its ports send, in the order of order.ends
