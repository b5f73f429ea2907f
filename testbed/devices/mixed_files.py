"""Files that hold the configurations of several switches, or of two dialects, one after the other."""

from __future__ import annotations

import re

from testbed.base.errors import Problem

# Lines that no other dialect has, each in the words of its dialect.
_SIGNS = {
    "arista-eos": r"! device: .*EOS-|! Command: show running-config",
    "cisco-ios": r"interface (range )?(Fast|Gigabit|TenGigabit|TwentyFiveGig|FortyGigabit|HundredGig)\w*\s*\d",
    "cisco-nxos": r"!Command: show running-config|feature-set \w|vdc \S+ id \d",
    "junos": r"set (interfaces|vlans|system|protocols) \S|(interfaces|vlans|system|protocols) \{",
    "mikrotik": r"/interface (bridge|ethernet|vlan)\b",
    "openwrt": r"config (device|bridge-vlan|interface)( |$)",
    "powerconnect": r"\s*interface (range )?ethernet (\d/)?x?g\d",
    "procurve": r";.*[Cc]onfiguration [Ee]ditor",
}
_ALL = {dialect: re.compile(sign) for dialect, sign in _SIGNS.items()}
_HOSTNAME = re.compile(r"(?:hostname|switchname|set system host-name) +(\S+)")


def find_mixed_file(file: str, text: str) -> Problem | None:
    """What is wrong with a file that is not of one switch; None where it is."""
    first: dict[str, tuple[int, str]] = {}
    names: dict[str, int] = {}
    for number, line in enumerate(text.splitlines(), 1):
        for dialect, sign in _ALL.items():
            if dialect not in first and sign.match(line):
                first[dialect] = number, line.strip()
        named = _HOSTNAME.match(line)
        if named is not None:
            names.setdefault(named[1].strip('"'), number)
    remedy = "save the configuration of each switch in a file of its own"
    if len(first) > 1:
        (one, (_, before)), (other, (number, line)) = sorted(first.items(), key=lambda item: item[1])[:2]
        sentence = f'"{line[:60]}" is of the dialect {other}, and "{before[:60]}" above of {one}; {remedy}'
        return Problem(f"{file} line {number}", sentence)
    if len(names) > 1:
        (before, _), (name, number) = sorted(names.items(), key=lambda item: item[1])[:2]
        return Problem(f"{file} line {number}", f"names the switch {name}, and a line above {before}; {remedy}")
    return None
