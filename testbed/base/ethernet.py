"""Bytes of Ethernet frames on a link, and bits of what counters have counted: IEEE 802.3 clause 3, 802.1Q clause 9.

A host fills a frame up to the shortest length. A switch that tags such a frame makes it four bytes longer, and one that
takes the tag off leaves the shortest frame behind.
"""

from __future__ import annotations

from typing import Any

HEADER = 14
VLAN_TAG = 4
CHECK_SEQUENCE = 4
PREAMBLE = 8
# The gap comes last: it holds up the next frame, and not the one before it.
GAP = 12
# What is on a wire beside what Linux counts in a frame.
WIRE_OVERHEAD = PREAMBLE + CHECK_SEQUENCE + GAP
MIN_FRAME = 60  # the shortest, as Linux counts it
# After so many bytes, preamble included, a switch that cuts through sends a frame on: by then no collision is left.
CUT_THROUGH = PREAMBLE + MIN_FRAME + CHECK_SEQUENCE


def wire_bytes(size: int, tag: int = 0) -> int:
    """Bytes that a frame takes on a link: tag, padding, preamble, check sequence and gap included.

    Args:
        size: as Linux counts a frame: with its Ethernet header, without tag and check sequence.
        tag: VLAN_TAG where it has one on that link, else 0.
    """
    return max(size, MIN_FRAME) + tag + WIRE_OVERHEAD


def wire_bits(sizes: Any, frames: Any, tag: Any = 0) -> Any:
    """Bits that counted frames took on a link, from how much its counters grew.

    Linux counts a short frame before it is filled up, and counters tell but a sum: where short frames and long ones
    were counted together, it is the least that these can have been.

    Args:
        sizes: bytes, as Linux counts frames, tags included.
        frames: their number.
        tag: VLAN_TAG where each has a tag that is counted, else 0.
    """
    shortest = frames * (MIN_FRAME + tag)
    # Without numpy, which callers may not have loaded: the larger one, of numbers as of arrays.
    return 8 * (sizes + (shortest > sizes) * (shortest - sizes) + WIRE_OVERHEAD * frames)


# Of a full tagged frame with 1,500 bytes of IP.
MAX_WIRE_FRAME = wire_bytes(HEADER + 1500, VLAN_TAG)
