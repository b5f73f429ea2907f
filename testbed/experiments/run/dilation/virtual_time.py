"""The dilation of a lab on a processor of known speed, chosen without a trial.

In virtual time an instruction takes as long as it is said to, whatever machine the virtual one runs on. So what its
switches carry in a second of its own clock is a constant, and trying would only cost time.
"""

from __future__ import annotations

from testbed.base.errors import CapabilityError
from testbed.engines.local_machine.calibration import frame_margin, least_dilation
from testbed.engines.session import Session
from testbed.experiments.run.dilation.choose import DilationChoice, steps
from testbed.experiments.run.engine import Progress
from testbed.planning import Plan
from testbed.planning.rates import at_dilation, demand
from testbed.scenario.spec import largest_dilation

# Instructions for a frame at a switch of the kernel's Open vSwitch, what its hosts do with it included: by the idle
# share of the virtual machine's processor under the loads of a 4×4 torus, see docs/vm.md.
HOP_INSTRUCTIONS = 28_000
# Frames a second times switches that a machine whose instructions are translated in real time carries, by the same
# loads on two cores; and the slowest links, bit/s, that are worth the time: 1 Gbit/s at a dilation of 500.
_TRANSLATED_FRAME_HOPS, _SLOWEST_WORTHWHILE = 8_000.0, 2e6
# Share of the processor's time that a load may take, so that bursts and what is measured beside it find it free.
_BUSY = 0.3


def dilation_in_virtual_time(plan: Plan, instruction_seconds: float, most_share: float | None) -> DilationChoice:
    """Return the smallest dilation at which a processor of that speed carries the scenario's greatest load.

    Args:
        plan: with `lab.dilation: auto`.
        instruction_seconds: that an instruction takes.
        most_share: largest share of a processor that a host can have; None = that of this machine.
    """
    sustained = _BUSY / (HOP_INSTRUCTIONS * instruction_seconds)  # frames a second times switches
    margin = frame_margin(plan)
    least = least_dilation(plan, most_share)
    needed = max(least, margin * demand(plan) / sustained)
    allowed = steps(least, largest_dilation(plan.scenario.links, plan.scenario.lab))
    taken = next((step for step in allowed if step >= needed), allowed[-1] if allowed else least)
    return DilationChoice(taken, round(needed, 3), "virtual time", margin, "", 1.0, (), 0.0)


def refuse_translated(plan: Plan) -> None:
    """Refuse a lab that a machine without KVM would carry in real time only with very slow links.

    Raises:
        CapabilityError: with what would be possible.
    """
    if plan.scenario.lab.dilation != "auto":
        return
    needed = frame_margin(plan) * demand(plan) / _TRANSLATED_FRAME_HOPS
    most = plan.scenario.links.slowest / _SLOWEST_WORTHWHILE
    if needed > most:
        about = f"{float(f'{needed:.2g}'):,.0f}"
        raise CapabilityError(
            f"{plan.scenario.source}: in real time a virtual machine without KVM carries these loads at a dilation "
            f"of about {about} only, and above {most:,.4g} a run takes hours; nothing was started. Let its clock "
            "count instructions (vm.virtual_time: auto), use a smaller fabric or fewer flows, or run it all the same, "
            "with a number as lab.dilation"
        )


def choose_in_virtual_time(
    plan: Plan, lab: Session, progress: Progress, instruction_seconds: float
) -> tuple[Plan, DilationChoice | None]:
    """Settle the dilation of a running lab; as choose_dilation(), but nothing is tried."""
    if plan.scenario.lab.dilation != "auto":
        return plan, None
    choice = dilation_in_virtual_time(plan, instruction_seconds, lab.facts.most_share)
    taken = f"{1e9 * instruction_seconds:g} ns"
    progress(f"dilation {choice.dilation:g}: an instruction takes {taken}, whatever this machine does")
    settled = at_dilation(plan, choice.dilation)
    lab.set_rates(settled)
    return settled, choice
