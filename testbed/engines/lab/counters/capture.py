"""Frames of one link of a lab, seen by a packet socket in the lab's network at one end of it.

A port sees what it sends when its queue has released it, and what it receives when the other end has sent it, so one
socket has both directions at the time of the wire. The kernel keeps the VLAN tag of some frames beside their bytes, in
the socket's auxiliary data; here it is put back to where it was.
"""

from __future__ import annotations

import ctypes
import errno
import select
import socket
import struct
from collections.abc import Callable, Sequence
from types import TracebackType

from testbed.base.errors import LabError
from testbed.base.messages import Frame

# linux/socket.h, linux/if_packet.h, linux/filter.h
_SO_TIMESTAMPNS, _SO_ATTACH_FILTER = 35, 26
_SOL_PACKET, _PACKET_STATISTICS, _PACKET_AUXDATA = 263, 6, 8
_NOTHING = struct.pack("=HBBI", 0x06, 0, 0, 0)  # the filter that no frame passes
_TIMESPEC = struct.Struct("=qq")
_STATISTICS = struct.Struct("=II")
# tpacket_auxdata: status, bytes on the wire, bytes here, places of two headers, tag and its type.
_AUXDATA = struct.Struct("=IIIHHHH")
_TAGGED, _TYPE_GIVEN = 0x10, 0x40
_ETH_P_8021Q = 0x8100
_TAG = struct.Struct("!HH")
_ADDRESSES = 12  # bytes of a frame before its tag
_MAX_FRAME = 65536
_SPACE = socket.CMSG_SPACE(_TIMESPEC.size) + socket.CMSG_SPACE(_AUXDATA.size)
_AT_ONCE = 1024
_LOOK = 0.2  # sampling interval, s whether the lab is there


class InterfaceFrames:
    """Frames of an interface; see session.Frames.

    Args:
        ear: of packet_socket.open_in_lab(); closed with this.
        name: what the interface is called outside.
        description: see Frames.
        alive: whether the lab is; asked while nothing comes.
    """

    def __init__(self, ear: socket.socket, name: str, description: str, alive: Callable[[], bool]) -> None:
        self.interface, self.description = name, description
        self._alive = alive
        self._lost = 0
        self._socket = ear

    def __enter__(self) -> InterfaceFrames:
        """Return self."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Listen no longer."""
        self._socket.close()

    def read(self, seconds: float) -> list[Frame]:
        """What came since the last call; see Frames."""
        waited = 0.0
        while not (ready := select.select([self._socket], [], [], min(_LOOK, seconds - waited))[0]):
            if not self._alive():
                raise LabError("the lab has ended")
            waited += _LOOK
            if waited >= seconds:
                break
        frames: list[Frame] = []
        while ready and len(frames) < _AT_ONCE:
            try:
                data, extra, _, sender = self._socket.recvmsg(_MAX_FRAME, _SPACE)
            except BlockingIOError:
                break
            except OSError as error:
                if error.errno == errno.ENETDOWN:  # said once, when a link goes down; it may come up again
                    break
                raise
            frames.append(frame_of(data, extra, sender))
        return frames

    def stop(self) -> None:
        """Let no more in; see Frames."""
        program = ctypes.create_string_buffer(_NOTHING, len(_NOTHING))
        self._socket.setsockopt(socket.SOL_SOCKET, _SO_ATTACH_FILTER, struct.pack("HP", 1, ctypes.addressof(program)))

    def count_lost(self) -> int:
        """Frames that found the socket's buffer full."""
        # The kernel begins anew with each answer.
        self._lost += _STATISTICS.unpack(self._socket.getsockopt(_SOL_PACKET, _PACKET_STATISTICS, _STATISTICS.size))[1]
        return self._lost


def frame_of(data: bytes, extra: Sequence[tuple[int, int, bytes]], sender: tuple[str, int, int, int, bytes]) -> Frame:
    """The frame of the wire, from what `recvmsg` says of it.

    Args:
        data: its bytes, perhaps without its tag.
        extra: the control messages: its time, and the tag that was taken out.
        sender: the address; its third part tells the direction.
    """
    time, length = 0, len(data)
    for level, kind, body in extra:
        if (level, kind) == (socket.SOL_SOCKET, _SO_TIMESTAMPNS):
            seconds, nanoseconds = _TIMESPEC.unpack(body)
            time = seconds * 1_000_000_000 + nanoseconds
        elif (level, kind) == (_SOL_PACKET, _PACKET_AUXDATA):
            status, length, _, _, _, tag, tag_type = _AUXDATA.unpack(body)
            if status & _TAGGED:
                put_back = _TAG.pack(tag_type if status & _TYPE_GIVEN else _ETH_P_8021Q, tag)
                data, length = data[:_ADDRESSES] + put_back + data[_ADDRESSES:], length + _TAG.size
    return Frame(time, sender[2] == socket.PACKET_OUTGOING, data, length)
