"""The library: what the commands do, as calls from Python, with tables of pandas and graphs of networkx.

`import testbed as tb` offers all of it: `tb.plan`, `tb.simulate`, `tb.run`, `tb.load`, `tb.lab`, `tb.scenarios`.
"""

from testbed.api.labs import RunningLab, lab
from testbed.api.plans import PlannedFabric, plan, scenarios
from testbed.api.runs import FinishedRun, load, run
from testbed.api.simulations import Simulation, simulate

__all__ = [
    "FinishedRun",
    "PlannedFabric",
    "RunningLab",
    "Simulation",
    "lab",
    "load",
    "plan",
    "run",
    "scenarios",
    "simulate",
]
