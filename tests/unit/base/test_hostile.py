"""Input and machines that are not as they should be: a sentence and an exit code, never a traceback."""

from __future__ import annotations

import json
import os
import random
import stat
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from testbed.base.errors import InputError, reading
from testbed.base.files import read_text
from testbed.experiments.report.run_facts import _pace
from testbed.experiments.sweep.record import read_record
from testbed.results import load_run
from testbed.results.samples import load_failures
from testbed.results.telemetry import load_telemetry
from testbed.scenario import find_scenario, parse_scenario
from tests.runs import goodput, run_of, text_of
from tests.runs import stored as stored_run

ROOT = Path(__file__).parents[3]
LONG = "a" * 5000


def call(*arguments: str, nobody: bool = False, into: str = "", **variables: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "testbed", *arguments]
    if nobody:
        # A user namespace without any mapping: nobody, but with access to this clone wherever it lies.
        command = ["unshare", "--user", *command]
    with open(into or os.devnull, "w") as output:  # noqa: PTH123 - /dev/full is no path of a file
        return subprocess.run(
            command, stdout=output if into else subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False,
            timeout=120, env={**os.environ, **variables},
        )  # fmt: skip


@pytest.mark.parametrize("tag", ["float", "int"])
def test_a_number_of_no_digits(tag):
    with pytest.raises(InputError) as caught:
        parse_scenario(f"topology: {{kind: mesh, sizes: [!!{tag} '', 2]}}", "x.yaml")
    assert str(caught.value).startswith("x.yaml: a value cannot be read: a number has no digits; text that looks")


@pytest.mark.parametrize(
    "value", ["!!bool maybe", "!!timestamp soon", "1:" * 800 + "1.5"], ids=["bool", "timestamp", "sixties"]
)
def test_a_value_that_is_not_what_its_tag_or_its_form_says(value):
    with pytest.raises(InputError, match=r"^x\.yaml: a value cannot be read: (it is not what its tag|int too large)"):
        parse_scenario(f"name: {value}", "x.yaml")


def test_a_kind_of_no_letters():
    with pytest.raises(InputError) as caught:
        parse_scenario("topology: {kind: ''}", "x.yaml")
    assert str(caught.value).startswith('x.yaml: topology.kind: there is no topology "". Known: mesh, torus')


def test_an_entry_beyond_all_numbers():
    with pytest.raises(InputError) as caught:
        parse_scenario("topology: {kind: mesh, sizes: [2, 2]}", "x.yaml", [f"topology.sizes.{'9' * 5000}=1"])
    assert "topology.sizes has no entry" in str(caught.value)
    assert "it has 2, counted from 0" in str(caught.value)
    assert len(str(caught.value)) < 400


def test_half_a_character():
    with pytest.raises(InputError) as caught:
        parse_scenario('topology: {kind: mesh, "\\ud800": 2}', "x.yaml")
    assert str(caught.value) == "x.yaml: line 1, column 24: an escape is half a character; write the character itself"
    both = parse_scenario('{"description": "\\ud83d\\ude00", "topology": {"kind": "mesh", "sizes": [2]}}', "x.yaml")
    assert both.description == "\N{GRINNING FACE}"


def test_a_scenario_whose_name_is_too_long():
    with pytest.raises(InputError, match=r"^\./aaa[a…]*: cannot be read: File name too long$"):
        find_scenario(f"./{LONG}")


@pytest.mark.slow
@pytest.mark.parametrize("command", [["report", LONG], ["compare", LONG, "x"], ["sweep", f"./{LONG}.yaml"]])
def test_folders_whose_name_is_too_long(command):
    done = call(*command)
    assert done.returncode == 2
    assert "File name too long" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_pipe_is_no_file(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(InputError) as caught, reading(tmp_path / "pipe"):
        read_text(tmp_path / "pipe")
    assert str(caught.value) == f"{tmp_path}/pipe: cannot be read: it is a pipe or a device, not a file"


@pytest.mark.slow
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else")
def test_what_may_not_be_read():
    with TemporaryDirectory() as closed:  # a short path, which is told whole
        Path(closed).chmod(0)
        done = call("plan", f"{closed}/x.yaml", nobody=True, HOME="/nonexistent")
    assert done.stderr.splitlines()[-1] == f"{closed}/x.yaml: cannot be read: Permission denied"
    assert done.returncode == 2


@pytest.mark.slow
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else")
@pytest.mark.parametrize("engine", ["ovs", "realtime"])
def test_without_user_namespaces_no_lab_is_begun(engine):
    """The setting is one of a user namespace, so that it can be had here alone."""
    script = 'echo 0 >/proc/sys/user/max_user_namespaces; exec setpriv --inh-caps -all --bounding-set -all -- "$@"'
    command = ["unshare", "--user", "--map-root-user", "sh", "-ec", script, "sh", sys.executable, "-m", "testbed"]
    done = subprocess.run(
        [*command, "run", "ring4", "--engine", engine], capture_output=True, text=True, check=False, cwd=ROOT
    )
    said = done.stderr.splitlines()
    assert said[-1] == (
        "a lab needs root, or a user namespace: no user namespaces are allowed (user.max_user_namespaces = 0); "
        "sudo sysctl -w user.max_user_namespaces=9999; or run the command with sudo"
    )
    assert done.returncode == 2
    assert not any("building" in line for line in said)


@pytest.mark.slow
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else")
@pytest.mark.skipif(
    not all(folder.stat().st_mode & stat.S_IXOTH for folder in (ROOT, *ROOT.parents)),
    reason="another user cannot reach this clone; one in a folder that is open to others can be tried",
)
def test_machine_code_that_cannot_be_kept_is_compiled_anew():
    kernel = "from numpy import array; from testbed.fabric.kernels.cycles import on_cycles as kernel"
    done = subprocess.run(
        ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups", sys.executable, "-c",
         f"{kernel}; print(kernel(array([0, 1, 2]), array([1, 0], dtype='int32')))"],
        capture_output=True, text=True, check=False, timeout=120, cwd=ROOT,
        env={**os.environ, "HOME": "/nonexistent", "NUMBA_CACHE_DIR": "", "TESTBED_INTERPRET": "0"},
    )  # fmt: skip
    assert "machine code is not kept, because no folder for it can be written" in done.stderr
    assert (done.returncode, done.stdout) == (0, "[ True  True]\n"), done.stderr


@pytest.mark.slow
def test_an_output_that_has_no_such_letters():
    done = call("list", PYTHONIOENCODING="ascii")
    assert (done.returncode, done.stderr) == (0, "")
    shown = call("plan", "nosuch-→", "--format", "json", PYTHONIOENCODING="ascii")
    assert json.loads(shown.stdout)["problems"][0]["place"] == "nosuch-→"


@pytest.mark.slow
@pytest.mark.parametrize("form", ["text", "json"])
def test_an_output_that_is_full(form):
    done = call("plan", "ring8", "--format", form, into="/dev/full")
    assert done.stderr == "the output cannot be written: No space left on device; make room and repeat\n"
    assert done.returncode == 1


DAMAGE = {
    "an object": ('{"a": 1}', "it should be a list of repeats"),
    "a number": ("[1]", "it should be a list of repeats"),
    "nothing": ("[{}]", "KeyError('events')"),
    "no time": ('[{"events": [{"at": "x"}]}]', "must be real number, not str"),
    "endless": ('[{"events": [{"at": Infinity}]}]', "an event is at inf"),
    "no host": ('[{"events": [], "seconds": 1, "pairs": [{"src": 1, "dst": "h"}]}]', "a pair should have the names"),
    "no counts": (
        '[{"events": [], "seconds": 1, "pairs": [{"src": "h", "dst": "h", "sent": 3, "arrived": []}]}]',
        "'int' object is not iterable",
    ),
    "deep": ("[" * 100_000, "it is nested too deeply: 64 lists and blocks in each other are the most that is read"),
    "half": ("[", "Expecting value"),
}


@pytest.mark.parametrize("kind", DAMAGE)
def test_damaged_failures(tmp_path, kind):
    text, sentence = DAMAGE[kind]
    (tmp_path / "failures-1.json").write_text(text)
    with pytest.raises(InputError) as caught:
        load_failures(tmp_path, "1")
    assert f"failures-1.json: is damaged: {sentence}" in str(caught.value)


def test_failures_behind_a_pipe(tmp_path):
    os.mkfifo(tmp_path / "failures-1.json")
    with pytest.raises(InputError, match=r"failures-1\.json: cannot be read: it is a pipe"):
        load_failures(tmp_path, "1")


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ('{"schema_version": 1, "sweep": "x", "source": "x", "started": 1, "runs": []}', "it lists no run"),
        (
            '{"schema_version": 1, "sweep": "x", "source": "x", "started": 1' + "0" * 400 + ', "runs": []}',
            "it lists no run",
        ),
        ("[" * 100_000, "it is nested too deeply: 64 lists and blocks in each other are the most that is read"),
    ],
    ids=["no runs", "a huge time", "deep"],
)
def test_damaged_sweeps(tmp_path, text, sentence):
    (tmp_path / "sweep.json").write_text(text)
    with pytest.raises(InputError, match=rf"sweep.json: is damaged: {sentence}"):
        read_record(tmp_path)


@pytest.mark.parametrize("load", [load_failures, load_telemetry])
def test_a_load_of_100_000_letters(tmp_path, load):
    with pytest.raises(
        InputError, match=r"(failures|telemetry)-aaa[a]*… .*: cannot be read: File name too long$"
    ) as caught:
        load(tmp_path, "a" * 100_000)
    assert len(str(caught.value)) < 400


FAR = 10**19  # beyond 64 bits
OF_PLANS = {
    "no object": (("routes",), [1], "its routes is not an object"),
    "a text": (("topology",), "x", "its topology is not an object"),
    "a scenario": (("scenario",), [1], "its scenario is not an object"),
    "another record": (("routes", "type"), "Topology", "unexpected keyword argument"),
    "no record": (("vlans", "type"), "os", "KeyError('os')"),
    "a port beyond 64 bits": (("topology", "host_port", "values", 0), FAR, "too large"),
    "a number of switches": (("topology", "switch_count"), FAR, f"topology.switch_count is {FAR}"),
    "a shape": (("topology", "links", "shape", 0), FAR, "Maximum allowed dimension exceeded"),
    "no place": (("topology", "positions", "values", 0), float("inf"), "positions holds a number that is not finite"),
    "a dilation": (("scenario", "lab", "dilation"), FAR, "should be 1000000 or less"),
}


@pytest.fixture
def run_folder(tmp_path) -> Path:
    text = text_of("{kind: mesh, sizes: [2]}", "{kind: iperf3, protocol: udp}")
    return stored_run(tmp_path, run_of(text, goodput(1e9), name="hostile"))


@pytest.mark.parametrize("kind", OF_PLANS)
def test_damaged_plans_of_results(run_folder, kind):
    path, value, sentence = OF_PLANS[kind]
    part = raw = json.loads((run_folder / "plan.json").read_text())
    for key in path[:-1]:
        part = part[key]
    part[path[-1]] = value
    (run_folder / "plan.json").write_text(json.dumps(raw))
    with pytest.raises(InputError) as caught:
        load_run(run_folder)
    assert str(caught.value).startswith(f"{run_folder}/plan.json: ")
    assert sentence in str(caught.value)


@pytest.mark.parametrize("key", ["seconds", "dilation"])
@pytest.mark.parametrize(
    "value", ["x", [], None, 10**400, float("nan"), float("inf")], ids=lambda value: str(value)[:9]
)
def test_a_manifest_with_something_else_than_a_number(run_folder, key, value):
    raw = json.loads((run_folder / "manifest.json").read_text())
    (run_folder / "manifest.json").write_text(json.dumps({**raw, key: value}))
    with pytest.raises(InputError, match=rf"manifest\.json: is damaged: its {key} is not a number but ") as caught:
        load_run(run_folder)
    assert len(str(caught.value)) < 400


@pytest.mark.parametrize("labels", ["[1]", "7", "null", '{""src"": 1}', "{"])
def test_labels_that_are_no_object_of_texts(run_folder, labels):
    cell = f'"{labels}"'
    (run_folder / "samples.csv").write_text(f"metric,value,unit,predicted,labels\ngoodput,1.0,bit/s,,{cell}\n")
    with pytest.raises(InputError, match=r"samples\.csv: is damaged: (labels should be an object of texts|Expecting)"):
        load_run(run_folder)


@pytest.fixture
def telemetry() -> dict[str, Any]:
    t, p, m, h = 3, 2, 1, 2
    ints = {
        "port_channel": (p,), "port_host": (p,), "repeat": (t,), "sent_bytes": (t, p), "sent_frames": (t, p),
        "received_bytes": (t, p), "received_frames": (t, p), "port_drops": (t, p), "queue_drops": (t, p),
        "queue_frames": (t, p), "queue_bytes": (t, p), "processors": (t, 3), "coarse_repeat": (m,),
        "host_sent_bytes": (m, h), "host_queue_drops": (m, h), "host_queue_frames": (m, h), "traffic_bytes": (m, h, h),
        "traffic_frames": (m, h, h), "departures": (0, 4), "looks": (0, 4),
    }  # fmt: skip
    floats = {"port_rate": (p,), "window": (1, 2), "time": (t,), "coarse_time": (m,)}
    return {
        **{name: np.zeros(shape, np.int64) for name, shape in ints.items()},
        **{name: np.zeros(shape) for name, shape in floats.items()},
        "ports": np.array(["s1-eth1", "s1-eth2"]), "hosts": np.array(["h1", "h2"]), "schema_version": np.array(1),
    }  # fmt: skip


def stored(folder: Path, arrays: dict[str, Any]) -> Path:
    np.savez_compressed(folder / "telemetry-1.npz", **arrays)
    return folder


def test_sound_telemetry_is_read(tmp_path, telemetry):
    assert load_telemetry(stored(tmp_path, telemetry), "1") is not None


@pytest.mark.slow
def test_telemetry_with_flipped_bits(tmp_path, telemetry):
    """Of the headers of its first part, of the list of parts, and anywhere: a sentence, or nothing has come of it."""
    file = stored(tmp_path, telemetry) / "telemetry-1.npz"
    sound, chance, told = file.read_bytes(), random.Random(25), set()
    listed = sound.index(b"PK\x01\x02")
    places = [*range(60), *range(listed, listed + 80), *range(len(sound) - 22, len(sound))]
    for at in [*places, *(chance.randrange(len(sound)) for _ in range(100))]:
        for flip in (1 << chance.randrange(8), 0xFF):
            file.write_bytes(sound[:at] + bytes([sound[at] ^ flip]) + sound[at + 1 :])
            try:
                found = load_telemetry(tmp_path, "1")
            except InputError as error:
                told.add(str(error).removeprefix(f"{file}: is damaged: ")[:20])
            else:
                assert found is not None
                assert all(
                    np.array_equal(getattr(found, name), telemetry[name]) for name in telemetry if name in SHAPED
                )
    assert len(told) > 5


SHAPED = ("ports", "hosts", "time", "sent_bytes", "window", "looks")


@pytest.mark.parametrize(
    ("name", "value", "sentence"),
    [
        ("sent_bytes", np.zeros((3, 3), np.int64), "sent_bytes has the shape (3, 3), which does not fit"),
        ("time", np.zeros(7), "time has the shape"),
        ("window", np.zeros(2), "window has the shape (2,)"),
        ("time", np.array([0.0, np.inf, 0.0]), "a time or rate is not finite"),
        ("port_host", np.array([0, 9]), "port_host holds a number that is none"),
        ("repeat", np.array([0, 1, 2]), "repeat holds a number that is none"),
        ("looks", np.array([[0, 7, 0, 0]]), "looks holds a repeat or port that is none"),
        ("ports", np.zeros(2), "ports is of type float64"),
        ("traffic_bytes", np.zeros((5, 2, 2), np.int64), "traffic_frames has the shape"),
    ],
)
def test_damaged_telemetry(tmp_path, telemetry, name, value, sentence):
    with pytest.raises(InputError) as caught:
        load_telemetry(stored(tmp_path, {**telemetry, name: value}), "1")
    assert "telemetry-1.npz: is damaged: " in str(caught.value)
    assert sentence in str(caught.value)


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        ({"flow_control": None}, "the run's environment names no flow control"),
        ({"flow_control": "credits"}, "flow control credits, which this program does not know"),
        ({"flow_control": [1]}, "which this program does not know"),
        (None, "the run does not say how it was set"),
        ([], "the run does not say how it was set"),
        ({"flow_control": "none"}, "flow control none: frames without memory are dropped"),
    ],
)
def test_a_simulation_without_its_flow_control_is_reported(asked, says):
    run = SimpleNamespace(is_simulated=True, environment={"simulator": asked})
    assert says in _pace(run).note  # type: ignore[arg-type]
