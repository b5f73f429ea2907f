"""Functions of plug-ins, whose exceptions and malformed results become sentences that name the plug-in."""

from __future__ import annotations

import functools
import traceback
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from testbed.base.errors import InputError, TestbedError
from testbed.base.model import LocalPlan, Topology, VlanPlan
from testbed.fabric.routing.plugin_routes import describe_malformed
from testbed.fabric.topologies.build_topology import find_disconnected_pair
from testbed.fabric.traffic import Flows, PatternError
from testbed.fabric.verify.local_vlans import list_malformed as malformed_local


def guard_function(place: str, who: str, file: str, call: Callable[..., Any], check: str) -> Callable[..., Any]:
    """The function with what it does wrong as InputError.

    Args:
        place: the key that names it, for messages.
        who: its name and where it is from.
        file: that it is in, for the line of an exception.
        call: the function; InputError of its own passes.
        check: what it gives: `routes`, `topology`, `vlans`, or empty for what is not looked at.
    """

    @functools.wraps(call)
    def guarded_call(*given: Any) -> Any:
        try:
            made = call(*given)
        except TestbedError:
            raise
        except Exception as error:  # someone else's code may raise anything
            raise InputError.one(place, f"{who} raised {describe_exception(error, file)}") from error
        wrong = _CHECKS[check](made, *given)
        if wrong:
            raise InputError.one(place, f"{who} {wrong}")
        return made

    return guarded_call


def guarded_pattern(who: str, file: str, make: Callable[[Topology, int], Flows]) -> Callable[[Topology, int], Flows]:
    """The function of a pattern, likewise, with PatternError."""

    @functools.wraps(make)
    def guarded_call(topology: Topology, seed: int) -> Flows:
        try:
            pairs = tuple((int(one), int(other)) for one, other in make(topology, seed))
        except PatternError:
            raise
        except Exception as error:  # as above
            raise PatternError(f"the pattern {who} raised {describe_exception(error, file)}") from error
        hosts = topology.host_count
        wrong = next((pair for pair in pairs if not all(0 <= host < hosts for host in pair)), None)
        if wrong is not None:
            raise PatternError(f"the pattern {who} gave the pair {wrong}; hosts are numbered from 0 to {hosts - 1}")
        if len(set(pairs)) < len(pairs):
            raise PatternError(f"the pattern {who} gave a pair twice; a pair has one flow")
        return pairs

    return guarded_call


def describe_exception(error: BaseException, file: str) -> str:
    """An exception in a few words, with the last line of a file that it came by."""
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == file]
    text = str(error).strip().partition("\n")[0]
    return f"{type(error).__name__}{f': {text}' if text else ''}{f' (line {lines[-1]})' if lines else ''}"


def _routes(made: Any, topology: Topology, options: Any) -> str:
    del options
    return describe_malformed(topology, made)


def _topology(made: Any, spec: Any) -> str:
    if not isinstance(made, Topology):
        return f"gave {type(made).__name__} and not a Topology, which make_topology() makes"
    return next(_topology_problems(made, spec), "")


def _topology_problems(made: Topology, spec: Any) -> Iterator[str]:
    switches, links, hosts = made.switch_count, made.link_count, made.host_count
    for name, shape in (
        ("links", (links, 2)), ("plane", (links,)), ("positions", (switches, 2)), ("host_port", (hosts,)),
        ("out_port", (2 * links,)), ("port_count", (switches,)), ("coordinates", (switches, len(made.sizes))),
    ):  # fmt: skip
        found = getattr(made, name).shape
        if found != shape:
            yield f"gave {name} of shape {found}; it should be {shape}"
    if links and not (made.links.min() >= 0 and made.links.max() < switches):
        yield f"gave links of switches {made.links.min()} to {made.links.max()}; there are 0 to {switches - 1}"
    if not np.array_equal(made.channel_source, made.links.reshape(-1)):
        yield "gave channels that are not its links; make_topology() numbers them"
    if (made.links[:, 0] == made.links[:, 1]).any():
        yield "gave a link from a switch to itself"
    pair = find_disconnected_pair(switches, made.links)
    if pair is not None:
        yield f"gave a fabric that is not connected: no path joins {' and '.join(map(made.switch_name, pair))}"
    extent = spec.extent()
    counted, told = (switches, links, hosts), (extent.switches, extent.links, extent.hosts)
    if counted != told:
        yield f"gave {counted} switches, links and hosts, and its extent() says {told}"


def _vlans(made: Any, topology: Topology, routes: Any, options: Any) -> str:
    del options
    if isinstance(made, LocalPlan):
        wrong = malformed_local(topology, made, routes.layers)
        return f"gave a plan that is malformed: {wrong[0].sentence}" if wrong else ""
    if not isinstance(made, VlanPlan):
        return f"gave {type(made).__name__} and not a VlanPlan or LocalPlan"
    count, links, hosts = made.vlan_count, topology.link_count, topology.host_count
    for name, shape in (("pvid", (hosts,)), ("tagged_links", (count, links))):
        if getattr(made, name).shape != shape:
            return f"gave {name} of shape {getattr(made, name).shape}; it should be {shape}"
    if hosts and not (made.pvid.min() >= 0 and made.pvid.max() < count):
        return f"gave a pvid that is no index of its {count} VLANs"
    return ""


_CHECKS: dict[str, Callable[..., str]] = {
    "routes": _routes,
    "topology": _topology,
    "vlans": _vlans,
    "": lambda made, *given: "",
}
