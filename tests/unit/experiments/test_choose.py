"""How a dilation is chosen, with a made-up lab: what loads need, the trials, and what is refused."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from types import SimpleNamespace
from typing import Any, cast

import pytest

from testbed.base.errors import CapabilityError, LabError, WorkloadError
from testbed.engines.lab.hosts import build_mpi_jobs as jobs_of
from testbed.engines.lab.hosts.host_shares import most_share
from testbed.engines.local_machine import calibration
from testbed.engines.local_machine.calibration import Calibration
from testbed.experiments.run import open_vswitch as lab_engine
from testbed.experiments.run.checks.fidelity import Judgement, Verdict
from testbed.experiments.run.dilation import calibrate, choose, pilot, virtual_time
from testbed.planning import Plan, make_plan
from testbed.planning.rates import at_dilation, demand
from testbed.scenario import parse_scenario
from testbed.scenario.spec import LabSettings, largest_dilation
from testbed.scenario.workloads import mpi

TORUS = "topology: {kind: torus, sizes: [4, 4]}\n"
UDP = "{kind: iperf3, protocol: udp}"
MPI = "{kind: mpi, job: fabric_bench}"


def plan_of(*loads, topology=TORUS, lab="{}", links="{}"):
    return make_plan(parse_scenario(f"{topology}lab: {lab}\nlinks: {links}\nworkloads: [{', '.join(loads)}]", "x.yaml"))


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    """No calibration of this machine's own."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "testbed" / "calibration.json"


# --- what loads need ------------------------------------------------------------------------------------------


def test_the_demand_of_udp_to_neighbours():
    # 16 flows over two switches each; 1 Gbit/s carries one frame of 1470 + 66 + 4 bytes each 12.32 µs.
    assert demand(plan_of(UDP)) == pytest.approx(16 * 2 * 1e9 / (8 * 1540), rel=1e-6)
    offered = "{kind: iperf3, protocol: udp, offered_load: 0.5}"
    assert demand(plan_of(offered)) == pytest.approx(demand(plan_of(UDP)) / 2)


def test_tcp_needs_more_frames_for_its_acknowledgements():
    tcp = demand(plan_of("{kind: iperf3, protocol: tcp}"))
    assert 1.3 < tcp / demand(plan_of(UDP)) < 1.5


def test_an_mpi_job_counts_as_an_all_to_all():
    # 15 flows share a host's link, where frames are untagged; 3.0 switches in the mean over all 256 pairs, a host with
    # itself counted as 1; and 1.5 frames a segment.
    frames = 1e9 / 15 / (8 * 1538)
    assert demand(plan_of(MPI)) == pytest.approx((3.0 * 256 - 16) * 1.5 * frames, rel=1e-3)
    assert demand(plan_of(MPI, UDP)) == demand(plan_of(MPI))


def test_with_bursts_the_lab_must_manage_more():
    npb, tcp = "{kind: npb, kernel: CG}", "{kind: iperf3, protocol: tcp}"
    margins = [calibration.frame_margin(plan_of(*loads)) for loads in ((UDP,), (UDP, MPI), (npb,), (UDP, tcp))]
    assert margins == [1.25, 1.5, 1.5, 1.5]


def test_without_a_load_the_standard_one_counts():
    assert demand(plan_of()) == demand(plan_of("{kind: ping}")) == demand(plan_of(UDP))


def test_the_pilot_makes_up_for_what_it_needs_less():
    made = pilot.make_pilot(plan_of(UDP, MPI), 1.25)
    assert made.factor == pytest.approx(1.25 * demand(plan_of(MPI)) / demand(plan_of(UDP)) / 0.9)
    assert (made.spec.protocol, made.spec.pattern, made.spec.repeats) == ("udp", "neighbour", 1)
    transpose = "{kind: iperf3, protocol: tcp, pattern: transpose}"
    assert pilot.make_pilot(plan_of(transpose), 1.25).spec.pattern == "transpose"
    all_to_all = "{kind: iperf3, protocol: tcp, pattern: all_to_all}"
    assert pilot.make_pilot(plan_of(all_to_all), 1.25).spec.pattern == "neighbour"


def test_the_pilot_of_modelled_switches_counts_what_hosts_send():
    far = "{kind: iperf3, protocol: udp, pattern: complement}"
    short = "{kind: iperf3, protocol: udp, payload: 128}"
    tcp = "{kind: iperf3, protocol: tcp}"
    assert pilot.make_pilot(plan_of(UDP, MPI), 1.25, modelled=True).factor == pytest.approx(1.25 / 0.9)
    assert pilot.make_pilot(plan_of(MPI), 1.25, modelled=True).factor == pytest.approx(1.25 / 0.9)
    assert pilot.make_pilot(plan_of(far), 1.25, modelled=True).factor == pytest.approx(1.25 / 0.9)
    # Acknowledgements do not count, but for the room that they take. 128 bytes are 198 on the wire, 1470 are 1540.
    assert pilot.make_pilot(plan_of(tcp), 1.25, modelled=True).factor == pytest.approx(1.25 / 0.9, rel=0.05)
    assert pilot.make_pilot(plan_of(UDP, short), 1.25, modelled=True).factor == pytest.approx(1.25 / 0.9 * 1540 / 198)


# --- virtual machines without KVM -----------------------------------------------------------------------------


def test_in_virtual_time_dilation_follows_from_instructions():
    plan = plan_of(UDP)
    choice = virtual_time.dilation_in_virtual_time(plan, 1e-9, None)
    assert (choice.guess_from, choice.tried, choice.margin) == ("virtual time", (), 1.25)
    needed = 1.25 * demand(plan) * virtual_time.HOP_INSTRUCTIONS * 1e-9 / 0.3
    assert needed <= choice.dilation < 2 * needed
    assert virtual_time.dilation_in_virtual_time(plan, 4e-9, None).dilation == pytest.approx(
        4 * choice.dilation, rel=0.5
    )


def test_in_virtual_time_the_lab_is_shaped_and_a_number_stays(lab_that_keeps_up_at):
    lab, told = lab_that_keeps_up_at(1e9), list[str]()
    settled, choice = virtual_time.choose_in_virtual_time(plan_of(UDP), lab, told.append, 1e-9)
    assert choice is not None
    assert settled.scenario.lab.dilation == choice.dilation == lab.shaped[-1].dilation
    assert told == [f"dilation {choice.dilation:g}: an instruction takes 1 ns, whatever this machine does"]
    fixed = plan_of(UDP, lab="{dilation: 50}")
    assert virtual_time.choose_in_virtual_time(fixed, lab, told.append, 1e-9) == (fixed, None)


def test_where_no_dilation_is_tried_no_job_is_built_to_try_one(monkeypatch):
    """Building takes a quarter of a minute where instructions are translated."""
    built: list[str] = []
    for check in ("require", "require_shares"):
        monkeypatch.setattr(lab_engine, check, lambda *about: None)
    monkeypatch.setattr("testbed.engines.local_machine.user_namespace.require", lambda: None)
    monkeypatch.setattr(lab_engine, "runner_of", lambda kind: SimpleNamespace(prepare=None))
    monkeypatch.setattr(lab_engine, "prepare_mpi", lambda plan, job: built.append(job.job))
    lab_engine.find_missing(plan_of(MPI), lambda text: None, tries=False).raise_if_missing()
    assert built == []
    lab_engine.find_missing(plan_of(MPI), lambda text: None).raise_if_missing()
    assert built == ["fabric_bench"]


def test_translated_machines_are_refused_where_it_takes_hours():
    with pytest.raises(
        CapabilityError, match=r"x\.yaml: in real time .* \(vm\.virtual_time: auto\).*with a number as lab\.dilation"
    ):
        virtual_time.refuse_translated(plan_of(UDP, MPI))
    virtual_time.refuse_translated(plan_of(UDP, lab="{dilation: 2000}"))
    virtual_time.refuse_translated(plan_of(UDP, topology="topology: {kind: mesh, sizes: [2]}\n"))
    virtual_time.refuse_translated(plan_of("{kind: iperf3, protocol: udp, offered_load: 0.01}"))


def test_after_half_a_minute_the_best_that_is_known_is_taken(lab_that_keeps_up_at, monkeypatch):
    clock = iter(range(0, 10_000, 20))  # each look at it finds 20 s gone
    monkeypatch.setattr("testbed.experiments.run.dilation.choose.time.monotonic", lambda: float(next(clock)))
    _, choice = choice_of(plan_of(UDP), lab_that_keeps_up_at(10))
    assert choice is not None
    # Without the limit the search goes on down to 10.
    assert choice.dilation == min(one.dilation for one in choice.tried) > 10
    _, choice = choice_of(plan_of(UDP, MPI), lab_that_keeps_up_at(10, 1e9))
    assert choice is not None
    assert choice.kept_up_with_job is False
    assert len([one for one in choice.tried if one.job]) <= 2


def test_without_mpi_jobs_no_job_is_tried():
    assert pilot.pilot_job(plan_of(UDP, "{kind: ping}"), 100) is None


@pytest.mark.parametrize(
    ("dilation", "args"),
    [
        # 20,000 bytes from each to each take 2.55 ms by the fullest link (or host's): three seconds of them.
        (1, "--tests alltoall --alltoall-bytes 20000 --repeats 1177 --warmup 1"),
        (200, "--tests alltoall --alltoall-bytes 20000 --repeats 6 --warmup 1"),
        # Where one takes longer than a fifth of that, blocks are shorter.
        (1000, "--tests alltoall --alltoall-bytes 4707 --repeats 5 --warmup 1"),
        (10_000, "--tests alltoall --alltoall-bytes 2000 --repeats 5 --warmup 1"),
    ],
)
def test_an_all_to_all_of_some_seconds_stands_for_jobs(dilation, args):
    job = pilot.pilot_job(plan_of(UDP, MPI, "{kind: npb, kernel: CG}"), dilation)
    assert job is not None
    assert (job.job, " ".join(job.args or ()), pilot.job_name(job)) == ("fabric_bench", args, "MPI all-to-all")


def test_a_few_exchanges_are_enough_where_frames_are_known_late():
    assert pilot.pilot_job(plan_of(MPI), 10, modelled=True) == pilot.pilot_job(plan_of(MPI), 235)


def test_of_jobs_with_a_pattern_the_one_that_sends_most_is_tried():
    patterns = ("neighbour", "transpose", "pairwise")
    jobs = {name: f"{{kind: mpi, job: pattern, pattern: {name}}}" for name in patterns}
    most = max(patterns, key=lambda name: demand(plan_of(jobs[name])))
    job = pilot.pilot_job(plan_of(*jobs.values()), 100)
    assert job is not None
    assert (job.job, job.pattern, pilot.job_name(job)) == ("pattern", most, f"MPI {most}")
    assert mpi.argument_problems(replace(jobs_of.read_job("pattern", ""), args=job.args or ()), 16, ((0, 1),)) == []


# --- the trials -----------------------------------------------------------------------------------------------


class MadeUpLab:
    """A lab that keeps up with flows from a dilation on, and with jobs from another."""

    def __init__(self, least: float, with_jobs: float = 0) -> None:
        self.least, self.with_jobs = least, with_jobs
        self.facts = SimpleNamespace(pace="", fast_path=False, most_share=1.0)
        self.shaped: list[LabSettings] = []

    def set_rates(self, plan: Plan) -> None:
        self.shaped.append(plan.scenario.lab)


@pytest.fixture
def lab_that_keeps_up_at(monkeypatch):
    def tried(plan, lab, pilot, dilation):
        del plan, pilot
        kept_up = dilation >= lab.least
        return Judgement(Verdict.PASS, ()) if kept_up else Judgement(Verdict.INVALID, ("it did not keep up",))

    def tried_with(plan, lab, job, dilation):
        del plan
        assert job.job == "fabric_bench"
        kept_up = dilation >= lab.with_jobs
        return Judgement(Verdict.PASS, ()) if kept_up else Judgement(Verdict.WARN, ("nothing was idle",))

    monkeypatch.setattr(choose, "run_pilot", tried)
    monkeypatch.setattr(choose, "trial_of_job", tried_with)
    return MadeUpLab


def choice_of(plan, lab, say=lambda text: None):
    return choose.choose_dilation(plan, lab, say)


def test_the_smallest_faithful_dilation_is_chosen_and_shaped(lab_that_keeps_up_at):
    plan, lab = plan_of(UDP), lab_that_keeps_up_at(120)
    settled, choice = choice_of(plan, lab)
    assert choice is not None
    assert (settled.scenario.lab.dilation, choice.dilation, lab.shaped[-1].dilation) == (150, 150, 150)
    assert settled.digest == plan.digest
    assert plan.scenario.lab.dilation == "auto"
    assert {one.dilation: one.verdict for one in choice.tried}[100] == "invalid"
    assert json.loads(json.dumps(asdict(choice)))["guess_from"] == "default"


@pytest.mark.parametrize(
    ("with_jobs", "dilation", "tried", "kept_up"),
    [
        (0, 150, [200, 150], True),
        (150, 150, [200, 150], True),
        (160, 200, [200, 150], True),
        (500, 500, [200, 300, 500], True),
        (700, 700, [200, 300, 500, 700], True),
        # More is not tried, for it is not dilation that is wanting then.
        (701, 150, [200, 300, 500, 700], False),
    ],
)
def test_with_jobs_the_smallest_that_keeps_up_with_one_is_chosen(
    with_jobs, dilation, tried, kept_up, lab_that_keeps_up_at
):
    told: list[str] = []
    lab = lab_that_keeps_up_at(120, with_jobs)
    settled, choice = choice_of(plan_of(UDP, MPI), lab, told.append)
    assert choice is not None
    assert (settled.scenario.lab.dilation, choice.dilation, lab.shaped[-1].dilation) == (dilation,) * 3
    assert [one.dilation for one in choice.tried if one.job == "MPI all-to-all"] == tried
    assert choice.kept_up_with_job is kept_up
    assert f"choosing the dilation: trying {tried[0]} with an MPI all-to-all" in told
    assert (told[-1] == (
        "choosing the dilation: with an MPI all-to-all the lab keeps up at none of 200, 300, 500, 700 (nothing was "
        "idle); 150 is taken, at which it does with flows, and jobs are judged by themselves"
    )) is not kept_up  # fmt: skip


@pytest.mark.parametrize(
    ("least", "with_jobs", "tried"),
    [
        # Flows are not tried where they passed at a smaller dilation; with jobs it goes up a step at a time.
        (120, 301, ["200", "200 job", "300 job", "500 job"]),
        (400, 0, ["200", "300", "700", "700 job", "500", "500 job"]),
        (60, 120, ["200", "200 job", "150", "150 job", "70", "70 job", "100 job"]),
        # Where jobs fail whatever the dilation, flows alone are tried below, too.
        (80, 1e9, ["200", "200 job", "300 job", "500 job", "700 job", "150", "70", "100"]),
    ],
)
def test_flows_and_job_are_tried_in_one_search(least, with_jobs, tried, lab_that_keeps_up_at):
    _, choice = choice_of(plan_of(UDP, MPI), lab_that_keeps_up_at(least, with_jobs))
    assert choice is not None
    assert [f"{one.dilation:g}{' job' if one.job else ''}" for one in choice.tried] == tried


def test_without_jobs_nothing_is_said_of_them(lab_that_keeps_up_at):
    _, choice = choice_of(plan_of(UDP), lab_that_keeps_up_at(120, 1e9))
    assert choice is not None
    assert (choice.kept_up_with_job, {one.job for one in choice.tried}) == (None, {""})


@pytest.mark.parametrize(("facts", "gain"), [({"pace": "x"}, 10), ({"fast_path": True}, 4), ({}, 1)])
def test_where_switches_are_faster_the_search_begins_lower(lab_that_keeps_up_at, facts, gain):
    plan, lab = plan_of(UDP), lab_that_keeps_up_at(1)
    vars(lab.facts).update(facts)
    _, choice = choice_of(plan, lab)
    assert choice is not None
    assert choice.guess == pytest.approx(calibration.first_guess(plan)[0] / gain, rel=0.01)
    assert choice.tried[0].dilation >= choice.guess


def test_a_failed_trial_is_a_verdict_and_the_lab_shaped_for_it(monkeypatch):
    def fails(context, job):
        raise WorkloadError(f"{job.job} at {context.scale.dilation:g} did not end")

    monkeypatch.setattr(pilot, "run_mpi", fails)
    plan, lab = plan_of(UDP, MPI), cast(Any, MadeUpLab(0))
    job = pilot.pilot_job(plan, 70)
    assert job is not None
    found = pilot.trial_of_job(plan, lab, job, 70)
    assert found == Judgement(Verdict.FAIL, ("fabric_bench at 70 did not end",))
    assert [(one.dilation, one.telemetry) for one in lab.shaped] == [(70, 0)]


def test_a_number_is_taken_as_it_is(lab_that_keeps_up_at):
    plan, lab = plan_of(UDP, lab="{dilation: 7}"), lab_that_keeps_up_at(120)
    assert choice_of(plan, lab) == (plan, None)
    assert lab.shaped == []


def test_a_lab_that_never_keeps_up_is_refused_with_the_reason(lab_that_keeps_up_at):
    with pytest.raises(LabError) as error:
        choice_of(plan_of(UDP, links="{rate: 100 Mbit/s}"), lab_that_keeps_up_at(1e7))
    assert str(error.value) == (
        "lab.dilation: auto finds none: this machine does not keep up even at 1000 (it did not keep up); no load was "
        "run. Use a smaller fabric or fewer flows, end what else keeps the machine busy, or run it all the same: "
        'settings={"lab.dilation": 1000}'
    )


def test_shares_of_the_processors_follow_the_dilation(lab_that_keeps_up_at, monkeypatch):
    monkeypatch.setattr("os.sched_getaffinity", lambda process: {0, 1})
    plan, lab = plan_of(UDP, lab="{cpu_share: auto}"), lab_that_keeps_up_at(1)
    calibration.require_shares(plan)
    lab.facts.most_share = most_share(16)
    settled, _ = choice_of(plan, lab)
    # 16 hosts may have half of two processors.
    assert settled.scenario.lab.dilation == 20
    assert lab.shaped[-1].processors_a_host == 1 / 20
    # It is the lab that knows: its hosts may be on machines that have fewer processors for them than this one.
    lab.facts.most_share = 1 / 40
    assert choice_of(plan, lab)[0].scenario.lab.dilation == 50
    assert largest_dilation(plan.scenario.links, plan.scenario.lab) == 1000
    many = make_plan(parse_scenario("topology: {kind: flat, hosts: 1200}\nlab: {cpu_share: auto}", "x.yaml"))
    with pytest.raises(CapabilityError, match=r"lab\.dilation can be no more than 1000 here; use fewer hosts"):
        calibration.require_shares(many)


# --- the calibration ------------------------------------------------------------------------------------------

MEASURED = Calibration({}, 1e6, 1.1e6, {"median": 1e-4, "least": 9e-5, "most": 2e-4}, 1e9)


def test_a_calibration_of_this_machine_begins_the_search(cache):
    plan = plan_of(UDP)
    before, source = calibration.first_guess(plan)
    assert source == "default"
    here = replace(MEASURED, machine=calibration.machine("userspace", "3.1"))
    assert calibration.write(here) == cache
    assert calibration.read() == here
    guess, source = calibration.first_guess(plan)
    assert source == "calibration"
    assert guess == pytest.approx(calibration.MARGIN * demand(plan) / 1e6)
    assert guess < before


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"schema_version": 1}', '{"schema_version": 2, "machine": {}}'])
def test_a_file_of_something_else_is_no_calibration(text, cache):
    cache.parent.mkdir()
    cache.write_text(text)
    assert calibration.read() is None


def test_another_machines_calibration_is_not_taken():
    calibration.write(replace(MEASURED, machine={**calibration.machine("kernel", "3.1"), "processors": 999}))
    assert calibration.read() is None


def test_a_calibration_that_cannot_be_kept_is_a_sentence(cache):
    cache.parent.write_text("a file where the folder should be")
    with pytest.raises(CapabilityError, match="so the calibration is not kept; set XDG_CACHE_HOME"):
        calibration.write(MEASURED)


def test_the_slope_is_not_moved_by_an_outlier():
    assert calibrate.slope([2, 3, 4, 5, 6], [1.2, 1.3, 1.4, 9.0, 1.6]) == pytest.approx(0.1)


def test_the_guess_is_no_dilation_that_may_not_be_chosen():
    assert calibration.first_guess(plan_of(UDP, links="{rate: 1 Mbit/s}"))[0] <= 10
    plan = at_dilation(plan_of(UDP, lab="{cpu_share: auto}"), 50)
    assert calibration.first_guess(plan)[0] >= calibration.least_dilation(plan)
