"""`testbed capture`: the frames of one link of a running lab, as a file for Wireshark."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperCommand

from testbed.base.errors import EXIT_PASS, EXIT_WARNINGS, InputError, LabError, StorageError
from testbed.ui.cli.app import FORMAT, app
from testbed.ui.cli.interrupts import Interrupted
from testbed.ui.cli.output import Format, messages, print_json, print_lines, results, steps

if TYPE_CHECKING:
    from testbed.experiments.run.write_capture import Recorded

FIRST = Annotated[
    str, typer.Argument(metavar="[LAB] WHERE", help="lab (may be left out while only one is running), and where in it")
]
SECOND = Annotated[str | None, typer.Argument(hidden=True)]


class InALab(TyperCommand):
    """A command of something in a lab; lab and thing, two words of which one may be left out, are one in its help."""

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """Return what stands behind the name in a line of usage."""
        return super().collect_usage_pieces(ctx)[:-1]  # the last is the second word


_EXAMPLES = (
    "Examples:\ntestbed capture torus4x4 s3-s4 --seconds 10\ntestbed capture h5 --filter 'icmp' --file h5.pcapng"
    "\ntestbed capture torus4x4 s3-s4 --file - | tshark -r -"
)


@app.command(cls=InALab, epilog=_EXAMPLES)
def capture(
    first: FIRST,
    second: SECOND = None,
    file: Annotated[
        str | None, typer.Option("--file", help="a new file, or - for standard output; default LAB-WHERE.pcapng here")
    ] = None,
    seconds: Annotated[
        float | None, typer.Option("--seconds", help="stop after so many seconds; default: at Ctrl-C")
    ] = None,
    count: Annotated[int | None, typer.Option("--count", help="stop after so many frames")] = None,
    expression: Annotated[
        str | None,
        typer.Option("--filter", help="an expression of pcap-filter(7); tags count, as in 'vlan 5 and icmp'"),
    ] = None,
    form: FORMAT = Format.text,
) -> None:
    """Write the frames that pass a link as pcapng.

    In both directions, VLAN tags as on the wire; loads keep running.

    WHERE is a link (s3-s7, or s3-s7#1 of parallel ones), a port (s3-eth2) or a host (h5). Exit code 0 also after
    Ctrl-C, 1 if the lab ends or the disk is full, 3 if frames came faster than they could be kept. The file is
    complete each time.
    """
    from testbed.engines.connect_lab import connect
    from testbed.engines.lab.control import registry
    from testbed.engines.lab.counters.pcap_filter import compile_filter
    from testbed.experiments.run.write_capture import STANDARD_OUTPUT, CaptureFile, Recorded, record, tap_of

    name, where = (None, first) if second is None else (first, second)
    for option, value in (("--seconds", seconds), ("--count", count)):
        if value is not None and not value > 0:
            raise InputError.one(option, f"should be above 0, not {value:g}")
    passes = None if expression is None else compile_filter(expression, "--filter")
    entry = registry.find(name)
    lab = connect(entry.namespaces)
    try:
        tap = tap_of(lab.plan().wiring, where, "WHERE")
        target = file or f"{entry.name}-{where.replace('#', '-')}.pcapng"
        so_far = Recorded()
        with lab.capture(tap) as frames, CaptureFile(target) as into, steps() as progress:
            progress(f"capturing {where} of {entry.name} into {target}; Ctrl-C ends it")

            def tell(now: Recorded) -> None:
                if messages.is_terminal:
                    progress(f"{where}: {_words(now)}")

            try:
                record(frames, into, so_far, seconds=seconds, count=count, passes=passes, progress=tell)
            except Interrupted:
                so_far.ended = "interrupted"
            except (LabError, StorageError) as error:
                raise type(error)(f"{error.sentence}; {target} has {_words(so_far)}") from error
    finally:
        lab.close()
    if form is Format.json:
        found = {"lab": entry.name, "where": where, "interface": frames.interface, "file": target, **asdict(so_far)}
        if target != STANDARD_OUTPUT:
            print_json(found)
    else:
        console = messages if target == STANDARD_OUTPUT else results
        console.print(f"{target}: {_words(so_far)}", markup=False, soft_wrap=True)
    if so_far.lost:
        sentence = (
            f"{so_far.lost} further frames passed faster than they could be kept; name a filter, or a link with less"
            " traffic"
        )
        print_lines(sentence, "yellow", to=messages)
    raise typer.Exit(EXIT_WARNINGS if so_far.lost else EXIT_PASS)


def _words(so_far: Recorded) -> str:
    frames = "1 frame" if so_far.frames == 1 else f"{so_far.frames} frames"
    return f"{frames}, {so_far.bytes} bytes, in {so_far.seconds:.1f} s"
