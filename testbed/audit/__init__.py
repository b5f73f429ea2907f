"""A network that exists, without a plan: saved configurations and cabling, and what follows from them."""

from testbed.audit.findings import Audit, Finding, audit
from testbed.audit.network import Network, network_of

__all__ = ["Audit", "Finding", "Network", "audit", "network_of"]
