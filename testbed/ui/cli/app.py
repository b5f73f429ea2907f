"""The application, the order of its commands, and the parameters that several of them share."""

from __future__ import annotations

import itertools
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from testbed.base import old_names
from testbed.base.errors import LackWarning, naming_options
from testbed.base.untrusted_text import escape_controls
from testbed.base.version import __version__
from testbed.ui.cli.ask_trust import ask_for_trust, trust_programs
from testbed.ui.cli.output import Format, messages, print_lines, printable_everywhere, tell_every_step

# Every command, in the order in which help shows them.
PANELS: dict[str, tuple[str, ...]] = {
    "Plan and prove": ("init", "list", "plan", "verify", "analyse", "explain", "segments", "power", "schema"),
    "Simulate": ("simulate", "flows"),
    "Labs": (
        "run", "up", "status", "load", "watch", "exec", "shell", "link", "switch", "controller", "capture", "live",
        "down", "regulate", "storm", "exercise",
    ),
    "Results": ("sweep", "compare", "report", "paper"),
    "Real switches": ("export", "check", "audit"),
    "This machine": ("doctor", "vm"),
}  # fmt: skip
JSON = "--json"
VERBOSE = {"-v", "--verbose"}
TRUST = "--trust"
# What is said once for all commands, and understood behind each of them as well.
_EVERYWHERE = {**dict.fromkeys(VERBOSE, tell_every_step), TRUST: trust_programs}


class Commands(TyperGroup):
    """Commands in the panels of help, whose options are also understood by the names that people try."""

    def list_commands(self, ctx: Any) -> list[str]:
        """Return the names in the order of the panels, and put each into its own."""
        mine = PANELS if ctx.parent is None else {}  # commands of a group within may have the same names
        panels = {name: panel for panel, names in mine.items() for name in names}
        for name, command in self.commands.items():
            command.rich_help_panel = panels.get(name)  # type: ignore[attr-defined]  # Typer's commands have it
        order = list(panels)
        return sorted(self.commands, key=lambda name: order.index(name) if name in panels else len(order))

    def invoke(self, ctx: Any) -> Any:
        """Run the command; of a value that is refused tell only the sentence, without the library's words before it."""
        try:
            with naming_options(), ask_for_trust() if ctx.parent is None else nullcontext():
                return super().invoke(ctx)
        except typer.TyperException as error:
            said = escape_controls(getattr(error, "message", ""))  # the library prints it by itself
            error.message = said.removeprefix("Value error, ")
            raise

    def main(self, *words: Any, **options: Any) -> Any:
        """Run a command line; what it prints is escaped."""
        before = sys.stdout, sys.stderr
        printable_everywhere()
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("always", old_names.OldNameWarning)
                warnings.simplefilter("once", LackWarning)
                warnings.showwarning = _show_warning(warnings.showwarning)
                return super().main(*words, **options)
        finally:
            sys.stdout, sys.stderr = before

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[str | None, Any, list[str]]:
        """Return the command that is named and its arguments as they are written today."""
        name, command, rest = super().resolve_command(ctx, args)
        if command is None or isinstance(command, TyperGroup):
            return name, command, rest
        options = {option for parameter in command.params for option in parameter.opts}
        if command.allow_interspersed_args:
            before = rest[: rest.index("--")] if "--" in rest else rest
            said = [word for word in before if word in _EVERYWHERE and word not in options]
            for word in said:
                _EVERYWHERE[word]()
            rest = [*(word for word in before if word not in said), *rest[len(before) :]]
        return name, command, list(_translate_old_options(rest, options))


def _show_warning(show: Callable[..., None]) -> Callable[..., None]:
    """What shows warnings: ours as a sentence, and others as `show` does."""

    def show_warning(message: Warning | str, category: type[Warning], *place: Any, **more: Any) -> None:
        if issubclass(category, (old_names.OldNameWarning, LackWarning)):
            print_lines(str(message), "yellow", to=messages)
        else:
            show(message, category, *place, **more)

    return show_warning


def _translate_old_options(words: list[str], options: set[str]) -> Iterator[str]:
    """Yield the words with `--json` and old names replaced, up to a `--`."""
    for number, word in enumerate(words):
        if word == "--":
            yield from words[number:]
            return
        option, equals, value = word.partition("=")
        today = old_names.OPTIONS.get(option, "")
        if word == JSON and "--format" in options and JSON not in options:
            yield "--format=json"
        elif today in options and option not in options:
            old_names.notice(option, today)
            yield today + equals + value
        else:
            yield word


def wants_json(words: list[str]) -> bool:
    """Whether a command line asks for JSON, even one that cannot be carried out."""
    words = words[: words.index("--")] if "--" in words else words
    return JSON in words or "--format=json" in words or ("--format", "json") in itertools.pairwise(words)


app = typer.Typer(
    name="testbed",
    cls=Commands,
    help="Routing on Ethernet fabrics that contain loops: plan, prove, build, measure.",
    epilog="Start with:\ntestbed list\ntestbed plan torus4x4\nsudo testbed run torus4x4",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def say_version(wanted: bool) -> None:
    """Print the version and end, if that is wanted."""
    if wanted:
        sys.stdout.write(f"testbed {__version__}\n")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", help="Show the version and exit.", is_eager=True, callback=say_version)
    ] = False,
    verbose: Annotated[
        bool, typer.Option("-v", "--verbose", help="Verbose output: every step; may follow the subcommand.")
    ] = False,
    trust: Annotated[
        bool,
        typer.Option(
            TRUST,
            help="Run plug-ins and build MPI jobs that the scenario names, now and later; may follow the subcommand.",
        ),
    ] = False,
) -> None:
    if verbose:
        tell_every_step()
    if trust:
        trust_programs()


def _scenarios(incomplete: str) -> list[tuple[str, str]]:
    """Names of scenarios for the shell, with what they are."""
    from testbed.scenario.catalogue import scenario_summaries

    return [(name, text) for name, text in scenario_summaries().items() if name.startswith(incomplete)]


def _labs(incomplete: str) -> list[str]:
    """Names of running labs for the shell."""
    from testbed.engines.lab.control import registry

    return [entry.name for entry in registry.running() if entry.name.startswith(incomplete)]


SCENARIO = Annotated[
    str,
    typer.Argument(metavar="SCENARIO", help="a scenario file, or a name in scenarios/", autocompletion=_scenarios),
]
SCENARIOS = Annotated[
    list[str],
    typer.Argument(metavar="SCENARIO...", help="scenario files, or names in scenarios/", autocompletion=_scenarios),
]
LAB = Annotated[
    str | None,
    typer.Argument(metavar="LAB", help="may be left out while only one is running", autocompletion=_labs),
]
SETTINGS = Annotated[
    list[str] | None, typer.Option("--set", help="override a key of the scenario, as in lab.dilation=50; repeatable")
]
PLUGIN = Annotated[list[str] | None, typer.Option("--plugin", help="a Python file with plug-ins; repeatable")]
FORMAT = Annotated[Format, typer.Option("--format", help="output format; --json is --format json")]
