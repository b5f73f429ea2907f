"""Watts of a fabric with all links on and with those off that traffic can do without (Koibuchi et al. 2011, 5.4.2)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from testbed.base.errors import InputError, argument, did_you_mean
from testbed.base.model import Floats
from testbed.experiments.regulate.choose_links import LinkChoice
from testbed.fabric.power import POWER_MODELS, PowerModel, fabric_watts
from testbed.fabric.verify.limits import SWITCH_MODELS, check_ports
from testbed.planning import Plan


@dataclass(frozen=True, slots=True, eq=False)
class Power:
    """Power of a fabric of one switch model."""

    model: PowerModel  # of all switches
    before: Floats  # (S,) W of each switch with all links on
    after: Floats  # (S,) W with those off that a choice takes out

    @property
    def saving(self) -> float:
        """Share of the power of all switches that is saved."""
        return 1 - float(self.after.sum() / self.before.sum())


def models_for(plan: Plan, name: str | None) -> list[PowerModel]:
    """The model that is asked for, by name or by the scenario's `switch_model`; else all that have ports enough.

    Raises:
        InputError: there is no such model, or it has too few ports, or no model has enough.
    """
    if name is not None and name not in POWER_MODELS:
        known = f"{did_you_mean(name, POWER_MODELS)} Known: {', '.join(POWER_MODELS)}"
        raise InputError.one(argument("model"), f'there is no switch model "{name}".{known}')
    asked = name or plan.scenario.switch_model
    lacking = {model: check_ports(plan.wiring, SWITCH_MODELS[model]) for model in POWER_MODELS}
    if asked is not None:
        if lacking[asked]:
            raise InputError.one(argument("model"), lacking[asked][0].sentence)
        return [POWER_MODELS[asked]]
    enough = [model for model in POWER_MODELS if not lacking[model]]
    if not enough:
        most = int(plan.wiring.port_count.max())
        raise InputError.one(plan.scenario.source, f"a switch needs {most} ports and no known model has so many")
    return [POWER_MODELS[model] for model in enough]


def power_of(plan: Plan, choice: LinkChoice, model: PowerModel) -> Power:
    """Power of a plan's fabric before and after."""
    on = ["1G"] * plan.wiring.link_count
    before = fabric_watts(plan.wiring, model, on)
    return Power(model, before, fabric_watts(plan.wiring, model, choice.selection.speeds))


def as_object(plan: Plan, found: Sequence[tuple[LinkChoice, Sequence[Power]]]) -> dict[str, object]:
    """What `testbed power --format json` prints."""
    wiring = plan.wiring
    names = [wiring.switch_name(switch) for switch in range(wiring.switch_count)]

    def of_switch(watts: Floats) -> Mapping[str, float]:
        return {name: round(value, 3) for name, value in zip(names, watts.tolist(), strict=True)}

    return {
        "scenario": plan.scenario.name,
        "digest": plan.digest,
        "switches": wiring.switch_count,
        "switch_links": wiring.link_count,
        "traffic": [
            {
                "name": choice.traffic.name,
                "source": choice.traffic.source,
                "off": list(choice.names),
                "slower": {
                    speed: int(count)
                    for speed, count in zip(*np.unique(choice.selection.speeds, return_counts=True), strict=True)
                    if speed not in ("off", "1G")
                },
                "fullest_before": choice.selection.bound,
                "fullest_after": float(choice.selection.after.max(initial=0.0)),
                "digest": choice.plan.digest,
                "power": [
                    {
                        "model": power.model.name,
                        "watts_before": round(float(power.before.sum()), 3),
                        "watts_after": round(float(power.after.sum()), 3),
                        "saved": power.saving,
                        "switches_before": of_switch(power.before),
                        "switches_after": of_switch(power.after),
                    }
                    for power in powers
                ],
            }
            for choice, powers in found
        ],
    }
