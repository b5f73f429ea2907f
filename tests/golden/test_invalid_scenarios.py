"""Every file in scenarios/invalid/ gives exactly the text beside it; scenarios/invalid/README.md says more."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from testbed.base.errors import InputError, TestbedError, VerificationError, naming_options
from testbed.planning import make_plan
from testbed.scenario import load_scenario

FOLDER = Path(__file__).parents[2] / "scenarios" / "invalid"
FILES = sorted(FOLDER.glob("*.yaml"))


def settings_of(file: Path) -> list[str]:
    lines = file.read_text(encoding="utf-8", errors="replace").splitlines()
    return [line.removeprefix("# --set ") for line in lines if line.startswith("# --set ")]


def refusal(file: Path) -> TestbedError | None:
    try:
        with naming_options():  # as the command line does
            make_plan(load_scenario(Path(file.name), settings_of(file))).require_proof()
    except (InputError, VerificationError) as error:
        return error
    return None


@pytest.mark.slow
@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_message(file, monkeypatch):
    monkeypatch.chdir(FOLDER)  # so that the messages hold only the file's name
    error = refusal(file)
    assert error is not None, "this scenario is accepted"
    expected = file.with_suffix(".expected")
    if os.environ.get("UPDATE_GOLDEN") == "1":
        expected.write_text(f"{error}\n", encoding="utf-8")
    assert f"{error}\n" == expected.read_text(encoding="utf-8")


def test_every_expected_text_has_its_scenario():
    assert {file.stem for file in FOLDER.glob("*.expected")} == {file.stem for file in FILES}


def test_each_line_starts_with_the_place_of_its_problem():
    for text in FOLDER.glob("*.expected"):
        for line in text.read_text(encoding="utf-8").splitlines():
            assert line.startswith((f"{text.stem}.yaml: ", "--set", "  ")), line
