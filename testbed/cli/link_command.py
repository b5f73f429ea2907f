"""`testbed link`: how a link of a running lab is, and what becomes of it."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from testbed.cli.app import FORMAT, app
from testbed.cli.capture_command import FIRST, SECOND
from testbed.cli.output import Format, messages, print_json, results
from testbed.errors import InputError

if TYPE_CHECKING:
    from testbed.messages import Disturbance, LinkState
    from testbed.plan import Plan
    from testbed.session import Session


@app.command(
    epilog="Examples: testbed link torus4x4 s3-s4 --rate 100M --loss 1%   |   testbed link s3-s4 --down   |   "
    "testbed link s3-s4 --up --reset   |   testbed link s3-s4"
)
def link(
    first: FIRST,
    second: SECOND = None,
    rate: Annotated[str | None, typer.Option("--rate", help="of the real world, such as 100M")] = None,
    delay: Annotated[str | None, typer.Option("--delay", help="of every frame, of the real world: 20us")] = None,
    loss: Annotated[str | None, typer.Option("--loss", help="share of the frames, at random: 1%")] = None,
    down: Annotated[bool, typer.Option("--down", help="let it carry nothing")] = False,
    up: Annotated[bool, typer.Option("--up", help="let it carry frames again")] = False,
    reset: Annotated[bool, typer.Option("--reset", help="rate, delay and loss as planned, before the others")] = False,
    form: FORMAT = Format.text,
) -> None:
    """Change a link of a running lab, or tell how it is.

    Both ways, also while a load runs.

    WHERE is a link (s3-s7, or s3-s7#1 of parallel ones) or a port (s3-eth2). What is not named stays as it is. Rates
    and delays are of the real world: at dilation 50 a delay of 20us takes 1 ms. Exit code 2 if this machine cannot.
    """
    from testbed.emulate import registry
    from testbed.emulate.client import connect
    from testbed.messages import LinkState
    from testbed.run.capture import tap_of

    name, where = (None, first) if second is None else (first, second)
    if down and up:
        raise InputError.one("--down", "cannot go with --up; say one of them")
    words = _words(rate, delay, loss)
    entry = registry.find(name)
    lab = connect(entry.namespaces)
    plan = lab.plan()
    number = tap_of(plan.wiring, where, "WHERE").link
    if number is None:
        raise InputError.one(
            "WHERE", f"{where} is a host; of its link nothing can be changed, name one between switches"
        )
    for one in _asked(plan, lab, number, words, down=down, up=up, reset=reset):
        lab.disturb(one)
    state = lab.link_states().get(number, LinkState())
    controller = lab.facts.controller
    lab.close()
    shown = plan.wiring.channel_name(2 * number).replace("→", "-")
    if form is Format.json:
        print_json({"lab": entry.name, "link": shown, "planned_rate": _planned(plan, number), **asdict(state)})
    else:
        results.print(f"{shown}: {_told(plan, number, state)}", markup=False, soft_wrap=True)
    if down and controller != "segment_manager":
        sentence = "frames that take it are lost, since no lab.controller: segment_manager moves paths away"
        messages.print(sentence, style="yellow", markup=False, soft_wrap=True)


def _words(rate: str | None, delay: str | None, loss: str | None) -> dict[str, float]:
    from testbed.errors import Problem
    from testbed.workloads.link_words import READERS

    problems, found = [], {}
    for word, text in (("rate", rate), ("delay", delay), ("loss", loss)):
        if text is not None:
            try:
                found[word] = READERS[word](text)
            except ValueError as error:
                problems.append(Problem(f"--{word}", str(error)))
    if problems:
        raise InputError(problems)
    return found


def _asked(
    plan: Plan, lab: Session, number: int, words: dict[str, float], *, down: bool, up: bool, reset: bool
) -> list[Disturbance]:
    """What is to happen, in order."""
    from testbed.emulate.probe import require_netem
    from testbed.messages import Disturbance, LinkChange
    from testbed.plan.loads import too_slow

    slow = too_slow(words["rate"], lab.facts.dilation) if "rate" in words else ""
    if slow:
        raise InputError.one("--rate", slow)
    if (words.get("delay") or words.get("loss")) and not lab.facts.pace:  # a model needs no kernel for that
        require_netem()
    found = []
    if words or reset:
        found.append(Disturbance(up=True, links=(LinkChange(number, **words, reset=reset),)))
    if down or up:
        found.append(Disturbance(up=up, channels=(2 * number, 2 * number + 1)))
    return found


def _planned(plan: Plan, number: int) -> float:
    share = 1.0 if plan.speeds is None else float(plan.speeds[number])
    return plan.scenario.links.rate * share


def _told(plan: Plan, number: int, state: LinkState) -> str:
    from testbed.units import format_rate
    from testbed.workloads.link_words import shown

    planned = _planned(plan, number)
    words = shown(planned if state.rate is None else state.rate, state.delay, state.loss)
    words[0] += " (as planned)" if state.rate is None else f" ({format_rate(planned)} planned)"
    return ", ".join(["up" if state.up else "down", *words])
