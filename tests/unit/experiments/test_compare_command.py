from __future__ import annotations

import csv
import json

import pytest
from typer.testing import CliRunner

from testbed.base.errors import InputError
from testbed.ui.cli import compare_commands  # noqa: F401 - adds the commands
from testbed.ui.cli.app import app
from tests.runs import UDP, goodput, head, run_of, stored, text_of


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    root = tmp_path_factory.mktemp("results")
    runs = [
        run_of(text_of("{kind: flat, hosts: 4}", UDP), goodput(9e8, 9.1e8), [head()], name="flat4"),
        run_of(text_of("{kind: torus, sizes: [4]}", UDP), goodput(4.5e8), [head()], name="torus4"),
        run_of(text_of("{kind: tree, switches: 4}", UDP), goodput(3e8), [head(verdict="invalid")], name="tree4"),
    ]
    return [str(stored(root, run)) for run in runs]


def called(*arguments):
    return CliRunner().invoke(app, ["compare", *map(str, arguments)])


def problems(*arguments):
    done = called(*arguments)
    assert isinstance(done.exception, InputError), done.output
    return str(done.exception)


def test_text_has_the_table_and_a_reserve_is_exit_code_3(folders):
    assert called(*folders[:2]).exit_code == 0
    done = called(*folders)
    assert done.exit_code == 3
    assert "×0.497" in done.output
    assert "(300)" in done.output


def test_json_and_csv_stand_alone(folders):
    found = json.loads(called(*folders, "--format", "json").stdout)
    assert [row["scenario"] for row in found["rows"]] == ["flat4", "torus4", "tree4"]
    lines = list(csv.DictReader(called(*folders, "--format", "csv", "--baseline", "torus4").stdout.splitlines()))
    assert [line["relative"] for line in lines] == ["1.0", str(9.05e8 / 4.5e8), ""]


@pytest.mark.parametrize("form", ["svg", "pdf", "png"])
def test_a_figure_is_drawn_with_its_data_beside_it(folders, tmp_path, form):
    file = tmp_path / f"figure.{form}"
    assert called(*folders[:2], "--output", file).exit_code == 0
    assert file.stat().st_size > 5000
    assert len((tmp_path / "figure.csv").read_text().splitlines()) == 3


def test_what_is_wrong_with_folders_is_told_at_once(folders, tmp_path):
    text = problems(*folders[:1], folders[0] + "/", tmp_path / "none", tmp_path)
    assert text.splitlines() == [
        f"{folders[0]}: is listed twice; a run is not a repeat of itself",
        f"{tmp_path / 'none'}: is not a result folder: there is nothing of that name",
        f"{tmp_path}: is not a result folder: manifest.json is missing",
    ]


def test_options_that_cannot_be_are_sentences(folders, tmp_path):
    assert problems(*folders, "--output", "figure.jpg") == (
        '--output: should be a file that ends in .svg, .pdf or .png, not "figure.jpg"'
    )
    assert problems(folders[0]) == "a comparison needs two result folders or more"
    assert problems(*folders, "--baseline", "ring4").startswith("--baseline ring4: no run is of this scenario.")
    assert problems(*folders, "--metric", "godput").startswith(
        'godput: no run has this metric. Did you mean "goodput"?'
    )
    assert problems(*folders, "--output", tmp_path / "no" / "x.svg").endswith(
        "cannot be written: No such file or directory"
    )
