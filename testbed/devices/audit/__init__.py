"""A network that exists, without a plan: saved configurations and cabling, and what follows from them."""

from testbed.devices.audit.findings import Audit, Finding, audit
from testbed.devices.audit.network import Network, network_of

__all__ = ["Audit", "Finding", "Network", "audit", "network_of"]
