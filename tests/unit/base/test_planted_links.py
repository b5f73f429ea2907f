"""Root's commands in another user's folder: links that are planted at every file they write lead to nobody's file."""

from __future__ import annotations

import io
import os
import shutil
import zipfile
from pathlib import Path

import pytest
from typer.testing import CliRunner

from testbed.base.errors import InputError, StorageError
from testbed.engines.local_machine import calibration
from testbed.experiments.run.write_capture import CaptureFile
from testbed.experiments.sweep.remote_runs import RemoteResult, unpack
from testbed.results import ResultFolder, load_run
from testbed.ui.cli import load_commands
from testbed.ui.cli.app import app
from tests.runs import goodput, run_of, stored, text_of

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root writes where another user plants links")
NOBODY = 65534
_SCENARIO = "topology: {kind: mesh, sizes: [2, 2]}\n"
_QUICK = "--loads 0.1 --seeds 1 --cycles 4000 --warm-up 1000"
# Each command, in a folder with a scenario and a run; what it writes there.
_COMMANDS = {
    "plan": "plan sc.yaml --output plan.json",
    "verify": "verify sc.yaml --certificate certificate.json",
    "analyse": "analyse sc.yaml --output analysis.svg",
    "compare": "compare run run2 --each --output compared.svg",
    "power": "power sc.yaml --set routing.kind=updown --output power.svg",
    "storm": "storm --output storm.svg",
    "report": "report run",
    "report as a table": "report run --output figures.csv",
    "export": "export sc.yaml --dialect linux-bridge-iproute2 --output switches",
    "init": "init hall",
    "exercise": "exercise start 01-storm mine",
    "simulate": f"simulate sc.yaml {_QUICK} --results results",
}
_DATED = {"simulate"}  # their folders have names that nobody knows before


def prepare(folder: Path) -> None:
    folder.mkdir()
    (folder / "sc.yaml").write_text(_SCENARIO)
    for name in ("run", "run2"):
        stored(folder, run_of(text_of("{kind: mesh, sizes: [2, 2]}"), goodput(1e9))).rename(folder / name)


def files_in(folder: Path) -> set[str]:
    return {file.relative_to(folder).as_posix() for file in folder.rglob("*") if file.is_file()}


def invoke(command: str, folder: Path, monkeypatch):
    load_commands()
    monkeypatch.chdir(folder)
    return CliRunner().invoke(app, command.split())


def give_away(folder: Path) -> None:
    for path in (folder, *folder.rglob("*")):
        os.chown(path, NOBODY, NOBODY, follow_symlinks=False)


def plant(link: Path, target: Path) -> None:
    link.parent.mkdir(parents=True, exist_ok=True)
    link.unlink(missing_ok=True)
    link.symlink_to(target)


@pytest.mark.parametrize("name", _COMMANDS)
def test_planted_links_at_what_a_command_writes(name, tmp_path, secret, monkeypatch):
    command = _COMMANDS[name]
    prepare(tmp_path / "first")
    before = files_in(tmp_path / "first")
    done = invoke(command, tmp_path / "first", monkeypatch)
    assert done.exit_code in (0, 3), done.output
    written = files_in(tmp_path / "first") - before
    assert written

    second = tmp_path / "second"
    prepare(second)
    own = {f".{Path(file).name}.{os.getpid()}.partial" for file in written}  # what it once wrote to first
    if name not in _DATED:
        for file in written:
            plant(second / file, secret)
    for file in own:
        plant(second / file, secret)
    give_away(second)
    invoke(command, second, monkeypatch)

    third = tmp_path / "third"  # and links in place of the folders
    prepare(third)
    folders = {file.partition("/")[0] for file in written if "/" in file} - {"run"}
    for folder in folders:
        plant(third / folder, secret.parent)
    give_away(third)
    if folders:
        done = invoke(command, third, monkeypatch)
        if not (third / next(iter(folders))).is_symlink():
            assert name == "export"  # it puts its folder in the link's place
        else:
            assert done.exit_code != 0
    for path in (*second.rglob("*"), *third.rglob("*")):
        assert path.lstat().st_uid == NOBODY, path


def test_planted_links_at_a_capture(tmp_path, secret):
    os.chown(tmp_path, NOBODY, NOBODY)
    plant(tmp_path / "a.pcapng", secret)
    plant(tmp_path / "b.pcapng", tmp_path / "roots" / "none")
    for name in ("a.pcapng", "b.pcapng"):
        with pytest.raises(InputError, match="is there already"):
            CaptureFile(str(tmp_path / name))
    with CaptureFile(str(tmp_path / "c.pcapng")) as file:
        file.write(b"blocks")
    assert (tmp_path / "c.pcapng").stat().st_uid == NOBODY


def test_planted_links_in_a_result_folder_that_is_being_written(tmp_path, secret):
    results = tmp_path / "results"
    results.mkdir()
    os.chown(results, NOBODY, NOBODY)
    folder = ResultFolder(results, run_of(text_of("{kind: mesh, sizes: [2, 2]}"), []).plan)
    for name in ("manifest.json", "telemetry-1.npz", "failures-1.json"):
        plant(folder.path / name, secret)
        folder.write_bytes(name, b"ours")
        assert not (folder.path / name).is_symlink()
    plant(folder.path / "raw", secret.parent)
    with pytest.raises(StorageError, match="raw is a link"):
        folder.write_text("raw/1/out.txt", "ours")
    with pytest.raises(StorageError, match="raw is a link"):
        folder.move("raw/secret", "kept")
    (folder.path / "raw").unlink()
    folder.write_text("raw/1/out.txt", "ours")
    final = folder.finish()
    assert {path.stat().st_uid for path in (final, *final.rglob("*"))} == {NOBODY}


def test_a_run_that_arrives_from_a_worker_stays_in_its_folder(tmp_path, secret):
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as whole:
        whole.writestr("raw/out.txt", "ours")
        whole.writestr("../../roots/new", "theirs")
    carried = RemoteResult("run", packed.getvalue(), "pass", (), "", 1.0)
    with pytest.raises(OSError, match=r"leads out of its folder by \.\."):
        unpack(carried, tmp_path / "sweep" / "runs")
    assert not [path for path in (tmp_path / "sweep").rglob("*") if path.is_file()]


def test_a_calibration_goes_where_no_link_leads(tmp_path, secret, monkeypatch):
    os.chown(tmp_path, NOBODY, NOBODY)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    plant(tmp_path / "cache" / "testbed" / "calibration.json", secret)
    give_away(tmp_path / "cache")
    file = calibration.write(calibration.Calibration({}, 1.0, None, {}, 0.0))
    assert not file.is_symlink()
    assert file.stat().st_uid == NOBODY


def test_what_a_planted_link_leads_to_is_not_read(tmp_path, secret):
    run = stored(tmp_path, run_of(text_of("{kind: mesh, sizes: [2, 2]}"), goodput(1e9)))
    assert load_run(run).samples
    for name in ("samples.csv", "manifest.json", "plan.json", "environment.json"):
        copied = tmp_path / "copied"
        shutil.copytree(run, copied)
        plant(copied / name, secret)
        with pytest.raises(InputError, match="a link") as caught:
            load_run(copied)
        assert "secret" not in str(caught.value).replace(str(secret.parent), "")
        shutil.rmtree(copied)
