"""Digests of what the program computes and says, so that a change that must change nothing can be compared.

    python -m benchmarks.digests before.json           # of all plans, exports, simulations, outputs and --help texts
    python -m benchmarks.digests after.json --compare before.json

It sees the program from outside, by its command line: no move or renaming inside changes a digest. Exit code 1 where
digests differ, each difference in a line.
"""

from __future__ import annotations

import argparse
import hashlib
import itertools
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from benchmarks.table import progress

_ROOT = Path(__file__).parents[1]
_EXPORTED = ("torus4x2", "mesh4x2-lag", "mesh4x4-renamed", "fattree14", "ring4")
_EXPLAINED = ("torus4x4", "mesh4x4", "fattree2-4-2", "updown-irregular16", "ring8")
_SIMULATED = ("torus4x2", "mesh4x2", "deadlock-torus8x8", "dragonfly4-1", "fattree14", "ring5-deadlock")
_FLITS = ("--loads", "0.1,0.4", "--cycles", "6000", "--warm-up", "1000", "--jobs", "1")
_FRAMES = ("--level", "packet", "--loads", "0.5", "--duration", "3", "--warm-up", "1", "--jobs", "1")
# What tells of this machine or of the moment, and not of the project.
_OF_THE_MOMENT = (
    (re.compile(r'"(?:seconds|wall_seconds|started|created|finished|results|folder|version|host)": [^\n]*'), ""),
    (re.compile(r"\d{8}-\d{6}[\w.-]*"), "TIME"),
    (re.compile(r"\d+(?:\.\d+)? (?:s|ms|µs|MiB|MB)\b"), "N"),
)  # fmt: skip

Words = tuple[str, ...]


def run_testbed(words: Words, folder: str) -> tuple[int, str]:
    """Run a command in an empty folder.

    Args:
        words: behind `testbed`.
        folder: where files it writes go.

    Returns:
        The exit code, and what it printed in a terminal 100 characters wide, the folder's name taken out.
    """
    environment = {**os.environ, "COLUMNS": "100", "NO_COLOR": "1", "PYTHONPATH": str(_ROOT), "TERM": "dumb"}
    done = subprocess.run(
        [sys.executable, "-m", "testbed", *words], cwd=folder, env=environment, capture_output=True, text=True,
        check=False, timeout=900,
    )  # fmt: skip
    text = (done.stdout + done.stderr).replace(folder, "FOLDER").replace(str(_ROOT), "ROOT")
    return done.returncode, text


def digest_command(words: Words) -> str:
    """A digest over exit code, text and written files of one command."""
    with tempfile.TemporaryDirectory(prefix="testbed-digests-") as folder:
        code, text = run_testbed(words, folder)
        parts = [str(code), _without_moment(text)]
        for file in sorted(Path(folder).rglob("*")):
            # The outputs of runs hold times and pictures: what they computed is in the text.
            if file.is_file() and not any(part.startswith("results") for part in file.relative_to(folder).parts):
                written = _without_moment(file.read_bytes().decode("utf-8", "surrogateescape")).replace(
                    folder, "FOLDER"
                )
                parts += [str(file.relative_to(folder)), written]
    return hashlib.sha256("\0".join(parts).encode("utf-8", "surrogateescape")).hexdigest()[:16]


def _without_moment(text: str) -> str:
    for pattern, replacement in _OF_THE_MOMENT:
        text = pattern.sub(replacement, text)
    return text


def list_help(words: Words = ()) -> Iterator[Words]:
    """The program's --help and those of all its commands, groups of commands included."""
    with tempfile.TemporaryDirectory() as folder:
        _, text = run_testbed((*words, "--help"), folder)
    yield (*words, "--help")
    if words and "╭─ Commands" not in text:
        return
    commands = text[text.rindex("╭─ Commands") if words else text.index("─╯") :]  # of the program several panels
    for name in re.findall(r"^│ ([a-z][a-z-]*) ", commands, re.MULTILINE):
        yield from list_help((*words, name))


def list_commands() -> list[Words]:
    """All that is compared."""
    names = sorted(file.stem for file in (_ROOT / "scenarios").glob("*.yaml"))
    helps = list(list_help())
    with tempfile.TemporaryDirectory() as folder:
        dialects = re.findall(
            r"^\s*([a-z][\w-]*)", run_testbed(("export", "--dialect", "list"), folder)[1], re.MULTILINE
        )
        of_json = sorted({words[0] for words in helps if len(words) == 2 and words[0] != "schema"})
    json_form = ("--format", "json")
    return [
        *helps,
        ("schema",), ("schema", "--engines"), ("list",), ("list", *json_form),
        *(("schema", name) for name in of_json),
        *(("plan", name, "--output", "plan.json") for name in names),
        *(("plan", name, *json_form) for name in names),
        *(("verify", name) for name in names),
        *(("export", name, "--dialect", dialect, "--output", "out") for name in _EXPORTED for dialect in dialects),
        *itertools.chain.from_iterable(
            (("explain", name, "h1", "h5"), ("power", name, *json_form), ("analyse", name, *json_form))
            for name in _EXPLAINED
        ),
        *(("segments", name) for name in _EXPLAINED),
        *(("simulate", name, *_FLITS, *json_form) for name in _SIMULATED),
        *(("simulate", name, *_FRAMES, *json_form) for name in _SIMULATED),
        *(("simulate", "torus4x2", *_FRAMES, "--flow-control", how, *json_form) for how in ("none", "pfc")),
        *(("plan", str(file)) for file in sorted((_ROOT / "scenarios/invalid").glob("*.yaml"))),
        ("run", "mesh4x2", "--engine", "simulate", "--results", "results"),
        ("plan", "torus4x5"), ("plan", "torus4x4", "--set", "routing.kind=updwn"),
    ]  # fmt: skip


def take_digests() -> dict[str, str]:
    """Each command line with its digest."""
    commands = list(dict.fromkeys(list_commands()))
    progress(f"{len(commands)} commands")
    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        return dict(zip((" ".join(words) for words in commands), pool.map(digest_command, commands), strict=True))


def list_differences(before: Mapping[str, str], after: Mapping[str, str]) -> list[str]:
    """A line for each command whose digest is another, or that only one of both has."""
    return [
        f"{name.replace(str(_ROOT), 'ROOT')}: {before.get(name, 'was not there')} before, {after.get(name, 'gone')} now"
        for name in sorted({*before, *after})
        if before.get(name) != after.get(name)
    ]


def main() -> None:
    """Take digests, write them, compare them."""
    parser = argparse.ArgumentParser(prog="benchmarks.digests", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("file", type=Path, help="JSON file to write")
    parser.add_argument("--compare", type=Path, help="JSON file of an earlier time")
    chosen = parser.parse_args()
    before = json.loads(chosen.compare.read_text()) if chosen.compare else None
    digests = {name.replace(str(_ROOT), "ROOT"): digest for name, digest in take_digests().items()}
    chosen.file.write_text(json.dumps(digests, indent=1) + "\n")
    if before is not None:
        differences = list_differences(before, digests)
        print("\n".join(differences) or f"all {len(digests)} digests are the same")
        raise SystemExit(bool(differences))


if __name__ == "__main__":
    main()
