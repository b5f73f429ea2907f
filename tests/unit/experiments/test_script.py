"""Loads that are a program of one's own: what it is told, and what is refused before anything runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from testbed.base.errors import InputError
from testbed.base.messages import Process
from testbed.experiments.run import simulated, vm
from testbed.experiments.run.loads.run_script import prepare_script, script_file
from testbed.planning import make_plan
from testbed.scenario import parse_scenario
from testbed.scenario.workloads.script import commands


def plan_of(folder: Path, keys: str, more: str = ""):
    text = f"topology: {{kind: mesh, sizes: [2]}}\nworkloads: [{{kind: script, {keys}}}]\n{more}"
    return make_plan(parse_scenario(text, str(folder / "mine.yaml")))


def script_in(folder: Path, text: str = "#!/bin/sh\n", mode: int = 0o755) -> None:
    (folder / "x.sh").write_text(text)
    (folder / "x.sh").chmod(mode)


def test_it_is_told_everything_and_runs_where_it_is_asked_for(tmp_path):
    script_in(tmp_path)
    plan = plan_of(tmp_path, "run: ./x.sh, args: [h1, -n, '3'], hosts: [h2, h1]")
    spec = plan.scenario.workloads[0].spec
    assert script_file(plan, spec) == tmp_path / "x.sh"
    shared = {"TESTBED_HOSTS": "h2 h1", "TESTBED_ADDRESSES": "10.0.0.2 10.0.0.1", "TESTBED_DILATION": "50"}
    assert commands(spec, "/run/lab/x.sh", plan.topology, 50.0) == [
        Process(
            "h2", "h2", ("/run/lab/x.sh", "10.0.0.1", "-n", "3"),
            env={**shared, "TESTBED_HOST": "h2", "TESTBED_ADDRESS": "10.0.0.2", "TESTBED_INDEX": "0"},
        ),
        Process(
            "h1", "h1", ("/run/lab/x.sh", "10.0.0.1", "-n", "3"),
            env={**shared, "TESTBED_HOST": "h1", "TESTBED_ADDRESS": "10.0.0.1", "TESTBED_INDEX": "1"},
        ),
    ]  # fmt: skip
    everywhere = plan_of(tmp_path, "run: x.sh")
    assert len(commands(everywhere.scenario.workloads[0].spec, "x", everywhere.topology, 1.0)) == 2


@pytest.mark.parametrize(
    ("keys", "sentences"),
    [
        ("run: x, hosts: [h3]", ['workloads.0.hosts.0: there is no host "h3". Did you mean "h2"?']),
        ("run: x, hosts: [h1, h2, h1]", ['workloads.0.hosts.2: "h1" is listed twice']),
        ("run: x, hosts: []", ["workloads.0.hosts: should have 1 or more entries, not []"]),
        ("hosts: [h1]", ["workloads.0.run: is required: text"]),
        ("run: x, time_limit: 0", ["workloads.0.time_limit: should be above 0, not 0"]),
    ],
)
def test_what_cannot_be_asked_for_is_a_sentence(tmp_path, keys, sentences):
    with pytest.raises(InputError) as caught:
        plan_of(tmp_path, keys)
    assert [str(problem).removeprefix(f"{tmp_path}/mine.yaml: ") for problem in caught.value.problems] == sentences


@pytest.mark.parametrize(
    ("text", "mode", "sentence"),
    [
        (None, 0, 'there is no file "./x.sh"'),
        ("#!/bin/sh\n", 0o644, '"./x.sh" cannot be executed; type: chmod +x '),
        ("echo\n", 0o755, '"./x.sh" should begin with a line such as #!/bin/sh, or be a program'),
    ],
)
def test_a_file_that_cannot_run_is_refused_before_a_lab_is_built(tmp_path, text, mode, sentence):
    if text is not None:
        script_in(tmp_path, text, mode)
    plan = plan_of(tmp_path, "run: ./x.sh")
    with pytest.raises(InputError) as caught:
        prepare_script(plan, plan.scenario.workloads[0].spec, "workloads.0")
    assert str(caught.value).startswith(f"{tmp_path}/mine.yaml: workloads.0.run: {sentence}")


def test_engines_without_its_file_or_without_programs_refuse_it(tmp_path):
    script_in(tmp_path)
    problems = vm.VirtualMachineEngine().find_missing(plan_of(tmp_path, "run: ./x.sh", "engine: vm"), print).problems
    assert "for the virtual machine sees only the project" in str(problems[0])
    problems = (
        simulated.SimulatorEngine().find_missing(plan_of(tmp_path, "run: ./x.sh", "engine: simulate"), print).problems
    )
    assert "none can be simulated" in str(problems[0])
