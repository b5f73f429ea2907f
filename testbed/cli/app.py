"""The application and the parameters that several commands share."""

from __future__ import annotations

from typing import Annotated

import typer

from testbed.cli.output import Format

app = typer.Typer(
    name="testbed",
    help="Routing on Ethernet fabrics that contain loops: plan, prove, build, measure.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

SCENARIO = Annotated[str, typer.Argument(help="a scenario file, or a name in scenarios/")]
SETTINGS = Annotated[
    list[str] | None, typer.Option("--set", help="replace a key of the scenario, as in lab.dilation=50; repeatable")
]
FORMAT = Annotated[Format, typer.Option("--format", help="form of the output")]
