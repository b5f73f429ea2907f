"""From a proved plan to a fabric over several machines."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

import numpy as np

from testbed.base.errors import LabError
from testbed.base.units import format_rate
from testbed.engines.lab.control.build import build_order
from testbed.engines.lab.control.operation import Progress
from testbed.engines.lab.hosts.build_mpi_jobs import mpi_program
from testbed.engines.lab.hosts.interface_names import PLAN
from testbed.engines.local_machine.calibration import share_refused
from testbed.engines.local_machine.probe import list_needed_capabilities
from testbed.engines.machines import worker
from testbed.engines.machines.fabric_client import FabricClient, Machines
from testbed.engines.machines.partition_fabric import LEAST_MTU, Cut, divide, needed_rates
from testbed.fabric.topologies.partition import cut
from testbed.planning import Plan
from testbed.planning.failures import prepare_controller
from testbed.planning.store import plan_to_json
from testbed.scenario import Scenario
from testbed.scenario.workloads.mpi import MpiJob
from testbed.scenario.workloads.mpi_machines import control_address

JOBS = ("mpi", "npb")  # kinds of loads that mpiexec starts
_IDENTIFIERS = 1 << 24  # of VXLAN


def what_is_missing(machines: Machines, scenario: Scenario) -> list[str]:
    """What machines lack for a lab of a scenario, and for tunnels between them; a sentence each.

    Raises:
        LabError: a machine went away.
    """
    numbers, names = range(len(machines.machines)), list_needed_capabilities(scenario)
    with ThreadPoolExecutor(len(numbers)) as pool:
        said = list(pool.map(lambda number: machines.call(number, worker.describe_lacking, names), numbers))
    found = [
        f"machine {machines.machines[number].name}: {line}"
        for number, text in enumerate(said)
        for line in text.splitlines()
    ]
    if found:
        return found
    for a in numbers:
        for b in numbers:
            if a != b:
                there = machines.machines[b]
                way: worker.Uplink = machines.call(a, worker.find_uplink, there.address)
                if way.mtu < LEAST_MTU:
                    found.append(
                        f"machine {machines.machines[a].name}: {way.interface}, by which it reaches {there.name}, has "
                        f"an MTU of {way.mtu}, and full frames with their tag take {LEAST_MTU} in a VXLAN tunnel; "
                        f"ip link set {way.interface} mtu {LEAST_MTU} on all machines, and on the switches between them"
                    )
    return found


def what_shares_miss(machines: Machines, plan: Plan) -> list[str]:
    """What machines lack for the shares of the hosts that they get; a sentence each.

    Raises:
        InputError, CapabilityError: the fabric cannot be cut.
        LabError: a machine went away.
    """
    if plan.scenario.lab.cpu_share == "none":
        return []
    part_of = cut(plan.wiring, len(machines.machines))
    hosts = np.bincount(part_of[plan.topology.host_switch], minlength=len(machines.machines))
    found = []
    for number, one in enumerate(machines.machines):
        refused = share_refused(plan, int(hosts[number]), machines.call(number, worker.processors))
        if refused:
            found.append(f"machine {one.name}: {plan.scenario.source}: lab.cpu_share: {refused}")
    return found


def what_jobs_miss(machines: Machines, job: MpiJob, *, trace: bool) -> list[str]:
    """What machines lack for an MPI job, once it is built on each; a sentence each.

    Raises:
        LabError: a machine went away.
    """
    numbers = range(len(machines.machines))
    mpiexec = str(mpi_program("mpiexec"))
    with ThreadPoolExecutor(len(numbers)) as pool:
        said = list(pool.map(lambda number: machines.call(number, worker.build_job, job, mpiexec, trace), numbers))
    return [f"machine {machines.machines[number].name}: {text}" for number, text in enumerate(said) if text]


def build_over(machines: Machines, plan: Plan, progress: Progress) -> FabricClient:
    """Build the parts of a proved plan on the machines.

    Raises:
        VerificationError: the plan is not proved.
        LabError: building failed; nothing is left.
    """
    order = build_order(plan)
    prepare_controller(plan)
    part_of = cut(plan.wiring, len(machines.machines))
    parts, cuts = divide(order, part_of.tolist(), [one.name for one in machines.machines])
    _require_room(machines, needed_rates(order, cuts))
    fabric = FabricClient(f"{order.name}-{secrets.token_hex(4)}", plan, machines, parts)
    with ExitStack() as undo:
        undo.callback(fabric.end)
        progress("starting its parts: " + ", ".join(f"{len(one.switches)} switches on {one.machine}" for one in parts))
        control = order.controller is not None or any(load.kind in JOBS for load in plan.scenario.workloads)
        fabric.begin(_tunnels(machines, cuts, control=control))
        if order.controller is not None:
            fabric.write(PLAN, plan_to_json(plan))
        progress(f"switches, hosts and links, {len(cuts)} of them between machines")
        fabric.build_parts()
        undo.pop_all()
    return fabric


def _tunnels(machines: Machines, cuts: Sequence[Cut], *, control: bool) -> list[list[worker.Tunnel]]:
    """The ends of the tunnels on each machine.

    `control`: also between the first machine and each other, for mpiexec and for the controller.
    """
    first = secrets.randbelow(_IDENTIFIERS - len(cuts) - len(machines.machines))
    found: list[list[worker.Tunnel]] = [[] for _ in machines.machines]
    for number, one in enumerate(cuts):
        for here, there in (one.parts, one.parts[::-1]):
            ends = (machines.machines[here].address, machines.machines[there].address)
            found[here].append(worker.Tunnel(one.tunnel, first + number, *ends))
    for other in range(1, len(machines.machines) if control else 0):
        for here, there in ((0, other), (other, 0)):
            ends = (machines.machines[here].address, machines.machines[there].address)
            between = (control_address(here), control_address(there))
            found[here].append(worker.Tunnel(f"control{there}", first + len(cuts) + other, *ends, between))
    return found


def _require_room(machines: Machines, needed: dict[tuple[int, int], float]) -> None:
    """Refuse what no network between the machines could carry, where its speed is known.

    Raises:
        LabError: a network is too slow.
    """
    for (a, b), rate in needed.items():
        one, other = machines.machines[a], machines.machines[b]
        way: worker.Uplink = machines.call(a, worker.find_uplink, other.address)
        if way.speed is not None and rate > way.speed:
            raise LabError(
                f"the links between {one.name} and {other.name} take {format_rate(rate)} with the tunnels' "
                f"overhead, and {way.interface} has {format_rate(way.speed)}; raise lab.dilation"
            )
