"""Two CSV tables: for switches without a dialect here, for scripts, for a spreadsheet."""

from __future__ import annotations

from testbed.base.untrusted_text import csv_text
from testbed.devices.dialect import AGEING, Dialect, Writing, nothing_refused
from testbed.devices.port_names import format_ranges
from testbed.devices.read_tables import read_csv

PORT_COLUMNS = ("switch", "port", "peer", "peer_port", "pvid", "tagged", "untagged", "floods", "stp", "flow_control")
ENTRY_COLUMNS = ("switch", "vlan", "mac", "host", "port")


def _write(writing: Writing) -> dict[str, str]:
    ports = (
        (
            switch.name, writing.ports.name_port(port.number), port.peer,
            writing.ports.name_port(port.peer_port) if port.peer_port else "", "" if port.pvid is None else port.pvid,
            format_ranges(port.tagged), format_ranges(port.untagged),
            "yes" if port.floods else "no", "off", writing.flow_control,
        )
        for switch in writing.switches
        for port in switch.ports
    )  # fmt: skip
    entries = (
        (switch.name, vlan, writing.macs[host], writing.hosts[host], writing.ports.name_port(port))
        for switch in writing.switches
        for vlan, host, port in switch.table.rows()
    )
    return {"ports.csv": csv_text(PORT_COLUMNS, ports), "mac-entries.csv": csv_text(ENTRY_COLUMNS, entries)}


CSV = Dialect(
    summary="tables of ports and of MAC entries, for any other switch",
    ports="{}",
    floods_by_port=True,
    refusals=nothing_refused,
    write=_write,
    read=read_csv,
    apply="by hand, or by a script of your own; ports are identified by their numbers",
    notes=(
        "floods: no means that broadcasts and unknown addresses must not leave by that port; a switch that cannot do "
        "so needs testbed export --floods members.",
        f"Let learned addresses age after {AGEING} s; they serve no path.",
    ),
)
