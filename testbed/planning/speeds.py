"""What single links run at, from the names that a scenario gives them."""

from __future__ import annotations

import numpy as np

from testbed.base.errors import Problem
from testbed.base.model import Floats, Topology
from testbed.planning.failover.events import ElementNames
from testbed.scenario import Scenario


def link_speeds(scenario: Scenario, wiring: Topology) -> tuple[Floats | None, list[Problem]]:
    """(physical L,) share of `links.rate` at which each link runs, None = all of it; and what is wrong with names."""
    links = scenario.links
    if not links.rates:
        return None, []
    names, shares = ElementNames(wiring), np.ones(wiring.link_count)
    said: dict[int, str] = {}
    problems = []
    for name, rate in links.rates.items():
        found, place = names.find(name), f"links.rates.{name}"
        if isinstance(found, str):
            problems.append(Problem(place, found))
            continue
        link = found[0]
        if link is None:
            problems.append(
                Problem(place, "is the link of a host, which has links.host_rate; name one between switches")
            )
        elif link in said:
            problems.append(Problem(place, f"is the same link as {said[link]}; remove one"))
        else:
            said[link], shares[link] = name, rate / links.rate
    return shares, problems


def alike_problems(scenario: Scenario, who: str) -> list[Problem]:
    """A problem where links have rates of their own and `who`, the subject of the sentence, takes all for alike."""
    if not scenario.links.rates:
        return []
    return [Problem("links.rates", f"{who} takes all links between switches for alike; leave it out", scenario.source)]
