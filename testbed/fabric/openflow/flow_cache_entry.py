"""One entry of a fast path. It needs no numpy, so that a lab's agent starts without."""

from __future__ import annotations

from typing import NamedTuple


class Entry(NamedTuple):
    """A frame that comes so leaves so."""

    in_port: int
    tag: tuple[int, int]  # VLAN and priority, or (UNTAGGED, 0)
    destination: str  # MAC address
    out_port: int
    out_tag: tuple[int, int]

    def line(self) -> str:
        """As text: in-port, VLAN, priority, address, out-port, VLAN, priority."""
        return " ".join(map(str, (self.in_port, *self.tag, self.destination, self.out_port, *self.out_tag)))

    @classmethod
    def read(cls, line: str) -> Entry:
        """Read what line() wrote."""
        in_port, vlan, priority, destination, out_port, out_vlan, out_priority = line.split()
        tags = (int(vlan), int(priority)), (int(out_vlan), int(out_priority))
        return cls(int(in_port), tags[0], destination, int(out_port), tags[1])
