from testbed import testing as testing
from testbed.api import FinishedRun as FinishedRun
from testbed.api import PlannedFabric as PlannedFabric
from testbed.api import RunningLab as RunningLab
from testbed.api import Simulation as Simulation
from testbed.api import lab as lab
from testbed.api import load as load
from testbed.api import plan as plan
from testbed.api import run as run
from testbed.api import scenarios as scenarios
from testbed.api import simulate as simulate
from testbed.errors import CapabilityError as CapabilityError
from testbed.errors import InputError as InputError
from testbed.errors import LabError as LabError
from testbed.errors import TestbedError as TestbedError
from testbed.errors import VerificationError as VerificationError
from testbed.errors import WorkloadError as WorkloadError

__version__: str
__all__: list[str]
