"""`testbed init`: what a project of one's own starts from."""

from __future__ import annotations

from enum import Enum
from pathlib import Path
from typing import Annotated

import typer

from testbed.base.errors import InputError, Problem
from testbed.base.files import make_folder, write_whole
from testbed.ui.cli.app import FORMAT, app
from testbed.ui.cli.output import Format, print_json, print_lines

_SCENARIO = """\
description: A 4×4 torus of one switch and one host a node
topology: {kind: torus, sizes: [4, 4]}   # others: testbed list topologies
routing: {kind: dor}                     # dimension order; others: testbed list routings
assignment: {kind: fixed}                # a VLAN a tree, PVIDs, static MAC entries; others: testbed list assignments
links: {rate: 1 Gbit/s}                  # of the real world
lab: {dilation: auto}                    # the lab's links run at a part of it that the machine manages
workloads:                               # others: testbed list workloads
  - {kind: ping, pattern: complement}
  - {kind: iperf3, protocol: udp, pattern: neighbour, seconds: 5}
"""
_MAKEFILE = """\
# `make` proves every fabric of this folder; `make run` measures one in a lab, which needs root.
FABRIC ?= fabrics/@SCENARIO@

.PHONY: prove run
prove:
	testbed verify fabrics/*.yaml

run:
	sudo "$$(command -v testbed)" run $(FABRIC)
"""
_GITHUB = """\
name: fabrics
on: [push, pull_request]
jobs:
  prove:
    runs-on: ubuntu-24.04
    env:
      TESTBED_WHEEL: ${{ vars.TESTBED_WHEEL }}  # where pip finds the testbed: a wheel's file or address
    steps:
      - uses: actions/checkout@v4
      - uses: actions/setup-python@v5
        with:
          python-version: "3.12"
      - run: pip install "$TESTBED_WHEEL"
      - run: testbed verify fabrics/*.yaml --format github
"""
_GITLAB = """\
prove:
  image: python:3.12
  before_script:
    - pip install "$TESTBED_WHEEL"  # a wheel's file or address, as a variable of the project
  script:
    - testbed verify fabrics/*.yaml --format junit > proofs.xml
  artifacts:
    when: always
    reports:
      junit: proofs.xml
"""


class Service(str, Enum):
    """Who runs the proofs at each change."""

    github = "github"
    gitlab = "gitlab"
    none = "none"


_OF_SERVICE = {
    Service.github: {".github/workflows/fabrics.yml": _GITHUB},
    Service.gitlab: {".gitlab-ci.yml": _GITLAB},
    Service.none: {},
}


@app.command(
    epilog="Examples:\ntestbed init\ntestbed init hall --from hall.graphml --ci gitlab\ntestbed init --ci none --json"
)
def init(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="folder to write to; created if missing")] = Path(),
    service: Annotated[
        Service, typer.Option("--ci", help="CI provider; its pipeline proves the scenario at each push")
    ] = (Service.github),
    source: Annotated[
        Path | None,
        typer.Option("--from", metavar="FILE", help="file that describes a fabric: GraphML, containerlab, …"),
    ] = None,
    form: FORMAT = Format.text,
) -> None:
    """Write a first scenario, a Makefile and a CI file.

    With --from the scenario is of the fabric that a file describes, of which a copy stands beside it. Exit code 2, with
    nothing written, if one of them is there already.
    """
    scenarios, notes = {"first.yaml": _SCENARIO}, list[str]()
    if source is not None:
        scenarios, notes = _read_source(source)
    first = next(iter(scenarios))
    wanted = {
        **{f"fabrics/{name}": text for name, text in scenarios.items()},
        "Makefile": _MAKEFILE.replace("@SCENARIO@", first),
        **_OF_SERVICE[service],
    }
    there = [folder / name for name in wanted if (folder / name).exists()]
    if there:
        raise InputError(
            [Problem(str(file), "is there already; move it away, or take another folder") for file in there]
        )
    for name, content in wanted.items():
        make_folder((folder / name).parent)
        write_whole(folder / name, content.encode())
    if form is Format.json:
        print_json({"files": [str(folder / name) for name in wanted], "notes": notes})
        return
    for note in notes:
        print_lines(f"note: {note}")
    for name in wanted:
        print_lines(f"written: {folder / name}")
    print_lines(f"next: testbed plan {folder / 'fabrics' / first}")


def _read_source(source: Path) -> tuple[dict[str, str], list[str]]:
    """Files of the scenario of a fabric's file, the scenario's first, and what is to be said of how it was read.

    Raises:
        InputError: it cannot be read; all that is wrong with it, each problem with its place in the file.
    """
    from testbed.base.files import read_text
    from testbed.base.limits import FABRIC_FILE
    from testbed.scenario.fabric_files.first_scenario import count_words, write_first_scenario

    try:
        text = read_text(source, most=FABRIC_FILE)
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise InputError.one(str(source), f"cannot be read: {reason}") from error
    try:
        files, found = write_first_scenario(text.removeprefix("\ufeff"), source.name)
    except InputError as error:
        raise InputError([problem.in_file(str(source)) for problem in error.problems]) from error
    return files, [count_words(found.graph), *found.notes]
