"""One broadcast into switches with given rules, what their ports count, and an end to it."""

from __future__ import annotations

import time

from testbed.emulate.fabric import Fabric
from testbed.emulate.learning import send_from
from testbed.emulate.requests import Storm, StormReading
from testbed.emulate.switches import SwitchBackend


def watch(switches: SwitchBackend, fabric: Fabric, request: Storm) -> list[StormReading]:
    """Let the first host send one broadcast and read the counters of all switch ports until the time is up.

    However it ends, the switches have no rules afterwards, so that nothing goes on circulating.

    Args:
        switches: the lab's.
        fabric: the lab's.
        request: how long, how often, and by which rules.

    Returns:
        readings; the first is 0.
    """
    # It needs numpy, without which a lab is there a tenth of a second sooner.
    from testbed.emulate.rtnetlink import FIGURES, PortCounters  # noqa: PLC0415

    # Not by a program, which a busy machine would let wait: rates follow from the clock beside each reading.
    ports = PortCounters(list(fabric.port_rates()))
    sent = FIGURES.index("tx_packets")
    sender = fabric.order.hosts[0]
    if request.rules is not None:
        switches.install(request.rules)
    try:
        zero = ports.read()[:, sent]
        readings = [StormReading(0.0, 0, 0)]
        started = time.monotonic()
        send_from(fabric.holders[sender.name], sender.mac)
        for number in range(1, int(request.seconds / request.every + 0.5) + 1):
            time.sleep(max(0.0, started + number * request.every - time.monotonic()))
            frames = ports.read()[:, sent] - zero
            readings.append(StormReading(time.monotonic() - started, int(frames.sum()), int(frames.max())))
    finally:
        ports.close()
        switches.install({switch: [] for switch in fabric.order.switches})
    return readings
