"""What a plan should give, computed from the paths and the frame sizes alone."""

from testbed.dataplane.predict.bounds import Least, alltoall_bound, exchange_bound, wire_shares
from testbed.dataplane.predict.members import fair_goodput, proportional_goodput
from testbed.dataplane.predict.reno import reno_goodput
from testbed.dataplane.predict.shared_links import Ways, Wires, routed_ways
from testbed.dataplane.predict.tcp import TcpLoad, tcp_goodput
from testbed.dataplane.predict.wire_overhead import Transport, transport

__all__ = [
    "Least",
    "TcpLoad",
    "Transport",
    "Ways",
    "Wires",
    "alltoall_bound",
    "exchange_bound",
    "fair_goodput",
    "proportional_goodput",
    "reno_goodput",
    "routed_ways",
    "tcp_goodput",
    "transport",
    "wire_shares",
]
