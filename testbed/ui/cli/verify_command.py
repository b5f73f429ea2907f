"""The command verify: proofs of scenarios and of stored plans, for people and for continuous integration."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from testbed.base.errors import InputError, VerificationError
from testbed.ui.cli.app import SCENARIOS, SETTINGS, app
from testbed.ui.cli.ci_formats import CommandVerdict, exit_code, github_lines, junit_text
from testbed.ui.cli.output import messages, plan_scenario, print_json, print_lines, show_progress, write_file

if TYPE_CHECKING:
    from testbed.planning import Plan


class VerifyFormat(str, Enum):
    """Form of the output."""

    text = "text"
    json = "json"
    junit = "junit"
    github = "github"


@app.command(
    epilog="Examples:\ntestbed verify torus4x4 ring4\ntestbed verify scenarios/*.yaml --format junit > proofs.xml"
    "\ntestbed verify plan.json\ntestbed verify fabric.graphml --routes next-hops.csv"
)
def verify(
    names: SCENARIOS,
    settings: SETTINGS = None,
    certificate: Annotated[
        Path | None,
        typer.Option("--certificate", help="write the certificate of one proved plan, for certificate_check.py"),
    ] = None,
    routes: Annotated[
        Path | None,
        typer.Option(
            "--routes", help="prove this forwarding (CSV or JSON) on the fabric of one scenario or fabric file instead"
        ),
    ] = None,
    form: Annotated[
        VerifyFormat,
        typer.Option("--format", help="output format; junit and github are for continuous integration"),
    ] = VerifyFormat.text,
) -> None:
    """Prove plans: delivery, trees, deadlock freedom, members, limits.

    A scenario may also be a plan that testbed plan --output has written: it is proved from its tables, and a changed
    one fails. With --routes it is next hops or paths computed elsewhere that are proved, over all choices that
    switches have. Exit code 1 if an invariant does not hold, 2 if a
    scenario or file cannot be planned at all; the others are proved nevertheless.
    """
    if certificate is not None and len(names) > 1:
        raise InputError.one("--certificate", f"is of one plan, and {len(names)} are named")
    if routes is not None:
        _check_alone(names, certificate)
    verdicts = []
    for name in names:
        with show_progress(f"planning and proving {name}" if routes is None else f"proving {routes} on {name}"):
            verdicts.append(_verdict(name, settings or [], routes))
        if form is VerifyFormat.text:
            _print(verdicts[-1])
    if certificate is not None and verdicts[0].plan is not None and verdicts[0].has_passed:
        from testbed.planning.certificate import certificate_of

        with show_progress("writing the certificate"):
            write_file(certificate, certificate_of(verdicts[0].plan).encode())
    if form is VerifyFormat.json:
        print_json({"passed": not exit_code(verdicts), "plans": [verdict.as_object() for verdict in verdicts]})
    elif form is VerifyFormat.junit:
        sys.stdout.write(f"{junit_text(verdicts)}\n")
    elif form is VerifyFormat.github:
        for line in github_lines(verdicts):
            sys.stdout.write(f"{line}\n")
    elif len(verdicts) > 1:
        passed = sum(verdict.has_passed for verdict in verdicts)
        print_lines(f"{passed} of {len(verdicts)} passed", "green" if passed == len(verdicts) else "red")
    raise typer.Exit(exit_code(verdicts))


def _check_alone(names: Sequence[str], certificate: Path | None) -> None:
    if len(names) > 1:
        raise InputError.one("--routes", f"is for one fabric, and {len(names)} are named")
    if certificate is not None:
        raise InputError.one("--certificate", "is of a plan, and --routes proves forwarding without one; leave one out")


def _verdict(name: str, settings: Sequence[str], routes: Path | None) -> CommandVerdict:
    started = time.monotonic()
    try:
        if routes is not None:
            from testbed.ui.cli.verify_routes import prove_routes

            return CommandVerdict(name, 0.0, forwarding=prove_routes(name, settings, routes)).taking(started)
        plan = read_plan(name, settings)
        cycles = _shared_cycles(plan)
    except InputError as error:
        problems = tuple((problem.place, problem.sentence) for problem in error.problems)
        return CommandVerdict(
            name, time.monotonic() - started, problems=problems, routes="" if routes is None else str(routes)
        )
    except VerificationError as error:
        lines = (error.reason, *(f"  {line}" for line in error.details))
        return CommandVerdict(name, time.monotonic() - started, changed=lines)
    return CommandVerdict(name, time.monotonic() - started, plan=plan, shared_cycles=cycles)


def _shared_cycles(plan: Plan) -> tuple[str, ...]:
    """Cycles that tables in use together could close when things die and come back, and whether links pause."""
    from testbed.planning.failures import links_pause, shared_cycle_sentences

    if not plan.is_proved:
        return ()
    could = "can deadlock" if links_pause(plan) else "could deadlock with flow control, which there is not"
    return tuple(f"{could}: {sentence}" for sentence in shared_cycle_sentences(plan))


def read_plan(name: str, settings: Sequence[str] = ()) -> Plan:
    """Plan and prove a scenario, or prove a plan that was stored.

    Raises:
        InputError: there is none, or it is wrong.
        VerificationError: a stored plan was changed.
    """
    from testbed.planning.prove_stored import read_stored

    if not name.endswith(".json"):
        return plan_scenario(name, settings)
    if settings:
        raise InputError.one("--set", f"changes scenarios, and {name} is a plan; set it where the plan is made")
    return read_stored(Path(name))


def _print(verdict: CommandVerdict) -> None:
    for place, sentence in verdict.problems:
        print_lines(f"{place}: {sentence}" if place else sentence, "red", to=messages)
    for invariant, sentence in verdict.violations:
        print_lines(f"{invariant}: {sentence}".split("\n"))
    for sentence in verdict.shared_cycles:
        print_lines(sentence, "yellow" if sentence.startswith("can ") else None)
    print_lines(verdict.line, "green" if verdict.has_passed else "red")
