"""Files of others in whose names, keys, values and lines is whatever they like, and the commands that read them."""

from __future__ import annotations

import json
from pathlib import Path

from testbed.base.model import Sample
from tests.runs import goodput, head, run_of, stored, text_of

# One of each kind, and both ends of each range.
EVERY = [
    "\x1b", "\x00", "\x07", "\x08", "\x0b", "\x0d", "\x1f", "\x7f", "\x80", "\x9b", "\x9f", "\u061c", "\u200b",
    "\u200e", "\u200f", "\u2028", "\u2029", "\u202a", "\u202e", "\u2066", "\u2069", "\ufeff", "\ud800", "\udfff",
    "\U000e0041",
]  # fmt: skip
# What files and file systems can hold; and codes of rich's.
SET = "".join(sign for sign in EVERY if sign not in "\x00\ud800\udfff\x0d\x0b")
NASTY = f"a{SET}]0;own\x07[red]b[/] :x: [/nothing]"


def hostile_run(folder: Path, nasty: str) -> Path:
    """A result folder, in each of whose texts it is."""
    text = text_of("{kind: mesh, sizes: [2, 2]}")
    samples = [
        *goodput(1e9),
        Sample(f"=m{nasty}", 1.0, f"@u{nasty}", {"load": "1", "repeat": "1", "key": nasty, f"+{nasty}": "=cmd|x"}),
    ]
    loads = [head(1, f"iperf3 {nasty}", "warn", nasty)]
    return stored(folder, run_of(text, samples, loads, reasons=[nasty], environment={nasty: nasty}))


def hostile_files(folder: Path, nasty: str) -> str:
    """Files and folders; the name that some of them have."""
    name = nasty.replace("/", "")[:80]
    (folder / "sc.yaml").write_text(json.dumps({"topology": {"kind": nasty, nasty: 1}, nasty: 1}))
    (folder / "value.yaml").write_text(json.dumps({"topology": {"kind": "mesh", "sizes": [nasty, 2]}}))
    (folder / "broken.yaml").write_text(f"topology: [{nasty}\n- \x1b[31m: {{")
    (folder / "broken.json").write_text('{"' + nasty.replace("\\", "") + '": [1,')
    (folder / "good.yaml").write_text("topology: {kind: mesh, sizes: [2, 2]}")
    (folder / f"{name}.yaml").write_text("topology: {kind: mesh, sizes: [2, 2]}\nlab: {x: 1}\n")
    (folder / "cfg").mkdir()
    (folder / "cfg" / f"{name}.txt").write_text(f"hostname {nasty}\ninterface {nasty}\n switchport {nasty}\n")
    (folder / "cfg" / "sw1.cfg").write_text(f"hostname sw{nasty}\ninterface Gi1/0/1\n description {nasty}\n {nasty}\n")
    (folder / "cfg" / "cabling.csv").write_text(f"a,b,c,d\n{nasty},1,{nasty},2\n")
    (folder / "mine").mkdir()
    (folder / "mine" / ".exercise").write_text(nasty)
    (folder / "mine" / "answers.yaml").write_text(f"{nasty}: 1")
    (folder / "class" / name / "01-storm").mkdir(parents=True)
    (folder / "class" / name / "01-storm" / ".exercise").write_text("01-storm")
    (folder / "class" / name / "01-storm" / "answers.yaml").write_text(json.dumps({nasty: nasty}))
    (folder / "sweep.yaml").write_text(json.dumps({"scenarios": [nasty], nasty: {nasty: [1]}}))
    (folder / "damaged").mkdir()
    for file in ("manifest.json", "plan.json", "environment.json"):
        (folder / "damaged" / file).write_text(json.dumps({"schema_version": nasty, nasty: nasty}))
    return name


def commands_of(name: str, run: Path, nasty: str) -> list[list[str]]:
    """Command lines over all of these files; `name` of a file."""
    here = run.name
    return [
        ["plan", "sc.yaml"], ["plan", "value.yaml"], ["plan", "broken.yaml"], ["plan", "broken.json"],
        ["plan", f"{name}.yaml"], ["plan", nasty], ["plan", "good.yaml", "--set", f"{nasty}={nasty}"],
        ["plan", "good.yaml", f"--{nasty}"], ["plan", "good.yaml", nasty], [nasty],
        ["plan", "good.yaml", "--format", nasty], ["explain", "good.yaml", nasty, "h1"],
        ["verify", f"{name}.yaml", "sc.yaml", "good.yaml"], ["verify", f"{name}.yaml", "--format", "github"],
        ["verify", f"{name}.yaml", "sc.yaml", "--format", "junit"], ["verify", f"{name}.yaml", "--json"],
        ["verify", "broken.json"], ["analyse", f"{name}.yaml"], ["segments", "value.yaml"],
        ["audit", "cfg"], ["audit", "cfg", "--json"], ["check", "cfg", "good.yaml"], ["check", "damaged", "good.yaml"],
        ["report", here], ["report", "damaged"], ["report", here, "-o", "x.csv"], ["report", nasty],
        ["compare", here, here], ["compare", here, "damaged"], ["compare", here, "--format", "csv"],
        ["exercise", "hint", "01-storm", "mine"], ["exercise", "check", "01-storm", "mine"],
        ["exercise", "hint", nasty], ["exercise", "grade", "class"], ["exercise", "grade", "class", "--format", "csv"],
        ["sweep", "sweep.yaml"], ["sweep", nasty], ["simulate", "good.yaml", "--pattern", nasty],
        ["export", "good.yaml", "-d", nasty, "-o", "out"], ["status", nasty], ["live", here + nasty],
    ]  # fmt: skip
