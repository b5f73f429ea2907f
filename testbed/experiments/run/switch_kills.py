"""Switches of a running lab that are killed, as a crash would, and started again."""

from __future__ import annotations

from testbed.base.errors import InputError, LabError, did_you_mean
from testbed.base.messages import Disturbance
from testbed.engines.session import Session
from testbed.planning import Plan


def switch_of(plan: Plan, name: str, place: str) -> int:
    """Find a switch by its name.

    Raises:
        InputError: there is none.
    """
    names = [plan.wiring.switch_name(switch) for switch in range(plan.wiring.switch_count)]
    if name not in names:
        meant = did_you_mean(name, names)
        raise InputError.one(
            place, f'"{name[:40]}" is no switch of this lab.{meant} They are {names[0]} to {names[-1]}'
        )
    return names.index(name)


def why_unkillable(lab: Session, plan: Plan, switch: int) -> str:
    """Why a switch cannot be killed alone and come back; empty where it can."""
    if plan.scenario.carrier == "realtime":
        return ""
    name, facts = plan.wiring.switch_name(switch), lab.facts
    if facts.controller is None:
        return (
            f"{name} would come back without rules, since nobody installs them anew; build the lab with "
            "lab.controller=segment_manager, which also moves paths away, or with engine=realtime"
        )
    if facts.datapath == "kernel":
        return f"{name} goes on in the kernel when its process is killed; build the lab with lab.datapath=userspace"
    others = next(([one for one in share if one != name] for share in facts.switch_daemons if name in share), [])
    if others:
        return (
            f"{name} shares its process with {others[0]}, so it cannot be killed alone; build the lab with "
            f"lab.datapath=userspace and lab.switch_daemons={plan.wiring.switch_count}, or with a load whose failures "
            "kill it"
        )
    return ""


def set_switch(lab: Session, plan: Plan, switch: int, *, up: bool, place: str) -> None:
    """Kill a switch, or start it again.

    Raises:
        InputError: it cannot be killed alone, or is so already.
        LabError: it did not come up.
    """
    name = plan.wiring.switch_name(switch)
    reason = "" if up else why_unkillable(lab, plan, switch)
    if not reason and (name in lab.status().killed) is not up:
        reason = f"{name} is running already" if up else f"{name} has been killed already"
    if reason:
        raise InputError.one(place, reason)
    done = lab.disturb(Disturbance(up=up, switches=(switch,)))
    if done.error:
        raise LabError(f"{name}: {done.error}")
