"""What Open vSwitch cannot show, on the same plan: lossless Ethernet with virtual channels, or with PAUSE frames."""

from testbed.engines.simulate.flit_network import Network
from testbed.engines.simulate.flit_point import Latency, Point, simulate
from testbed.engines.simulate.flit_settings import Settings
from testbed.engines.simulate.packet_network import PacketNetwork
from testbed.engines.simulate.packet_point import simulate_packets
from testbed.engines.simulate.packet_settings import PacketSettings
from testbed.engines.simulate.run_points import SimulationOutcome, simulate_plan
from testbed.engines.simulate.run_replay import Replay, replay_plan

__all__ = [
    "Latency",
    "Network",
    "PacketNetwork",
    "PacketSettings",
    "Point",
    "Replay",
    "Settings",
    "SimulationOutcome",
    "replay_plan",
    "simulate",
    "simulate_packets",
    "simulate_plan",
]
