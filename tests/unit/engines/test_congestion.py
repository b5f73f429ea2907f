"""A congestion control that the kernel lacks is told before a lab is built."""

from __future__ import annotations

from pathlib import Path

import pytest

from testbed.base.errors import CapabilityError
from testbed.engines.local_machine.congestion import require_congestion


def test_what_the_kernel_has_passes():
    for name in Path("/proc/sys/net/ipv4/tcp_allowed_congestion_control").read_text().split():
        require_congestion(name, "workloads.0")


def test_what_it_lacks_is_named_with_what_it_has():
    with pytest.raises(CapabilityError) as caught:
        require_congestion("nowhere", "workloads.3")
    known = ", ".join(Path("/proc/sys/net/ipv4/tcp_available_congestion_control").read_text().split())
    assert str(caught.value) == (
        f"workloads.3 asks for TCP's congestion control nowhere, which this machine's kernel does not have; it has "
        f"{known}. Load it (modprobe tcp_nowhere), or choose one of these"
    )
