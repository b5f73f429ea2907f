"""A plan that is to be changed: which of its rules frames meet, and copies with something else in a place."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from benchmarks.openflow import Frame, Network, is_true


@dataclass(frozen=True)
class Base:
    """A stored plan and its certificate.

    Attributes:
        met: switch and number of each rule that frames between hosts meet, with one such frame.
        ports: those of each switch.
        used: ordered pairs of hosts whose walk has a port.
    """

    plan: dict[str, Any]
    certificate: dict[str, Any]
    met: tuple[tuple[int, int, Frame], ...]
    ports: tuple[tuple[int, ...], ...]
    used: tuple[tuple[int, int], ...]

    @classmethod
    def of(cls, plan: dict[str, Any], certificate: dict[str, Any]) -> Base:
        """Follow every frame once."""
        assert is_true(plan, certificate)
        network = Network(plan)
        walks, hosts = certificate["walks"], range(len(network.hosts))
        used = tuple((a, b) for a in hosts for b in hosts if walks[a][b])
        rank = {tuple(channel): place for place, channel in enumerate(certificate["order"])}
        for a, b in used:
            network.goes(a, b, [int(port) for port in walks[a][b].split(".")], rank)
        met = tuple(
            (number, rule, frame)
            for number, switch in enumerate(network.switches)
            for rule, frame in sorted(switch.met.items())
        )
        return cls(plan, certificate, met, tuple(tuple(sorted(one.ports)) for one in network.switches), used)

    def with_rules(self, switch: int, rules: list[str]) -> tuple[Any, Any]:
        """The same with other rules in a switch."""
        found = list(self.plan["rules"])
        found[switch] = rules
        return {**self.plan, "rules": found}, self.certificate

    def with_groups(self, switch: int, groups: list[str]) -> tuple[Any, Any]:
        """Likewise with other groups."""
        found = list(self.plan["groups"])
        found[switch] = groups
        return {**self.plan, "groups": found}, self.certificate

    def with_topology(self, **columns: Any) -> tuple[Any, Any]:
        """Likewise with other columns of its cables and hosts."""
        of = self.plan["topology"] if self.plan.get("bundles") is None else self.plan["bundles"]["wiring"]
        changed = {**of, **{key: {**of[key], "values": value} if isinstance(of[key], dict) else value
                            for key, value in columns.items()}}  # fmt: skip
        if self.plan.get("bundles") is None:
            return {**self.plan, "topology": changed}, self.certificate
        return {**self.plan, "bundles": {**self.plan["bundles"], "wiring": changed}}, self.certificate

    def column(self, name: str) -> list[Any]:
        """A column of its cables and hosts, to be changed."""
        of = self.plan["topology"] if self.plan.get("bundles") is None else self.plan["bundles"]["wiring"]
        return list(of[name]["values"])
