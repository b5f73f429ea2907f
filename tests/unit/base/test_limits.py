"""Files of others that are larger, deeper or more than people write: a sentence, soon, and with little memory.

They are read by a program of its own that may take 2.5 GB of addresses and has half a minute for each: without limits
most of these take minutes, or more memory than there is.
"""

from __future__ import annotations

import json
import struct
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from testbed.base.errors import MOST_LINES, InputError, LabError, Problem, shorten_middle
from testbed.base.limits import LimitError, parse_arrays, parse_json, scaled_limit
from testbed.devices.read_lines import SwitchLines, vlans_of
from testbed.devices.vlan_set import VlanSet
from testbed.scenario import parse_scenario
from testbed.scenario.read_blocks import read_value

_MEMORY, _SECONDS = 2500 << 20, 30

_READER = """
import json, resource, signal, sys
import testbed.planning.store, testbed.planning.prove_stored, testbed.scenario.read_blocks
from pathlib import Path
from testbed.base import limits
from testbed.devices.audit.read_folder import read_network
from testbed.ui.cli.check_command import texts_of
from testbed.engines.lab.hosts.build_mpi_jobs import read_job
from testbed.base.errors import TestbedError
from testbed.ui.teaching import course
from testbed.planning.prove_stored import read_stored
from testbed.results.telemetry import load_telemetry
from testbed.scenario import load_scenario
from testbed.scenario.catalogue import summaries
from testbed.scenario.plugins import load_file
from testbed.experiments.sweep.read_sweep import load_sweep

limits.UNPACKED = 50 << 20
testbed.planning.store.PLAN_VALUES = testbed.planning.prove_stored.PLAN_VALUES = 1_000_000
testbed.scenario.read_blocks.YAML_VALUES = 10_000
READERS = {
    "scenario": load_scenario, "job": lambda file: read_job("./" + file.parent.name, "job", file.parent.parent),
    "exercise": lambda file: course.read(file.parent), "sweep": load_sweep, "plugin": load_file,
    "audit": lambda file: read_network(texts_of(file.parent)), "plan": read_stored,
    "telemetry": lambda file: load_telemetry(file.parent, "x"),
    "list": lambda file: summaries({"x": file})["x"],
}
def read(reader, file):
    signal.alarm(SECONDS)
    try:
        return READERS[reader](file)
    except TestbedError as error:
        return str(error)

resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
said = {}
for case, (reader, file) in json.load(sys.stdin).items():
    print(case, file=sys.stderr)
    said[case] = read(reader, Path(file))
print(json.dumps(said))
"""


@pytest.fixture(scope="module")
def sentences(tmp_path_factory) -> dict[str, str]:
    """What reading the file of each case says."""
    cases = {}
    for number, (case, (reader, name, make, _)) in enumerate(CASES.items()):
        folder = tmp_path_factory.mktemp(f"given{number}")
        make(folder / name)
        if reader == "audit":
            (folder / "cabling.csv").write_text("switch,port,peer,peer_port\ns1,GigabitEthernet1/0/1,h1,\n")
        cases[case] = (reader, str(folder / name))
    text = _READER.replace("MEMORY", str(_MEMORY)).replace("SECONDS", str(_SECONDS))
    done = subprocess.run(
        [sys.executable, "-c", text], input=json.dumps(cases), capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]  # ends with the case that took too long
    found: dict[str, str] = json.loads(done.stdout)
    return found


LAUGHS = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]\n" for n in range(1, 10)
)
MORE = "TESTBED_LIMITS=10 in the environment is ten times as much"
TOO_MANY = "10,000 values are the most that is read"


def _sparse(size: int) -> Callable[[Path], None]:
    def make(file: Path) -> None:
        with file.open("wb") as opened:
            opened.truncate(size)

    return make


def _text(text: str) -> Callable[[Path], None]:
    def make(file: Path) -> None:
        file.write_text(text, encoding="utf-8")

    return make


def _bomb(file: Path) -> None:
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as packed, packed.open("time.npy", "w") as member:
        np.lib.format.write_array(member, np.zeros(10_000_000))


def _catalyst(lines: int) -> str:
    return "".join(
        f"interface Gi1/0/{n}\n switchport mode trunk\n switchport trunk allowed vlan {n % 2000 + 1}-4094\n"
        for n in range(lines)
    )


CASES: dict[str, tuple[str, str, Callable[[Path], None], list[str]]] = {
    "aliases of aliases in a scenario": (
        "scenario",
        "x.yaml",
        _text(LAUGHS),
        ["x.yaml: line 4, column", TOO_MANY, MORE],
    ),
    "aliases of aliases in a sweep": ("sweep", "x.yaml", _text(LAUGHS), [TOO_MANY]),
    "aliases of aliases in a job": ("job", "job.yaml", _text(LAUGHS), ["job.yaml: line 4", TOO_MANY]),
    "aliases of aliases in an exercise": ("exercise", "exercise.yaml", _text(LAUGHS), ["exercise.yaml", TOO_MANY]),
    "200 MB of scenario": (
        "scenario",
        "x.yaml",
        _sparse(200 << 20),
        ["it has 209,715,200 bytes; 4,194,304 bytes are", MORE],
    ),
    "200 MB of a job": ("job", "job.yaml", _sparse(200 << 20), ["it has 209,715,200 bytes"]),
    "200 MB of a plug-in": ("plugin", "x.py", _sparse(200 << 20), ["it has more than 4,194,304 bytes"]),
    "200 MB of a configuration": (
        "audit",
        "s1.txt",
        _sparse(200 << 20),
        ["s1.txt", "it has 209,715,200 bytes; 16,777,216", MORE],
    ),
    "6,000 workloads": ("scenario", "x.yaml", _text("workloads:\n" + "- {kind: ping}\n" * 6_000), [TOO_MANY, MORE]),
    "lists in lists": (
        "scenario",
        "x.yaml",
        _text("a: " + "[" * 5000),
        ["blocks are nested too deeply: 64 in each other"],
    ),
    "a number of sixties": (
        "scenario",
        "x.yaml",
        _text("a: 1" + ":1" * 500_000),
        ["a number has 1,000,001 characters"],
    ),
    "a list of what is too deep for the fast reader": ("list", "x.yaml", _text("[" * 300_000), ["cannot be read"]),
    "a line of dashes": ("audit", "s1.txt", _text("-" * 300_000), ["it has a line of 300,000 characters; 65,536"]),
    "ports with VLANs of their own": (
        "audit",
        "s1.txt",
        _text(_catalyst(4200)),
        ["4,096 ports of a switch are the most"],
    ),
    "a range of ports without end": (
        "audit",
        "s1.txt",
        _text("console#show running-config\ninterface range ethernet 1/g1-1/g99999999999\n"),
        ["are more ports than can be read; 4,096 ports of a switch"],
    ),
    "a plan of empty lists": (
        "plan",
        "x.json",
        _text("[" + "[]," * 600_000 + "[]]"),
        ["about 1,200,002 values; 1,000,000"],
    ),
    "arrays that unpack to more": (
        "telemetry",
        "telemetry-x.npz",
        _bomb,
        ["would be 80,000,128 bytes when it is unpacked"],
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_more_than_people_write_gets_a_sentence(case, sentences):
    text = sentences[case]
    assert [part for part in CASES[case][3] if part not in text] == []
    assert len(text) < 5000


def test_vlans_of_ports_are_held_as_bits():
    switch = SwitchLines("x.txt", "ios")
    for number in range(100):
        port = switch.port(f"p{number}")
        port.mode, port.said, port.allowed_vlans = "trunk", True, vlans_of("1-4094")
    bridge, _ = switch.finish("x")
    assert all(isinstance(port.members, VlanSet) for port in bridge.ports.values())
    assert sum(sys.getsizeof(VlanSet.from_ids(port.members).bits) for port in bridge.ports.values()) < 100_000


# -------------------------------------------------------------------------------------------------------- the parsers


def test_an_alias_of_what_it_stands_in():
    with pytest.raises(InputError, match=r"line 1, column 8: an alias stands for a block that it is in itself$"):
        read_value("a: &a [*a]", "x.yaml")


def test_aliases_that_people_write_are_read():
    assert read_value("a: &a {b: [1, 2]}\nc: *a\nd: [*a, *a]", "x.yaml")["d"][1] == {"b": [1, 2]}


def test_a_limit_can_be_raised(monkeypatch):
    text = "a: [" + ", ".join("1" for _ in range(150)) + "]"
    monkeypatch.setattr("testbed.scenario.read_blocks.YAML_VALUES", 100)
    with pytest.raises(InputError, match=MORE):
        read_value(text, "x.yaml")
    monkeypatch.setenv("TESTBED_LIMITS", "10")
    assert len(read_value(text, "x.yaml")["a"]) == 150
    for wrong in ("", "many", "0.1", "-5", "nan", "inf", "1e308"):
        monkeypatch.setenv("TESTBED_LIMITS", wrong)
        assert scaled_limit(100) == 100


def test_json_that_is_too_deep_or_has_half_a_character():
    assert parse_json('{"a": ' + "[" * 62 + "]" * 62 + "}")
    for text in ("[" * 65 + "]" * 65, "[" * 100_000, '{"a":' * 70 + "1" + "}" * 70):
        with pytest.raises(LimitError, match="it is nested too deeply: 64 lists and blocks"):
            parse_json(text)
    assert parse_json('"\\ud83d\\ude00"') == "\N{GRINNING FACE}"
    assert parse_json('"\\\\ud83d"') == "\\ud83d"
    with pytest.raises(ValueError, match="half a character"):
        parse_json('{"a": "\\ud83d"}')


def _packed(folder: Path, header: bytes, claimed: int | None = None) -> bytes:
    file = folder / "x.npz"
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as packed:
        packed.writestr("a.npy", header)
    content = file.read_bytes()
    return (
        content
        if claimed is None
        else content.replace(len(header).to_bytes(4, "little"), claimed.to_bytes(4, "little"))
    )


def test_an_array_that_says_it_is_longer_than_it_is(tmp_path):
    whole = tmp_path / "a.npy"
    np.save(whole, np.arange(10))
    text = whole.read_bytes().replace(b"(10,), }", b"(1000000000000,), }").replace(b" " * 11 + b"\n", b"\n")
    with pytest.raises(ValueError, match=r"its array 'a.npy' is shorter than it says"):
        parse_arrays(_packed(tmp_path, text))


@pytest.mark.parametrize(
    ("descr", "shape"), [("|V0", "(1000000000000,)"), ("<U0", "(1000000000000,)"), ("<f8", f"(0, {'9' * 4000})")]
)
def test_an_array_of_nothing_that_says_it_is_long(tmp_path, descr, shape):
    head = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}\n".encode()
    text = b"\x93NUMPY\x01\0" + struct.pack("<H", len(head)) + head
    with pytest.raises(ValueError, match=r"its array 'a.npy' (is shorter than it says|cannot be read)"):
        parse_arrays(_packed(tmp_path, text))


@pytest.mark.parametrize(("at", "central", "value"), [(6, 8, 1), (8, 10, 99)], ids=["password", "packed otherwise"])
def test_an_archive_that_is_packed_as_none_of_ours(tmp_path, at, central, value):
    np.savez_compressed(tmp_path / "x.npz", a=np.arange(5))
    content = bytearray((tmp_path / "x.npz").read_bytes())
    content[content.index(b"PK\3\4") + at] = content[content.index(b"PK\1\2") + central] = value
    with pytest.raises(ValueError, match=r"its array 'a.npy' cannot be read"):
        parse_arrays(bytes(content))


def test_an_archive_of_very_many_arrays(tmp_path):
    with zipfile.ZipFile(tmp_path / "x.npz", "w") as packed:
        for number in range(1001):
            packed.writestr(f"a{number}.npy", "")
    with pytest.raises(LimitError, match=r"has 1,001 arrays; 1,000 arrays are the most that is read"):
        parse_arrays((tmp_path / "x.npz").read_bytes())


def test_an_archive_whose_directory_says_too_little(tmp_path):
    whole = tmp_path / "a.npy"
    np.save(whole, np.zeros(100_000))
    with pytest.raises((ValueError, zipfile.BadZipFile)):
        parse_arrays(_packed(tmp_path, whole.read_bytes(), 1000))


def test_arrays_are_read_as_they_were_written(tmp_path):
    np.savez_compressed(tmp_path / "x.npz", a=np.arange(5), b=np.array(["x", "yz"]))
    found = parse_arrays((tmp_path / "x.npz").read_bytes())
    assert found["a"].tolist() == [0, 1, 2, 3, 4]
    assert found["b"].tolist() == ["x", "yz"]
    np.savez(tmp_path / "o.npz", a=np.array([{}], dtype=object))
    with pytest.raises(ValueError, match=r"Object arrays cannot be loaded|shorter"):
        parse_arrays((tmp_path / "o.npz").read_bytes())


# ----------------------------------------------------------------------------------------------------------- messages


def test_no_message_is_longer_than_a_screen():
    long = "x" * 100_000_000
    for error in (
        InputError.one(long, long, long), InputError([Problem("key", f"{n} {'y' * 500}") for n in range(100_000)]),
        LabError(long), LabError("z\n" * 1_000_000), LabError(["z"] * 1_000_000),
    ):  # fmt: skip
        assert len(str(error).split("\n")) <= MOST_LINES + 1
        assert max(map(len, str(error).split("\n"))) < 5000
    assert str(InputError.one("key", long)).startswith("key: xxxx")
    assert "characters left out) …x" in str(InputError.one("key", long))
    assert str(LabError(["z"] * 100)).endswith("z\n… and 60 lines more")


def test_a_cut_text_says_by_how_much_and_is_not_cut_twice():
    once = shorten_middle("ab" * 5000)
    assert len(once) <= 2000
    assert "… (8,060 characters left out) …" in once
    assert shorten_middle(once) == once
    assert Problem("key", once).in_file("file").sentence == once


def test_an_unknown_key_of_a_megabyte():
    with pytest.raises(InputError) as caught:
        parse_scenario(json.dumps({"topology": "mesh", "q" * 1_000_000: 1}), "x.yaml")
    assert len(str(caught.value)) < 5000
