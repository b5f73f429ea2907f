"""What each reader does with each construct of its dialect, from the readers' tables, as a page of documentation."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from testbed.devices import ios_keywords, read_ifupdown2, read_junos, read_mikrotik, read_openwrt
from testbed.devices.command_rules import Commands
from testbed.devices.read_eos import EOS
from testbed.devices.read_nxos import NXOS
from testbed.devices.read_procurve import PROCURVE
from testbed.scenario.fabric_files.formats import FORMATS
from testbed.scenario.fabric_files.listing import PASSED, READ
from testbed.scenario.schedule_files.formats import SCHEDULE_FORMATS

_HEAD = """# Constructs of each dialect

What `testbed audit` and `testbed check` do with each construct: *read* decides where frames go, *passed over* moves no
frame and is counted in a note, *not understood* may decide where frames go, is named with its line, and keeps the
verdict from `pass`. What an interface says and no table has is not understood. This page is made from the readers'
tables; what is not said has [the default of its switch](real-switches.md#defaults). At its end are [the formats of
files that describe a fabric](#topology-files) and of [schedules of messages](#schedules).
"""
_TOPOLOGIES = """## Topology files

What `topology: {kind: file}` and `testbed init --from` do with each construct of a format: *read* makes nodes and
links, *passed over* makes none and is counted in a note, *refused* is an error. What no table has is in a note too.
"""
_SCHEDULES = """## Schedules

What `testbed simulate --schedule` does with each construct of a format.
"""


def list_constructs() -> dict[str, dict[str, str]]:
    """Dialect → construct → `read`, `passed over` or `not understood`."""
    return {
        "arista-eos": dict(_of_commands(EOS)),
        "cisco-ios": dict(_of_ios()),
        "cisco-nxos": dict(_of_commands(NXOS)),
        "ifupdown2": {
            **{f"iface BRIDGE: {key}": outcome for key, outcome in read_ifupdown2.OF_BRIDGE.items()},
            **{f"iface PORT: {key}": outcome for key, outcome in read_ifupdown2.OF_PORT.items()},
        },
        "junos": {
            f"set {said}": outcome if isinstance(outcome, str) else "read" for said, outcome in read_junos.RULES.items()
        },
        "mikrotik": dict(_of_sections(read_mikrotik.SETTINGS)),
        "openwrt": dict(_of_sections({f"config {kind}": said for kind, said in read_openwrt.OPTIONS.items()})),
        "procurve": dict(_of_commands(PROCURVE)),
    }


def document_constructs() -> str:
    """The page."""
    parts = [_HEAD]
    for dialect, constructs in list_constructs().items():
        parts += [f"## {dialect}\n", "| construct | |", "| --- | --- |"]
        by_outcome = sorted(
            constructs.items(), key=lambda item: ("read", "passed over", "not understood").index(item[1])
        )
        parts += [f"| `{construct}` | {outcome} |" for construct, outcome in by_outcome]
        parts.append("")
    parts.append(_TOPOLOGIES)
    for name, entry in FORMATS.items():
        endings = f", files {', '.join(f'`{suffix}`' for suffix in entry.suffixes)}" if entry.suffixes else ""
        parts += _format_section(name, f"Of {entry.of}{endings}.", entry.constructs)
    parts.append(_SCHEDULES)
    for name, schedule in SCHEDULE_FORMATS.items():
        parts += _format_section(f"{name} schedules", f"Of {schedule.of}.", schedule.constructs)
    return "\n".join(parts)


def _format_section(name: str, about: str, constructs: Mapping[str, str]) -> list[str]:
    rows = sorted(constructs.items(), key=lambda item: (not item[1].startswith(READ), item[1] != PASSED))
    table = [f"| `{construct}` | {outcome} |" for construct, outcome in rows]
    return [f"### {name}\n", f"{about}\n", "| construct | |", "| --- | --- |", *table, ""]


def _of_commands(commands: Commands) -> Iterator[tuple[str, str]]:
    for rule in commands.rules:
        before = {"port": "interface: ", "vlan": "vlan: ", "switch": ""}[rule.of]
        yield f"{before}{rule.says.replace('REST', '…')}", rule.outcome


def _of_ios() -> Iterator[tuple[str, str]]:
    read = (
        "switchport mode", "switchport access vlan", "switchport voice vlan", "switchport trunk native vlan",
        "switchport trunk allowed vlan", "switchport nonegotiate", "switchport block unicast", "no switchport",
        "shutdown", "channel-group", "spanning-tree", "speed", *ios_keywords.ROUTED,
    )  # fmt: skip
    yield from ((f"{words} …", "read") for words in ("spanning-tree", "vlan", "vtp domain", "mac address-table static"))
    yield from ((f"interface: {words} …", "read") for words in read)
    yield from ((f"interface: switchport {words} …", "passed over") for words in sorted(ios_keywords.SWITCHPORT_PASSED))
    yield from ((f"interface: {words} …", "passed over") for words in sorted(ios_keywords.PASSED))
    unclear = (*ios_keywords.FILTERS, *ios_keywords.SWITCHPORT_UNCLEAR)
    yield from ((f"interface: {words.strip()} …", "not understood") for words in unclear)


def _of_sections(sections: Mapping[str, Mapping[str, str]]) -> Iterator[tuple[str, str]]:
    for section, settings in sections.items():
        yield from ((f"{section}: {setting}", outcome) for setting, outcome in settings.items())
