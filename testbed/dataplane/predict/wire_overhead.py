"""Bytes on the wire for a payload: why 1 Gbit/s carries 957 Mbit/s of UDP and 941 Mbit/s of TCP."""

from __future__ import annotations

from dataclasses import dataclass

from testbed.base.ethernet import HEADER, VLAN_TAG, wire_bytes

UDP_HEADERS = 28  # with IP
TCP_HEADERS = 52  # with IP and timestamps
MTU = 1500  # bytes of IP in a frame, unless a scenario says otherwise
_SEGMENTS_PER_ACK = 2
TCP_PAYLOAD = MTU - TCP_HEADERS


@dataclass(frozen=True, slots=True)
class Transport:
    """Wire cost of one byte of payload."""

    payload: int  # bytes of payload in a frame
    forward: int  # bytes on an untagged wire for each frame
    backward: float  # bytes of acknowledgements on the reverse path for each frame
    backward_tags: float  # tags on the reverse path for each frame

    @property
    def ack(self) -> float:
        """Bytes on an untagged wire for each acknowledgement; 0 without any."""
        return self.backward / self.backward_tags if self.backward_tags else 0.0

    def cost(self, *, tagged: bool) -> float:
        """Wire bits a bit of goodput needs on the forward path."""
        return (self.forward + (VLAN_TAG if tagged else 0)) / self.payload

    def reverse_cost(self, *, tagged: bool) -> float:
        """Wire bits a bit of goodput needs on the reverse path."""
        return (self.backward + (VLAN_TAG * self.backward_tags if tagged else 0)) / self.payload


def transport(protocol: str, payload: int, mtu: int = MTU) -> Transport:
    """Return the wire cost of `tcp` (full segments with timestamps, an ACK for two) or of `udp`.

    `mtu`: bytes of IP in a full frame, which a TCP fills.
    """
    if protocol == "udp":
        return Transport(payload, wire_bytes(payload + UDP_HEADERS + HEADER), 0.0, 0.0)
    acknowledgement = wire_bytes(TCP_HEADERS + HEADER)
    return Transport(
        mtu - TCP_HEADERS,
        wire_bytes(mtu + HEADER),
        acknowledgement / _SEGMENTS_PER_ACK,
        1 / _SEGMENTS_PER_ACK,
    )
