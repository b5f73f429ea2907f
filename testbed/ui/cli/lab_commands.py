"""Commands that build, use and end labs: run, up, status, shell, down."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from testbed.base.errors import EXIT_NOTHING_RAN, InputError, LabError
from testbed.base.units import count_noun
from testbed.ui.cli.app import FORMAT, LAB, SCENARIO, SETTINGS, app
from testbed.ui.cli.dry_run import dry_run
from testbed.ui.cli.live_command import LIVE, PORT, page_of_run, print_address, until_interrupted
from testbed.ui.cli.output import (
    Format,
    messages,
    outcome_object,
    plan_scenario,
    print_json,
    print_lines,
    print_outcome,
    results,
    steps,
)
from testbed.ui.cli.vary import VARY, each_variant

if TYPE_CHECKING:
    from socket import socket

    from testbed.experiments.run.in_session import SessionEngine

_RESULTS = Path("results")
MACHINES = Annotated[
    str | None, typer.Option(help="build the fabric over several machines: names of Dask workers, such as a,b")
]
SCHEDULER = Annotated[str | None, typer.Option(help="with --machines: the tcp:// or tls:// address of their scheduler")]
INSECURE = Annotated[
    bool,
    typer.Option("--insecure", help="with --machines: allow an unencrypted scheduler that other machines can reach"),
]


@app.command(
    epilog="Examples:\ntestbed run torus4x4 --set lab.dilation=200\ntestbed run torus4x4 --engine vm\n"
    "testbed run torus4x4 --dry-run\ntestbed run torus4x4 --vary routing=dor,updown\ntestbed run torus4x4 --live\n"
    "testbed run torus4x4 --machines a,b --cluster tls://a:8786"
)
def run(
    name: SCENARIO,
    settings: SETTINGS = None,
    vary: VARY = None,
    folder: Annotated[Path, typer.Option("--results", help="where the run's folder is created")] = _RESULTS,
    engine: Annotated[
        str | None,
        typer.Option(
            help="ovs: Open vSwitch on this machine; realtime: modelled switches; vm: in a virtual machine "
            "(`make vm`); simulate: not built"
        ),
    ] = None,
    virtual_time: Annotated[
        bool | None,
        typer.Option(
            "--virtual-time/--real-time",
            help="with engine vm: clock by counted instructions; default: where KVM does not boot",
        ),
    ] = None,
    memory: Annotated[
        int | None, typer.Option(help="with engine vm: memory of the virtual machine, MiB; default 2048")
    ] = None,
    limit: Annotated[float | None, typer.Option("--limit", help="with engine vm: time limit, s; default 7200")] = None,
    shift: Annotated[
        int | None, typer.Option(help="with --virtual-time: an instruction takes 2^N ns; default 0")
    ] = None,
    machines: MACHINES = None,
    cluster: SCHEDULER = None,
    insecure: INSECURE = False,
    live: LIVE = False,
    port: PORT = None,
    dry: Annotated[
        bool, typer.Option("--dry-run", help="only tell what would be built, how long it takes, and what is missing")
    ] = False,
    form: FORMAT = Format.text,
) -> None:
    """Plan, prove, build, check, load, measure, store and report.

    Exit code 0 pass, 1 fail, 3 warnings.

    --engine X is --set engine=X, and --memory N is --set vm.memory=N; so are the others.
    """
    if live and machines is not None:
        raise InputError.one(
            "--live", "is for a lab on this machine, and cannot go with --machines; leave one of them out"
        )
    if dry and form is Format.json:
        raise InputError.one("--dry-run", "prints sentences; leave out --json, or take testbed plan --json")
    if vary:
        raise typer.Exit(each_variant(name, settings, vary, form, run, locals()))
    from testbed.experiments.report import rich_table
    from testbed.experiments.run.advice import Invocation
    from testbed.experiments.run.engines import run_scenario
    from testbed.experiments.run.run_duration import expected_seconds
    from testbed.results import load_run
    from testbed.scenario.engines import LABS

    options = {
        "engine": engine, "vm.virtual_time": None if virtual_time is None else str(virtual_time).lower(),
        "vm.memory": memory, "vm.limit": limit, "vm.shift": shift,
    }  # fmt: skip
    more = [f"{key}={value}" for key, value in options.items() if value is not None]
    with steps() as progress:
        progress("planning and proving")
        plan = plan_scenario(name, [*(settings or ()), *more])
        if dry:
            with over_machines(machines, cluster, progress, insecure=insecure) as chosen:
                dry_run(plan, progress, chosen)
            return
        if plan.scenario.engine in LABS:
            progress.expect(expected_seconds(plan))
        elsewhere = () if folder == _RESULTS else ("--results", str(folder))
        asked = Invocation(name, (*(settings or ()), *more), elsewhere)
        with (
            over_machines(machines, cluster, progress, insecure=insecure) as chosen,
            page_of_run(plan, port, wanted=live),
        ):
            outcome = run_scenario(plan, folder, progress, asked, chosen)
    if form is Format.json:
        print_json(outcome_object(outcome))
    else:
        results.print(rich_table(load_run(outcome.folder), results.width))
        print_outcome(outcome)
    raise typer.Exit(outcome.exit_code)


@contextmanager
def over_machines(
    names: str | None, cluster: str | None, progress: Callable[[str], None], *, insecure: bool
) -> Iterator[SessionEngine | None]:
    """The engine over several machines, where some are named; the connection to them ends with the block.

    Raises:
        InputError: names without a scheduler, or the other way round; see open_cluster() and find_machines().
    """
    if names is None:
        for option, given in (("--cluster", cluster is not None), ("--insecure", insecure)):
            if given:
                raise InputError.one(option, "is for --machines; name the machines, such as --machines a,b")
        yield None
        return
    if cluster is None or cluster.startswith("local"):
        sentence = "names workers of a Dask scheduler; give its address, such as --cluster tls://scheduler:8786"
        raise InputError.one("--machines", sentence)
    from testbed.engines.local_machine.cluster import open_cluster
    from testbed.engines.machines.fabric_client import find_machines
    from testbed.experiments.run.machines import FabricEngine

    with open_cluster(cluster, progress, insecure=insecure) as workers:
        yield FabricEngine(find_machines(workers.client, [name.strip() for name in names.split(",")]))


@app.command(epilog="Examples:\ntestbed up torus4x4\ntestbed up mesh4x4 --name second\ntestbed up torus4x4 --live")
def up(
    name: SCENARIO,
    settings: SETTINGS = None,
    lab: Annotated[str | None, typer.Option("--name", help="name of the lab; default the scenario's")] = None,
    engine: Annotated[
        str | None, typer.Option(help="ovs: Open vSwitch; realtime: modelled switches; as --set engine=X")
    ] = None,
    live: LIVE = False,
    port: PORT = None,
    form: FORMAT = Format.text,
) -> None:
    """Build a lab, check every path, and leave it running; with --live also open its page, until Ctrl-C."""
    if engine is not None:
        settings = [*(settings or ()), f"engine={engine}"]
    if live:
        from testbed.ui.live.server import listening_socket

        with listening_socket(port) as listening:
            facts = _build_lab(name, settings, lab, form)
            _show(facts, listening, form)
    else:
        facts = _build_lab(name, settings, lab, form)
        if form is Format.json:
            print_json(asdict(facts))


@dataclass(frozen=True, slots=True)
class _LabFacts:
    """A lab that was built, as it is printed."""

    lab: str
    process: int
    datapath: str
    dilation: float
    digest: str
    built_seconds: float
    checked_seconds: float


def _show(facts: _LabFacts, listening: socket, form: Format) -> None:
    """Show a lab that stands on a page, until Ctrl-C."""
    from testbed.ui.live.lab_source import running_lab
    from testbed.ui.live.server import Page, serve_page

    with until_interrupted(), serve_page(Page(running_lab(facts.lab)), listening) as address:
        print_address(address, form, asdict(facts))
        threading.Event().wait()


def _build_lab(name: str, settings: list[str] | None, lab: str | None, form: Format) -> _LabFacts:
    """Build a lab that outlives this program, and say so; returns what it is."""
    started = time.monotonic()
    from testbed.engines.local_machine.probe import prefetch_capabilities

    looking = prefetch_capabilities()
    from testbed.engines.lab.control import registry
    from testbed.experiments.run.engines import find_lab_engine
    from testbed.experiments.run.in_session import check_paths

    with steps() as progress:
        progress("planning and proving")
        plan = plan_scenario(name, settings)
        plan.require_proof()
        engine = find_lab_engine(plan.scenario)
        chosen = lab or plan.scenario.name
        registry.check_name(chosen)
        looking.join()
        with registry.reserve_name(chosen):
            engine.find_missing(
                replace(plan, scenario=replace(plan.scenario, workloads=())), progress
            ).raise_if_missing()
            running = engine.build(plan, progress, keep=True)
            try:
                built = time.monotonic() - started
                progress("checking the path of every pair")
                check_paths(plan, running)
                registry.register(chosen, running.namespaces, plan.scenario.name, plan.digest)
                running.close()
            except BaseException:
                running.end()
                raise
    facts = _LabFacts(
        chosen, running.namespaces.init, running.facts.datapath, running.facts.dilation, plan.digest, round(built, 3),
        round(time.monotonic() - started - built, 3),
    )  # fmt: skip
    if form is not Format.json:
        print_lines(
            [
                f"{chosen} is running: {plan.topology.switch_count} switches, {plan.topology.host_count} hosts, "
                f"{facts.datapath} datapath, dilation {facts.dilation:.4g}; built in {facts.built_seconds:.2f} s, "
                f"paths checked in {facts.checked_seconds:.2f} s",
                f"testbed shell {chosen}   testbed down {chosen}",
            ]
        )
    return facts


@app.command(epilog="Example: testbed status")
def status(lab: LAB = None, form: FORMAT = Format.text) -> None:
    """Show running labs, labs being built, and orphaned labs. Exit code 2 if there is none."""
    from testbed.engines.connect_lab import connect
    from testbed.engines.lab.control import registry

    claims = [claim for claim in registry.being_built() if lab in (None, claim.name)]
    strays = [stray for stray in registry.list_orphans() if lab in (None, stray.scenario)]
    chosen = [registry.find(lab)] if lab and not claims and not strays else registry.running()
    damaged = registry.list_damaged()
    rows = []
    for entry in chosen:
        if lab not in (None, entry.name):
            continue
        try:
            talk = connect(entry.namespaces)
            told = asdict(talk.status())
        except LabError:
            if entry.holds:
                raise
            continue  # it has ended since it was found
        rows.append(
            {
                "lab": entry.name,
                "scenario": entry.scenario,
                "digest": entry.digest or None,
                "measured_by_process": entry.owner or None,
                "process": entry.init,
                "running_seconds": round(entry.seconds, 1),
                **told,
            }
        )
        talk.close()
    if form is Format.json:
        print_json(
            {
                "labs": rows,
                "being_built": [{"lab": claim.name, "by_process": claim.owner} for claim in claims],
                "left_behind": [{"scenario": stray.scenario, "process": stray.init} for stray in strays],
                **({"damaged_records": damaged} if damaged else {}),
            }
        )
    else:
        for sentence in damaged:
            print_lines(sentence, "yellow", to=messages)
        for row in rows:
            print_lines(
                f"{row['lab']}: scenario {row['scenario']}, {count_noun(row['switches'], 'switch', 'es')}, "
                f"{count_noun(row['links'], 'link')}, {count_noun(row['hosts'], 'host')}, {row['datapath']} datapath, "
                f"controller {row['controller'] or 'none'}, {row['doing']}, "
                f"process {row['process']}, running for {row['running_seconds']:.0f} s"
                + (f", measured by process {row['measured_by_process']}" if row["measured_by_process"] else "")
            )
        for claim in claims:
            print_lines(f"{claim.name}: being built by process {claim.owner}")
        for stray in strays:
            print_lines(f"{stray.sentence}; end it with `testbed down --all`", "yellow")
        if not (rows or claims or strays):
            results.print("no lab is running")
    if not (rows or claims or strays):
        raise typer.Exit(EXIT_NOTHING_RAN)


@app.command(epilog="Example: testbed shell torus4x4, then at its prompt: h1 ping -c 3 h16")
def shell(lab: LAB = None) -> None:
    """Open Mininet's command line in a running lab.

    `exit` leaves it, and the lab keeps running.
    """
    from testbed.engines.lab.control import registry
    from testbed.engines.lab.control.mininet_shell import enter

    enter(registry.find(lab).init)


@app.command(epilog="Examples:\ntestbed down\ntestbed down torus4x4\ntestbed down --all")
def down(
    lab: LAB = None,
    everything: Annotated[bool, typer.Option("--all", help="stop every lab")] = False,
    form: FORMAT = Format.text,
) -> None:
    """Stop a lab and all that is in it; with --all every lab, also those being built and orphaned ones."""
    from testbed.engines.connect_lab import connect
    from testbed.engines.lab.control import registry

    claims = [claim for claim in registry.being_built() if everything or claim.name == lab]
    strays = [stray for stray in registry.list_orphans() if everything or stray.scenario == lab]
    if everything:
        entries = registry.entries()
    elif claims:
        entries = []
    elif strays:
        entries = [entry for entry in registry.entries() if entry.name == lab]
    else:
        entries = [registry.find_standing(lab)]
    ended = []

    def end(name: str, how: Callable[[], None]) -> None:
        started = time.monotonic()
        how()
        ended.append({"lab": name, "seconds": round(time.monotonic() - started, 3)})

    for entry in entries:
        end(entry.name, connect(entry.namespaces).end)
        registry.forget(entry)
    for claim in claims:
        end(claim.name, partial(registry.kill_builder, claim))
    for stray in strays:
        end(stray.scenario, stray.namespaces.end)
    if form is Format.json:
        print_json({"ended": ended})
    else:
        for one in ended:
            results.print(f"{one['lab']} ended in {one['seconds']:.2f} s", markup=False)
        if not ended:
            results.print("no lab is running")
