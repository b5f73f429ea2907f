"""Read files of ifupdown2 back."""

from __future__ import annotations

from collections.abc import Mapping

from testbed.errors import Problem
from testbed.export.bridge import Bridge
from testbed.export.read_linux import Draft, carry_out, read_batch

_YES = ("yes", "on")


def read_ifupdown2(name: str, files: Mapping[str, str], batch: str) -> tuple[Bridge, list[Problem]]:
    """Read the folder of one switch; see Dialect.read.

    Args:
        name: of the switch.
        files: name → text of the files of the export.
        batch: name of the file for `bridge -batch`.
    """
    draft = Draft()
    file = f"{name}/interfaces"
    stanzas = _stanzas(files.get(file, ""))
    bridges = {device: said for device, said in stanzas.items() if "bridge-ports" in said}
    if not bridges:
        draft.problems.append(Problem(file, f"has no bridge, so nothing is known of {name}"))
        return draft.finish(name)
    for device, said in bridges.items():
        filtering, stp = (str(int(said.get(key) in _YES)) for key in ("bridge-vlan-aware", "bridge-stp"))
        words = ["name", device, "type", "bridge", "vlan_filtering", filtering, "stp_state", stp]
        # ifupdown2 gives a port without bridge-pvid the PVID 1.
        carry_out(draft, ["ip", "link", "add", *words, "vlan_default_pvid", "0"], file)
        for port in said["bridge-ports"].split():
            carry_out(draft, ["ip", "link", "set", "dev", port, "master", device], file)
            _port(draft, port, stanzas.get(port, {}), file)
    path = f"{name}/{batch}"
    if path in files:
        read_batch(draft, path, files[path])
    return draft.finish(name)


def _port(draft: Draft, port: str, said: Mapping[str, str], file: str) -> None:
    add = ["bridge", "vlan", "add", "dev", port, "vid"]
    for vids in said.get("bridge-vids", "").split():
        carry_out(draft, [*add, vids], file)
    if said.get("bridge-allow-untagged", "yes") in _YES:
        carry_out(draft, [*add, said.get("bridge-pvid", "1"), "pvid", "untagged"], file)


def _stanzas(text: str) -> dict[str, dict[str, str]]:
    """Attributes of each interface; of those that may stand several times only the last."""
    found: dict[str, dict[str, str]] = {}
    current: dict[str, str] = {}
    for line in text.splitlines():
        words = line.split()
        if not words or words[0].startswith("#"):
            continue
        if words[0] == "iface":
            current = found.setdefault(words[1], {})
        elif words[0] != "auto":
            current[words[0]] = " ".join(words[1:])
    return found
