"""Power of switches, and the links that traffic can do without (Koibuchi et al. 2011, sections 3.6 and 5.4.2)."""

from testbed.fabric.power.models import POWER_MODELS, SPEEDS, PowerModel, fabric_watts
from testbed.fabric.power.select import Selection, select_ladder, select_links

__all__ = ["POWER_MODELS", "SPEEDS", "PowerModel", "Selection", "fabric_watts", "select_ladder", "select_links"]
