"""Which congestion control of TCP this machine's kernel has; hosts of labs use the same kernel."""

from __future__ import annotations

import socket
from pathlib import Path

from testbed.base.errors import CapabilityError

_AVAILABLE = Path("/proc/sys/net/ipv4/tcp_available_congestion_control")


def require_congestion(name: str, place: str) -> None:
    """Let only what the kernel has, or can load, pass.

    Args:
        name: of the congestion control, as iperf3 is given it.
        place: the load that asks for it.

    Raises:
        CapabilityError: the kernel has none of that name.
    """
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        try:
            probe.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, name.encode())
        except OSError as error:
            known = ", ".join(_AVAILABLE.read_text().split()) if _AVAILABLE.exists() else "others"
            sentence = (
                f"{place} asks for TCP's congestion control {name}, which this machine's kernel does not have; it has "
                f"{known}. Load it (modprobe tcp_{name}), or choose one of these"
            )
            raise CapabilityError(sentence) from error
