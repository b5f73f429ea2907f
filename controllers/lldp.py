"""LLDP frames (IEEE 802.1AB) that say which port has sent them, and the way of one out of a switch and to us."""

from __future__ import annotations

import hmac
import struct
from importlib import import_module
from typing import Any

from testbed.fabric.openflow.admission import LLDP_GROUP

from .framework import BASE

_lldp: Any = import_module(f"{BASE}.lib.packet.lldp")
_ethernet: Any = import_module(f"{BASE}.lib.packet.ethernet")
_packet: Any = import_module(f"{BASE}.lib.packet.packet")

_TYPE = 0x88CC
_HEADER = 14
# Of all these messages. One that is refused, for a port that is gone meanwhile, is of no concern.
TRANSACTION = 0x4C4C4450
# As switches' own controllers write it: the datapath id as a chassis that has a local name, the number of the port.
_CHASSIS, _PORT = "dpid:{:016x}", struct.Struct("!I")
_OUI = b"\x02\x00\x00"  # of nobody
_SOURCE = "02:00:00:00:00:00"


def packet_out(datapath: Any, switch: int, port: int, secret: bytes, lasts: int) -> bytes:
    """The message that has a switch, by its number, send an LLDP frame by a port.

    Args:
        datapath: the framework's, of any switch.
        switch: number of the sender.
        port: by which it is sent.
        secret: by which read() knows the frame again; a host that gets one can say nothing of another port.
        lasts: s for which neighbours may believe it.
    """
    ofproto, parser = datapath.ofproto, datapath.ofproto_parser
    frame = _packet.Packet(
        protocols=[
            _ethernet.ethernet(LLDP_GROUP, _SOURCE, _TYPE),
            _lldp.lldp(
                [
                    _lldp.ChassisID(
                        subtype=_lldp.ChassisID.SUB_LOCALLY_ASSIGNED, chassis_id=_CHASSIS.format(switch + 1).encode()
                    ),
                    _lldp.PortID(subtype=_lldp.PortID.SUB_PORT_COMPONENT, port_id=_PORT.pack(port)),
                    _lldp.TTL(ttl=lasts),
                    _lldp.OrganizationallySpecific(oui=_OUI, subtype=1, info=_token(switch, port, secret)),
                    _lldp.End(),
                ]
            ),
        ]
    )
    frame.serialize()
    message = parser.OFPPacketOut(
        datapath, ofproto.OFP_NO_BUFFER, ofproto.OFPP_CONTROLLER, [parser.OFPActionOutput(port)], bytes(frame.data)
    )
    message.set_xid(TRANSACTION)
    message.serialize()
    return bytes(message.buf)


def read(frame: bytes, secret: bytes) -> tuple[int, int] | None:
    """Number of the switch that has sent a frame, and its port; None where it was not sent by packet_out()."""
    if frame[12:_HEADER] != _TYPE.to_bytes(2, "big"):
        return None
    found, *_ = _lldp.lldp.parser(frame[_HEADER:])
    if found is None or len(found.tlvs) != 5:
        return None
    try:
        switch, port = int(found.tlvs[0].chassis_id[5:], 16) - 1, int(_PORT.unpack(found.tlvs[1].port_id)[0])
    except (ValueError, struct.error):
        return None
    return (switch, port) if getattr(found.tlvs[3], "info", b"") == _token(switch, port, secret) else None


def _token(switch: int, port: int, secret: bytes) -> bytes:
    return hmac.digest(secret, f"{switch}:{port}".encode(), "sha256")[:8]
