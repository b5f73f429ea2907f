"""Boxes for Vagrant as far as they can be tested without making one: names, refusals, and what is left of a failure."""

from __future__ import annotations

import json
import os
import platform
import re
import shutil
import stat
import subprocess
import threading
from fnmatch import fnmatch
from pathlib import Path
from types import SimpleNamespace
from xml.etree import ElementTree

import pytest
from typer.testing import CliRunner

from testbed.base.errors import CapabilityError, InputError, LabError
from testbed.base.resources import PACKAGES as ROOT
from testbed.engines.vm import box, building
from testbed.engines.vm.box import BOX_INPUTS, PROVIDERS, box_file, build_boxes
from testbed.engines.vm.image import Image
from testbed.ui.cli import vm_commands
from testbed.ui.cli.app import app

from .fake_programs import put_builder


def _quiet(text: str) -> None:
    del text


# Writes down what the script was called with, and makes what it is asked for.
_MAKE = """echo "$@" >>{calls}; echo its disk; echo left over >"$2/disk"
for provider in "${{@:4}}"; do echo $provider >"$2/$provider.box"; done"""


@pytest.fixture
def able(monkeypatch, tmp_path):
    """A machine that can make boxes; returns what tells how its script was called."""
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(shutil, "disk_usage", lambda place: SimpleNamespace(free=10 << 30))
    monkeypatch.setattr(box, "CACHE", tmp_path / "cache")
    monkeypatch.setattr(box, "require_image", lambda: Image(Path("/image")))
    put_builder(monkeypatch, tmp_path, _MAKE.format(calls=tmp_path / "calls"))

    def list_calls() -> list[list[str]]:
        calls = tmp_path / "calls"
        return [line.split() for line in calls.read_text().splitlines()] if calls.exists() else []

    return list_calls


def _names(folder: Path) -> list[str]:
    return sorted(place.name for place in folder.iterdir())


# --- boxes ----------------------------------------------------------------------------------------------------------


def test_boxes_get_their_names_when_whole_and_are_made_once(tmp_path, able):
    folder = tmp_path / "a" / "boxes"
    said: list[str] = []
    boxes = build_boxes(PROVIDERS, said.append, folder)
    assert boxes == [box_file("libvirt", folder), box_file("virtualbox", folder)]
    assert [file.read_text() for file in boxes] == ["libvirt\n", "virtualbox\n"]
    assert _names(folder) == sorted(file.name for file in boxes)
    ((name, working, image, *providers),) = able()
    assert (name, image, providers) == ("vm-box", "/image/root.img", ["libvirt", "virtualbox"])
    assert Path(working).parent == folder
    assert said == ["making the box for Vagrant: its disk"]
    assert build_boxes(PROVIDERS, said.append, folder) == boxes
    assert len(able()) == 1


def test_only_the_box_that_is_not_there_is_made(tmp_path, able):
    build_boxes(["virtualbox"], _quiet, tmp_path / "boxes")
    assert able()[0][3:] == ["virtualbox"]
    build_boxes(PROVIDERS, _quiet, tmp_path / "boxes")
    assert able()[1][3:] == ["libvirt"]


def test_a_box_can_be_read_by_users(tmp_path, able):
    old = os.umask(0o077)
    try:
        (made,) = build_boxes(["libvirt"], _quiet, tmp_path)
    finally:
        os.umask(old)
    assert stat.S_IMODE(made.stat().st_mode) == 0o644


def test_what_an_interrupted_building_left_is_not_trusted(tmp_path, able):
    for name in (
        "testbed-000000000000.building",
        box_file("libvirt", tmp_path).name.replace("-libvirt.box", ".building"),
    ):
        (tmp_path / name).mkdir()
        (tmp_path / name / "libvirt.box").write_text("half")
    (made,) = build_boxes(["libvirt"], _quiet, tmp_path)
    assert made.read_text() == "libvirt\n"
    assert not list(tmp_path.glob("*.building"))


@pytest.mark.parametrize(
    ("ends", "error"),
    [
        ("echo no network >&2; exit 1", LabError),
        ("echo half; exec sleep 60", KeyboardInterrupt),
        ("echo half", OSError),
    ],
)
def test_a_building_that_ends_early_leaves_nothing(ends, error, tmp_path, monkeypatch, able):
    folder = tmp_path / "boxes"
    build_boxes(["virtualbox"], _quiet, folder)
    before = _names(folder)
    put_builder(monkeypatch, tmp_path, f'echo half >"$2/libvirt.box"; {ends}')

    def interrupt(text):
        raise OSError(28, "No space left on device") if error is OSError else error

    with pytest.raises(error):
        build_boxes(PROVIDERS, interrupt, folder)
    assert _names(folder) == before


def test_a_name_changes_with_what_a_box_is_made_of():
    assert {"scripts/vm-box", "scripts/vm-box.ovf", "scripts/vagrant.pub", "scripts/vm-image", "locks/dev.txt"} <= set(
        BOX_INPUTS
    )
    assert len({box_file(provider).name for provider in PROVIDERS}) == len(PROVIDERS)


@pytest.mark.parametrize(
    ("replace", "sentence"),
    [
        (
            lambda m: m.setattr(os, "geteuid", lambda: 1000),
            "the box for Vagrant is built as root, because it is a root file system; run `make vagrant-box`, or",
        ),
        (lambda m: m.setattr(platform, "machine", lambda: "aarch64"), "this machine is aarch64, which cannot"),
        (
            lambda m: m.setattr(
                shutil, "which", lambda name, path=None: None if name in ("mke2fs", "qemu-img") else name
            ),
            "missing: mke2fs, qemu-img; without them no box for Vagrant can be made; run `apt-get install e2fsprogs "
            "qemu-utils`",
        ),
        (
            lambda m: m.setattr(shutil, "disk_usage", lambda place: SimpleNamespace(free=1 << 30)),
            "the box for Vagrant takes up to 6.4 GB while it is made, and {folder} has 1.1 GB left; make room and",
        ),
    ],
)
def test_what_making_needs_is_looked_at_first(replace, sentence, tmp_path, monkeypatch, able):
    replace(monkeypatch)
    folder = tmp_path / "boxes"
    with pytest.raises(CapabilityError) as raised:
        build_boxes(PROVIDERS, _quiet, folder)
    assert sentence.format(folder=folder) in str(raised.value)
    assert not folder.exists()
    assert able() == []


def test_without_an_image_the_remedy_is_told(tmp_path, monkeypatch):
    monkeypatch.setattr(box, "_require_means", lambda folder: None)
    monkeypatch.setattr("testbed.engines.vm.image.find_image", lambda: None)
    with pytest.raises(CapabilityError, match=r"there is no image of the virtual machine .*; run `make vm`"):
        build_boxes(PROVIDERS, _quiet, tmp_path / "boxes")
    assert not (tmp_path / "boxes").exists()


# --- the script -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("code", "error", "sentence"),
    [
        (3, CapabilityError, r"^mount: no loop device; build the box outside$"),
        (1, LabError, r"^the box for Vagrant cannot be built:\nmount: no loop device; build the box outside$"),
    ],
)
def test_a_script_that_lacks_something_is_told_from_a_failed_one(code, error, sentence, tmp_path, monkeypatch):
    said = "mount: no loop device; build the box outside"
    put_builder(monkeypatch, tmp_path, f"echo '{said}' >&2; exit {code}")
    with pytest.raises(error, match=sentence):
        building.run_script("vm-box", [], "the box for Vagrant", tmp_path / "errors", _quiet)


@pytest.mark.slow
def test_a_folder_in_which_a_program_still_writes_is_removed(tmp_path):
    folder = tmp_path / "testbed-0.building"
    folder.mkdir()
    stop = threading.Event()

    def write():
        number = 0
        while not stop.is_set():
            number += 1
            try:
                (folder / str(number % 50)).mkdir()
                (folder / str(number % 50) / "file").write_text("x")
            except OSError:
                continue

    writer = threading.Thread(target=write)
    writer.start()
    threading.Timer(0.5, stop.set).start()
    try:
        building.clean_up(folder)
    finally:
        stop.set()
        writer.join()
    assert not folder.exists()


def test_the_script_can_be_executed_and_says_how(tmp_path):
    script = ROOT / "scripts" / "vm-box"
    assert script.stat().st_mode & stat.S_IXUSR
    done = subprocess.run([script, tmp_path], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (2, "usage: scripts/vm-box FOLDER ROOT.img PROVIDER...\n")


def test_every_provider_has_a_box():
    assert {provider.value for provider in vm_commands.Provider} == {*PROVIDERS, "both"}
    text = (ROOT / "scripts" / "vm-box").read_text()
    assert re.findall(r"^ {8}(\w+)\)$", text, re.MULTILINE) == list(PROVIDERS)


def test_the_description_for_virtualbox_refers_to_what_is_there():
    text = (ROOT / "scripts" / "vm-box.ovf").read_text()
    assert text.count("@BYTES@") == 1
    tree = ElementTree.fromstring(text)
    ovf = "{http://schemas.dmtf.org/ovf/envelope/1}"
    rasd = "{http://schemas.dmtf.org/wbem/wscim/1/cim-schema/2/CIM_ResourceAllocationSettingData}"
    (file,), (disk,) = tree.iter(f"{ovf}File"), tree.iter(f"{ovf}Disk")
    assert f"{file.get(ovf + 'href')}" in (ROOT / "scripts" / "vm-box").read_text()
    assert disk.get(f"{ovf}fileRef") == file.get(f"{ovf}id")
    items = list(tree.iter(f"{ovf}Item"))
    numbers = [item.findtext(f"{rasd}InstanceID") for item in items]
    assert len(set(numbers)) == len(numbers)
    (drive,) = (item for item in items if item.findtext(f"{rasd}ResourceType") == "17")
    assert drive.findtext(f"{rasd}HostResource") == f"/disk/{disk.get(ovf + 'diskId')}"
    assert drive.findtext(f"{rasd}Parent") in numbers
    for item in items:  # VirtualBox wants them in the order of the alphabet, as the schema has them
        names = [element.tag for element in item]
        assert names == sorted(names)


def test_vagrant_looks_where_the_boxes_are():
    (pattern,) = re.findall(r'^MADE = "(.*)"$', (ROOT / "Vagrantfile").read_text(), re.MULTILINE)
    for provider in PROVIDERS:
        assert fnmatch(str(box_file(provider)), pattern % provider)


# --- the command ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("asked", "made"), [("both", list(PROVIDERS)), ("libvirt", ["libvirt"])])
def test_the_command_names_the_boxes(asked, made, tmp_path, monkeypatch):
    monkeypatch.setattr(box, "build_boxes", lambda providers, progress, folder: [folder / name for name in providers])
    words = ["vm", "box", "--provider", asked, "-o", str(tmp_path / "new"), "--format", "json"]
    done = CliRunner().invoke(app, words, catch_exceptions=False)
    assert json.loads(done.stdout)["boxes"] == [str(tmp_path / "new" / name) for name in made]


@pytest.mark.parametrize("rest", ["", "/boxes"])
def test_a_file_is_no_folder_for_boxes(rest, tmp_path):
    file = tmp_path / "file"
    file.write_text("")
    with pytest.raises(InputError, match=rf"^--output: {file} is a file; give the name of a folder$"):
        CliRunner().invoke(app, ["vm", "box", "-o", f"{file}{rest}"], catch_exceptions=False)


def test_a_provider_that_is_none_is_refused():
    assert CliRunner().invoke(app, ["vm", "box", "--provider", "xen"]).exit_code == 2
