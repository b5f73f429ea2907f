"""Frames of any kind into running labs: switches go on, rules stay, and everybody still answers."""

from __future__ import annotations

import sys
from collections.abc import Iterator

from testbed.base.errors import TestbedError
from testbed.base.messages import LoadRequest, Process
from testbed.experiments.run.engines import find_lab_engine
from testbed.planning import make_plan
from testbed.scenario import parse_scenario

_FABRIC = "topology: {{kind: mesh, sizes: [2, 2]}}\nengine: {}\nlab: {{dilation: 20}}\n"
ENGINES = ("ovs", "realtime")
_BATCH = 500
# Runs in a host: frames by a seed, of each kind that a switch or a card looks at, and of none.
_SENDER = """
import random, socket, struct, sys
chance, count = random.Random(int(sys.argv[1])), int(sys.argv[2])
door = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
door.bind(("eth0", 0))
hosts = [bytes((2, 0, 0, 0, 0, number)) for number in range(6)]
fixed = [b"\\xff" * 6, bytes(6), *map(bytes.fromhex, ("0180c2000001", "0180c200000e", "01005e000001"))]
tag_types, numbers = [0x8100, 0x88a8, 0x9100], [0, 1, 2, 4095]
types = [0x0800, 0x0806, 0x86dd, 0x8808, 0x88cc, 0x8847, 0x88b5, 0x8100, 0x88a8, 0, 46, 1500, 0x0600, 0xffff]
sent = 0
while sent < count:
    to, source = (chance.choice([*hosts, *fixed, chance.randbytes(6)]) for _ in range(2))
    tags = b"".join(
        struct.pack("!HH", chance.choice(tag_types), chance.choice([*numbers, chance.getrandbits(16)]))
        for _ in range(chance.choice([0, 0, 1, 1, 2, 4]))
    )
    body = chance.randbytes(chance.choice([0, 1, 28, 46, 100, chance.randrange(1500), 1500]))
    frame = to + source + tags + struct.pack("!H", chance.choice(types + [chance.getrandbits(16)])) + body
    try:
        door.send(frame[: chance.choice([14, len(frame), len(frame)])][:1514])
        sent += 1
    except OSError:
        pass  # the card itself takes no such frame
"""


def feed_frames(engine: str, count: int, seed: int) -> Iterator[tuple[int, str]]:
    """Send frames from each host in turn; after each batch yields how many, and what is wrong with the lab."""
    plan = make_plan(parse_scenario(_FABRIC.format(engine), "frames.yaml"))
    with find_lab_engine(plan.scenario).build(plan, lambda text: None) as lab:
        sent = 0
        while sent < count:
            batch = min(_BATCH, count - sent)
            host = plan.topology.host_name(sent // _BATCH % plan.topology.host_count)
            argv = (sys.executable, "-I", "-c", _SENDER, str(seed + sent), str(batch))
            try:
                done = lab.run_load(LoadRequest((Process("send", host, argv),), 120.0)).outputs["send"]
                wrong = [done.stderr.strip()[-300:]] if done.code else lab.verify(plan)
            except TestbedError as error:
                wrong = [str(error)]
            sent += batch
            yield batch, f"after {sent} frames on {engine}: {wrong[0]}" if wrong else ""
            if wrong:
                return
