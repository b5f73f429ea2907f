"""Inputs in which something is repeated more often than people write it: levels, lines, letters, aliases, ranges.

An input is what is repeated and how often, so that what is found can be stored; it becomes a text when it is fed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from random import Random
from typing import Any

from benchmarks.command import ROOT
from testbed.base.errors import MOST_LINES, InputError, TestbedError, reading
from testbed.base.limits import parse_json
from testbed.devices.audit import audit
from testbed.devices.audit.read_folder import read_network
from testbed.experiments.sweep.read_sweep import parse_sweep
from testbed.planning.prove_stored import proved_plan
from testbed.results.samples import samples_from_csv
from testbed.scenario import parse_scenario
from testbed.scenario.fabric_file import read_fabric
from testbed.ui.cli.check_command import readable

_LETTERS = 2_000_000  # at most; longer texts are refused by their length alone
_LONGEST_LINE = 5000  # of a message
_LAUGHS = "a0: &a0 [x, x, x, x]\n" + "".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]\n" for n in range(1, 12))


def _fed_json(text: str) -> None:
    with reading("x.json"):
        parse_json(text)


def _fed_samples(text: str) -> None:
    with reading("samples.csv"):
        samples_from_csv(text)


def _fed_configuration(text: str) -> None:
    cabling = "switch,port,peer,peer_port\ns1,GigabitEthernet1/0/1,h1,\n"
    try:
        files = {"s1.txt": readable(text), "cabling.csv": cabling}
    except OSError as error:
        raise InputError.one("s1.txt", str(error.strerror)) from error
    audit(read_network(files))


def _fed_sweep(text: str) -> None:
    parse_sweep(text, ROOT / "scenarios/sweeps/fuzz.yaml")


_CATALYST = "hostname s1\ninterface GigabitEthernet1/0/1\n switchport mode trunk\n{}\nend\n"
_POWERCONNECT = "console#show running-config\nvlan database\nvlan 2-9\nexit\n{}\nexit\n"
# How a text is read, texts with the place where something is repeated, and what that is; # counts.
_READERS: dict[str, tuple[Callable[[str], object], tuple[str, ...], tuple[str, ...]]] = {
    "scenario": (
        lambda text: parse_scenario(text, "x.yaml"),
        (
            "topology: mesh\n{}",
            "topology: {{kind: mesh, sizes: {}}}",
            _LAUGHS + "{}",
            "workloads:\n{}",
            "description: {}",
        ),
        (
            "[",
            "{{a: ",
            "- {{kind: ping}}\n",
            "a#: 1\n",
            "- *a9\n",
            "b#: *a8\n",
            "x",
            "9",
            ":1",
            "# \n",
            "'",
            "&a# ",
            "!!a ",
            "- ",
        ),
    ),
    "sweep": (
        _fed_sweep,
        ("scenarios: {}", "set:\n{}", _LAUGHS + "{}"),
        ("[", "{{a: ", "- [1]\n", "  a#: [1]\n", "x", "- *a9\n"),
    ),
    "plan": (
        lambda text: proved_plan(text, "x.json"),
        ("{}", '{{"rules": {}'),
        ("[", "[],", '{{"a":', '"x",', "1,", "9"),
    ),
    "json": (_fed_json, ("{}", '{{"a": "{}"}}'), ("[", "[],", '{{"":', "\\ud800", "\\\\", "9", "e9")),
    "fabric": (
        lambda text: read_fabric(text, "x", "auto", None),
        ('{{"nodes": [{}], "links": []}}', "<graphml><graph>{}</graph></graphml>", "<graphml>{}", 'Switch 4 "S-1"\n{}'),
        (
            "[",
            '{{"id": "#"}},',
            '<node id="n#"/>',
            "<data>",
            "x",
            '<edge source="a" target="b"/>',
            '[#] "H-#"[1]\n',
            'Switch 2 "S-#"\n',
            "<!-- ",
        ),
    ),
    "configuration": (
        _fed_configuration,
        (_CATALYST, _POWERCONNECT, "{}", '[{{"ifname": "a", "vlans": [{}]}}]'),
        (
            "-",
            " switchport trunk allowed vlan #-4094\n",
            "interface GigabitEthernet1/0/#\n switchport mode trunk\n",
            "interface range ethernet 1/g1-1/g9999#\n",
            "interface ethernet 1/g#\nswitchport mode general\n",
            ",9",
            "x",
            "switchport x\n",
            "vlan #\n",
            "mac address-table static 0000.0000.000# vlan 1 interface gi1/0/1\n",
            '{{"vlan": 1, "vlanEnd": 99999#}},',
        ),
    ),
    "samples": (
        _fed_samples,
        ("metric,value,unit,labels,predicted\n{}",),
        ("x", '"', ",", "a,1,s,{{}},\n", 'a,1,s,"[",\n', "9"),
    ),
}


def drawn(chance: Random) -> dict[str, Any]:
    """What is repeated, where, and how often."""
    name = chance.choice(sorted(_READERS))
    _, texts, pieces = _READERS[name]
    piece = chance.choice(pieces)
    most = max(1, _LETTERS // len(piece))
    return {
        "reader": name,
        "text": chance.choice(texts),
        "piece": piece,
        "times": min(int(10 ** chance.uniform(1, 6.3)), most),
    }


def feed_excess(given: Mapping[str, Any]) -> None:
    """Read such a text.

    Raises:
        AssertionError: a message does not fit on a screen.
    """
    read, _, _ = _READERS[given["reader"]]
    piece = given["piece"].format()
    pieces = (piece.replace("#", str(n)) for n in range(given["times"])) if "#" in piece else [piece] * given["times"]
    text = given["text"].format("".join(pieces))
    try:
        read(text)
    except TestbedError as error:
        lines = str(error).split("\n")
        if len(lines) > MOST_LINES + 1 or max(map(len, lines)) > _LONGEST_LINE:
            raise AssertionError(f"a message of {len(lines)} lines, {len(str(error))} characters") from error
