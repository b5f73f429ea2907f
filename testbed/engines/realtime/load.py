"""Load the machine code of the model's process, or compile and keep it, without hosts: for a machine that is to come.

python -m testbed.engines.realtime.load MODEL DOORS
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

from testbed.dataplane.kernels.packets_state import PacketModel
from testbed.engines.realtime.process import load_machine_code
from testbed.engines.realtime.shared_memory import attach
from testbed.engines.realtime.taps import HostPorts


def main() -> None:
    """Attach and load."""
    doors = attach(Path(sys.argv[2]), HostPorts)
    doors.zero[0] = time.monotonic_ns()
    load_machine_code(attach(Path(sys.argv[1]), PacketModel), doors)


if __name__ == "__main__":
    main()
