"""What a plan should give, computed from the paths and the frame sizes alone."""

from testbed.predict.frames import Transport, transport
from testbed.predict.maxmin import alltoall_bound, fair_goodput
from testbed.predict.reno import reno_goodput
from testbed.predict.tcp import TcpLoad, tcp_goodput

__all__ = ["TcpLoad", "Transport", "alltoall_bound", "fair_goodput", "reno_goodput", "tcp_goodput", "transport"]
