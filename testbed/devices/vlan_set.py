"""Sets of VLANs as the bits of one number, so that 1-4094 on every port of a large switch costs next to nothing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Set

import numpy as np

from testbed.base.model import Bools, Longs
from testbed.fabric.vlans.fixed import LAST_VLAN_ID

# Bits of a set as an array: one more than VLANs, for the VLAN 0 of Open vSwitch.
WIDTH = LAST_VLAN_ID + 2


class VlanSet(Set[int]):
    """A set of VLAN identifiers; equal to any other set of the same numbers."""

    __slots__ = ("bits",)

    def __init__(self, bits: int = 0) -> None:
        self.bits = bits  # bit n stands for VLAN n

    @classmethod
    def from_ids(cls, vlans: Iterable[int]) -> VlanSet:
        """The set of these VLANs."""
        if isinstance(vlans, VlanSet):
            return vlans
        bits = 0
        for vlan in vlans:
            bits |= 1 << vlan
        return cls(bits)

    @classmethod
    def span(cls, first: int, last: int) -> VlanSet:
        """The set of all VLANs from one to another, both included."""
        return cls((1 << (last + 1)) - (1 << first))

    @classmethod
    def _from_iterable(cls, it: Iterable[int]) -> VlanSet:  # type: ignore[override]  # what Set's operators make
        return cls.from_ids(it)

    def __contains__(self, vlan: object) -> bool:
        """Whether a VLAN is in it."""
        return isinstance(vlan, int) and vlan >= 0 and bool(self.bits >> vlan & 1)

    def __iter__(self) -> Iterator[int]:
        """Ascending."""
        left = self.bits
        while left:
            low = left & -left
            yield low.bit_length() - 1
            left ^= low

    def __len__(self) -> int:
        """How many there are."""
        return self.bits.bit_count()

    def __hash__(self) -> int:
        """The hash of an equal frozenset."""
        return self._hash()

    def __and__(self, other: Set[int]) -> VlanSet:
        """Those in both."""
        return VlanSet(self.bits & VlanSet.from_ids(other).bits)

    def __or__(self, other: Set[int]) -> VlanSet:  # type: ignore[override]  # of VLANs alone
        """Those in any of the two."""
        return VlanSet(self.bits | VlanSet.from_ids(other).bits)

    def __sub__(self, other: Set[int]) -> VlanSet:
        """Those in this one alone."""
        return VlanSet(self.bits & ~VlanSet.from_ids(other).bits)

    def __repr__(self) -> str:
        """The numbers; of many how many they are."""
        numbers = list(self)
        some = numbers if len(numbers) < 20 else [*numbers[:3], f"… {len(numbers)} in all"]
        return f"VlanSet({{{', '.join(map(str, some))}}})"


ALL_VLANS = VlanSet.span(1, LAST_VLAN_ID)
# The VLAN of untagged frames where a switch has one for them, which 802.1Q has not: trunks of Open vSwitch, and bridges
# that do not look at tags. Here it is the number that no VLAN has.
VLAN_0 = LAST_VLAN_ID + 1


def as_row(vlans: Set[int]) -> Bools:
    """(WIDTH,) whether each VLAN is in a set."""
    packed = np.frombuffer(VlanSet.from_ids(vlans).bits.to_bytes(WIDTH // 8 + 1, "little"), dtype=np.uint8)
    row: Bools = np.unpackbits(packed, bitorder="little")[:WIDTH].astype(bool)
    return row


def from_numbers(vlans: Longs) -> VlanSet:
    """The set of the VLANs in an array."""
    row = np.zeros(WIDTH, dtype=bool)
    row[vlans] = True
    return VlanSet(int.from_bytes(np.packbits(row, bitorder="little").tobytes(), "little"))
