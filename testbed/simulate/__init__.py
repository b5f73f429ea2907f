"""What Open vSwitch cannot show: lossless Ethernet with virtual channels, flit by flit, on the same plan."""

from testbed.simulate.network import Network
from testbed.simulate.point import Latency, Point, simulate
from testbed.simulate.replays import Replay, replay_plan
from testbed.simulate.runs import Outcome, simulate_plan
from testbed.simulate.settings import Settings

__all__ = ["Latency", "Network", "Outcome", "Point", "Replay", "Settings", "replay_plan", "simulate", "simulate_plan"]
