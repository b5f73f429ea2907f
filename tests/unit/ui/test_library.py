"""`import testbed as tb`: what it offers gives what the commands give."""

from __future__ import annotations

import builtins
import dataclasses
import inspect
import json
import pydoc
import subprocess
import sys

import networkx as nx
import pandas as pd
import pytest

import testbed as tb
from testbed.base.model import Sample
from testbed.engines.simulate import PacketSettings, Settings
from testbed.planning.summary import summary
from testbed.results import ResultFolder
from testbed.results.samples import samples_to_csv
from tests.fabrics import plan_of
from tests.runs import head

TORUS = {"topology": {"kind": "torus", "sizes": [4, 4]}}


@pytest.fixture(scope="module")
def torus():
    return tb.plan(TORUS)


def test_importing_it_imports_nothing_that_takes_time():
    code = "import sys, testbed; print(*sorted(n for n in sys.modules if n.startswith(('testbed', 'numpy', 'pandas'))))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert {name.partition(".")[0] for name in done.stdout.split()} == {"testbed"}
    assert not [name for name in done.stdout.split() if not name.startswith("testbed.base") and name != "testbed"]


def test_all_that_it_offers_is_there_and_documented():
    assert len([name for name in tb.__all__ if name[0].islower()]) < 15
    for name in tb.__all__:
        assert getattr(tb, name).__doc__, name
    assert {*tb.__all__} <= {*dir(tb)}


@pytest.mark.parametrize("name", ["plan", "scenarios", "run", "simulate", "lab", "load"])
def test_help_is_the_functions_and_tells_of_each_parameter(name):
    called = getattr(tb, name)
    assert inspect.isfunction(called)
    said = pydoc.plain(pydoc.render_doc(called)).splitlines()
    assert said[0] == f"Python Library Documentation: function {name} in module testbed"
    assert said[2].startswith(f"{name}(")
    assert len(said) < 60
    told = "\n".join(said[3:])
    for parameter in inspect.signature(called).parameters.values():
        assert f"        {'**' * (parameter.kind is parameter.VAR_KEYWORD)}{parameter.name}: " in told


def test_help_of_simulate_says_what_each_setting_is():
    told = pydoc.plain(pydoc.render_doc(tb.simulate))
    called = {"clocks": "cycles"}
    names = {called.get(one.name, one.name) for kind in (Settings, PacketSettings) for one in dataclasses.fields(kind)}
    assert {name for name in names if f"`{name}`" not in told and f"        {name}: " not in told} == set()


def test_a_plan_is_that_of_the_command(torus):
    core = plan_of("torus", sizes=[4, 4])
    assert torus.digest == core.digest
    assert torus.summary() == {**summary(core), "scenario": "python"}
    assert tb.plan("torus4x4").digest == core.digest
    assert tb.plan(tb.scenarios()["torus4x4"]).digest == core.digest


def test_settings_replace_what_the_scenario_says():
    plan = tb.plan("torus4x4", {"topology.sizes": (8, 8), "routing": {"kind": "updown"}, "links.rate": "10 Gbit/s"})
    scenario = plan.core.scenario
    assert (plan.core.topology.sizes, scenario.routing_kind, scenario.links.rate) == ((8, 8), "updown", 1e10)
    with pytest.raises(tb.InputError, match=r'^settings routing.kind: there is no routing "updwn". Did you mean'):
        tb.plan("torus4x4", {"routing.kind": "updwn"})
    with pytest.raises(tb.InputError, match=r'no scenario of that name\. Did you mean "torus4x4"'):
        tb.plan("torus4x5")


def test_paths_are_named_and_tabled(torus):
    assert torus.path("h1", "h2") == ("s1", "s2")
    assert torus.path("h1", "h1") == ("s1",)
    frame = torus.paths_frame()
    assert list(frame.columns) == ["source", "destination", "hops", "path"]
    assert (len(frame), frame.hops.mean()) == (240, pytest.approx(32 / 15))  # 2 with the host itself
    for row in frame.itertuples():
        assert torus.path(row.source, row.destination) == tuple(row.path.split())
    assert frame[frame.source == "h5"].reset_index(drop=True).equals(torus.paths_frame("h5"))
    with pytest.raises(tb.InputError, match=r'python has no host "h17"\. Did you mean "h7"'):
        torus.path("h1", "h17")


def test_a_table_too_large_is_a_sentence(torus, monkeypatch):
    monkeypatch.setattr("testbed.ui.python.plans.MAX_PATHS", 239)
    with pytest.raises(tb.InputError, match=r"there are 240 paths and a table holds 239; give a source, such as"):
        torus.paths_frame()
    assert len(torus.paths_frame("h1")) == 15


def test_loads_are_those_of_the_analysis(torus):
    loads = torus.loads("transpose")
    frame = loads.frame()
    assert (frame.flows.max(), list(frame.columns)) == (loads.max, ["channel", "flows", "demand"])
    assert loads.saturation == 1 / frame.demand.max()
    assert frame.set_index("channel").flows["s1→s2"] == loads.flows[loads.channels.index("s1→s2")]
    assert repr(loads) == f"<loads of transpose: at most {loads.max} flows on a channel, full at injection rate 0.5>"
    with pytest.raises(tb.InputError, match='Did you mean "transpose"'):
        torus.loads("transposed")
    with pytest.raises(tb.InputError, match="needs a square number of hosts, not 8"):
        tb.plan({"topology": {"kind": "ring", "switches": 8}}).loads("transpose")


def test_proofs_tell_what_was_found(torus):
    assert repr(torus.prove()) == "proved: deadlock free"
    broken = tb.plan("ring5-deadlock", {"expect": "deadlock_free"})
    proof = broken.prove()
    assert (bool(proof), proof.deadlock_free, len(proof.violations)) == (False, False, 1)
    assert repr(proof).startswith("NOT PROVED: can deadlock\n  deadlock: ")
    with pytest.raises(tb.VerificationError, match="verification failed, nothing was built"):
        broken.require_proof()


def test_the_graph_has_every_link_with_its_ports():
    plan = tb.plan(
        {"topology": {"kind": "ring", "switches": 4, "parallel_links": 2}, "links": {"host_rate": "100 Mbit/s"}}
    )
    graph = plan.graph()
    trunks = [(a, b, d) for a, b, d in graph.edges(data=True) if d["kind"] == "trunk"]
    assert (len(trunks), nx.is_connected(graph), {d["rate"] for *_, d in trunks}) == (8, True, {1e9})
    assert graph.edges["h1", "s1", 0] == {"kind": "edge", "rate": 1e8, "ports": {"s1": 1}}
    ports = [(name, port) for *_, data in graph.edges(data=True) for name, port in data["ports"].items()]
    assert len(ports) == len(set(ports)) == 8 * 2 + 4


def test_a_plan_shows_itself(torus, tmp_path):
    assert repr(torus) == ("<plan python: torus, dor, fixed; 16 switches, 32 links, 16 hosts; proved: deadlock free>")
    page = torus._repr_html_()
    assert page.count('id="plan-') > 32
    assert "proved: deadlock free" in page
    assert json.loads(torus.save(tmp_path / "plan.json").read_text())["digest"] == torus.digest


def test_what_needs_a_library_that_is_not_there_says_so(torus, monkeypatch):
    found = builtins.__import__
    monkeypatch.setattr("testbed.ui.python.optional_libraries.import_module", lambda name: found(f"no_{name}"))
    for call, name in ((torus.graph, "networkx"), (torus.paths_frame, "pandas"), (torus.loads().frame, "pandas")):
        with pytest.raises(tb.CapabilityError) as caught:
            call()
        assert f"needs {name}, which is not here" in str(caught.value)
        assert ".venv/bin/pip install -e '.[notebook]'" in str(caught.value)


SAMPLES = (
    Sample("goodput", 9.5e8, "bit/s", {"load": "1", "src": "h1", "dst": "h2", "repeat": "0"}, 9.57e8),
    Sample("rtt", 1e-3, "s", {"load": "2"}),
)


@pytest.fixture
def folder(tmp_path):
    found = ResultFolder(tmp_path, plan_of("ring", switches=3))
    found.write_plan({"kernel": "any"})
    found.write_samples(SAMPLES)
    found.write_manifest("warn", ["a reason"], [head(1, "iperf3")], {"dilation": 150.0})
    return found.finish()


def test_a_run_is_tables(folder):
    run = tb.load(folder)
    assert (run.verdict, run.reasons, run.plan.digest) == ("warn", ("a reason",), run.core.plan.digest)
    assert run.samples.equals(pd.read_csv(folder / "samples.csv", keep_default_na=False, na_values=[""]))
    assert run.samples[run.samples.metric == "goodput"].predicted.tolist() == [9.57e8]
    assert run.samples.src.tolist()[0] == "h1"
    assert len(run.telemetry) == 0
    assert repr(run) == f"<run {folder.name}: warn, 2 figures>"
    assert "<li>a reason</li>" in run._repr_html_()
    with pytest.raises(tb.InputError, match="is not a result folder"):
        tb.load(folder / "none")


def test_a_run_is_written_as_parquet(folder, tmp_path):
    run = tb.load(str(folder))
    (file,) = run.to_parquet(tmp_path / "new" / "tables")
    assert pd.read_parquet(file).equals(run.samples)


def test_a_simulation_is_a_table_and_a_folder(tmp_path):
    plan = tb.plan({"topology": {"kind": "ring", "switches": 4}})
    said: list[str] = []
    found = tb.simulate(plan, [0.05, 0.1], seeds=2, cycles=6000, warm_up=1000, results=tmp_path, progress=said.append)
    frame = found.frame()
    assert frame[["load", "seed"]].values.tolist() == [[0.05, 1], [0.05, 2], [0.1, 1], [0.1, 2]]
    assert frame.groupby("load").accepted.mean().max() == pytest.approx(found.throughput)
    assert (found.deadlock, bool(frame.deadlock.any()), bool(said)) == ((), False, True)
    assert len(tb.load(found.path).samples)
    with pytest.raises(tb.InputError, match=r'cycle: is no setting at flit level\. Did you mean "cycles"'):
        tb.simulate(plan, cycle=1)
    with pytest.raises(tb.InputError, match="should be flit or packet"):
        tb.simulate(plan, level="frame")  # type: ignore[arg-type]


def test_a_file_of_samples_of_an_earlier_version_is_read(folder):
    text = "metric,value,unit,predicted,labels\n"
    labels = '{""dst"": ""h2"", ""load"": ""1"", ""repeat"": ""0"", ""src"": ""h1""}'
    text += f'goodput,950000000.0,bit/s,957000000.0,"{labels}"\n'
    text += 'rtt,0.001,s,,"{""load"": ""2""}"\n'
    assert samples_to_csv(SAMPLES).startswith("metric,value,unit,predicted,dst,load,repeat,src\n")
    (folder / "samples.csv").write_text(text)
    assert tb.load(folder).core.samples == SAMPLES


@pytest.mark.slow
def test_the_command_writes_the_same_tables(folder, tmp_path):
    for name, read in (
        ("out.csv", lambda file: pd.read_csv(file, keep_default_na=False, na_values=[""])),
        ("out.parquet", pd.read_parquet),
    ):
        command = [
            sys.executable,
            "-m",
            "testbed",
            "report",
            str(folder),
            "-o",
            str(tmp_path / name),
            "--format",
            "json",
        ]
        subprocess.run(command, capture_output=True, check=True)
        assert read(tmp_path / name).equals(tb.load(folder).samples)
