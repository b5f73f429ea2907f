"""One broadcast into switches with given rules, what their ports count, and an end to it."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

from testbed.emulate.fabric import Fabric
from testbed.emulate.learning import send_from
from testbed.emulate.openvswitch import OpenVSwitch


def watch(
    ovs: OpenVSwitch, fabric: Fabric, rules: Mapping[str, Sequence[str]] | None, seconds: float, every: float
) -> list[dict[str, Any]]:
    """Let the first host send one broadcast and read the counters of all switch ports until the time is up.

    However it ends, the switches have no rules afterwards, so that nothing goes on circulating.

    Args:
        ovs: the lab's.
        fabric: the lab's.
        rules: replace those of the switches; None = those stay that are there.
        seconds: from the broadcast on.
        every: s between two readings.

    Returns:
        readings: `seconds` since the broadcast and `frames` sent by each switch port since then; the first is 0.
    """
    # It needs numpy, without which a lab stands a tenth of a second sooner.
    from testbed.emulate.rtnetlink import FIGURES, PortCounters  # noqa: PLC0415

    # Not by a program, which a busy machine would let wait: rates follow from the clock beside each reading.
    ports = PortCounters(list(fabric.port_rates()))

    def sent() -> dict[str, int]:
        return dict(zip(ports.ports, ports.read()[:, FIGURES.index("tx_packets")].tolist(), strict=True))

    sender = fabric.order["hosts"][0]
    if rules is not None:
        ovs.install(rules)
    try:
        zero = sent()
        readings: list[dict[str, Any]] = [{"seconds": 0.0, "frames": dict.fromkeys(zero, 0)}]
        started = time.monotonic()
        send_from(fabric.holders[sender["name"]], sender["mac"])
        for number in range(1, int(seconds / every + 0.5) + 1):
            time.sleep(max(0.0, started + number * every - time.monotonic()))
            frames = sent()
            readings.append(
                {"seconds": time.monotonic() - started, "frames": {name: frames[name] - zero[name] for name in zero}}
            )
    finally:
        ports.close()
        ovs.install({switch: [] for switch in fabric.order["switches"]})
    return readings
