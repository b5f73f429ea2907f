"""What Open vSwitch cannot show, on the same plan: lossless Ethernet with virtual channels, or with PAUSE frames."""

from testbed.simulate.network import Network
from testbed.simulate.packet_network import PacketNetwork
from testbed.simulate.packet_point import simulate_packets
from testbed.simulate.packet_settings import PacketSettings
from testbed.simulate.point import Latency, Point, simulate
from testbed.simulate.replays import Replay, replay_plan
from testbed.simulate.runs import Outcome, simulate_plan
from testbed.simulate.settings import Settings

__all__ = [
    "Latency",
    "Network",
    "Outcome",
    "PacketNetwork",
    "PacketSettings",
    "Point",
    "Replay",
    "Settings",
    "replay_plan",
    "simulate",
    "simulate_packets",
    "simulate_plan",
]
