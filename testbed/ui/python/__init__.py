"""The library: what the commands do, as calls from Python, with tables of pandas and graphs of networkx.

`import testbed as tb` offers its functions: `tb.plan`, `tb.simulate`, `tb.run`, `tb.load`, `tb.lab`, `tb.scenarios`.
The classes of what they return are here.
"""

from testbed.ui.python.labs import RunningLab
from testbed.ui.python.plans import PlannedFabric
from testbed.ui.python.runs import FinishedRun
from testbed.ui.python.simulations import Simulation

__all__ = ["FinishedRun", "PlannedFabric", "RunningLab", "Simulation"]
