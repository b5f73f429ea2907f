"""Files that are written whole or not at all, and by nobody's link anywhere else."""

from __future__ import annotations

import ctypes
import os
import stat
import threading
import time
from pathlib import Path

import pytest

from testbed.base.files import (
    create_file,
    make_folder,
    make_new_folder,
    open_folder,
    read_bytes,
    remove_folder,
    rename,
    write_whole,
)

NOBODY = 65534
_AT_FDCWD, _RENAME_EXCHANGE = -100, 2
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root writes in others' folders with more rights than they")


@pytest.fixture
def theirs(tmp_path):
    """A folder of another user, in one of root's."""
    folder = tmp_path / "theirs"
    folder.mkdir()
    os.chown(folder, NOBODY, NOBODY)
    return folder


def plant(link, target, user=NOBODY):
    link.symlink_to(target)
    os.chown(link, user, user, follow_symlinks=False)


def test_a_file_is_replaced_whole_and_nothing_stays_beside_it(tmp_path):
    file = tmp_path / "a.json"
    write_whole(file, b"one")
    write_whole(file, b"two")
    assert file.read_bytes() == b"two"
    assert list(tmp_path.iterdir()) == [file]


def test_a_write_that_fails_leaves_what_was_there(tmp_path, monkeypatch):
    file = tmp_path / "a.json"
    write_whole(file, b"one")

    def full(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("testbed.base.files.write.os.rename", full)
    with pytest.raises(OSError, match="No space left"):
        write_whole(file, b"two")
    assert file.read_bytes() == b"one"
    assert list(tmp_path.iterdir()) == [file]


def test_a_file_keeps_its_permissions_unless_others_are_named(tmp_path):
    file = tmp_path / "a.json"
    write_whole(file, b"one")
    file.chmod(0o600)
    write_whole(file, b"two")
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    write_whole(file, b"three", mode=0o644)
    assert stat.S_IMODE(file.stat().st_mode) == 0o644


def test_a_name_of_the_greatest_length_is_written(tmp_path):
    write_whole(tmp_path / ("n" * 255), b"one")
    assert [file.name for file in tmp_path.iterdir()] == ["n" * 255]


def test_a_pipe_is_not_replaced_and_a_device_is_written_to(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(OSError, match="a pipe or a device"):
        write_whole(tmp_path / "pipe", b"")
    before = Path("/dev/null").stat()
    write_whole(Path("/dev/null"), b"gone")
    assert (before.st_ino, before.st_mode) == (Path("/dev/null").stat().st_ino, Path("/dev/null").stat().st_mode)
    with pytest.raises(OSError, match="No such file"):
        write_whole(Path("/dev/no-such-device"), b"")


def test_the_standard_output_is_a_file_to_write(capfd):
    write_whole(Path("/dev/stdout"), b"seen\n")
    assert capfd.readouterr().out == "seen\n"


def test_errors_name_the_path_that_was_asked_for(tmp_path):
    (tmp_path / "file").touch()
    for call in (
        lambda: write_whole(tmp_path / "none" / "file", b""),
        lambda: write_whole(tmp_path / "file" / "file", b""),
        lambda: create_file(tmp_path / "file"),
        lambda: make_folder(tmp_path / "file" / "folder"),
        lambda: make_new_folder(tmp_path / "file"),
        lambda: rename(tmp_path / "none", tmp_path / "file"),
        lambda: write_whole(tmp_path, b""),
    ):
        with pytest.raises(OSError, match=str(tmp_path)) as caught:
            call()
        assert caught.value.strerror


def test_folders_are_made_removed_and_renamed(tmp_path):
    make_folder(tmp_path / "one" / "two")
    make_folder(tmp_path / "one" / "two")
    with pytest.raises(FileExistsError):
        make_new_folder(tmp_path / "one")
    rename(tmp_path / "one" / "two", tmp_path / "three")
    write_whole(tmp_path / "three" / "file", b"")
    remove_folder(tmp_path / "three")
    remove_folder(tmp_path / "three")
    assert [path.name for path in tmp_path.iterdir()] == ["one"]


def test_relative_paths_and_points_lead_where_they_always_did(tmp_path, monkeypatch):
    (tmp_path / "here" / "in").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "here")
    for name in ("a", "in/../b", "../c", "./in/d"):
        write_whole(Path(name), name.encode())
    assert (tmp_path / "here" / "a").read_bytes() == b"a"
    assert (tmp_path / "here" / "b").read_bytes() == b"in/../b"
    assert (tmp_path / "c").read_bytes() == b"../c"
    assert (tmp_path / "here" / "in" / "d").read_bytes() == b"./in/d"


def test_ones_own_links_on_the_way_are_followed(tmp_path, monkeypatch):
    (tmp_path / "real" / "in").mkdir(parents=True)
    (tmp_path / "home").symlink_to("real")
    (tmp_path / "far").symlink_to(tmp_path / "home" / "in")
    write_whole(tmp_path / "home" / "file", b"one")
    write_whole(tmp_path / "far" / "file", b"two")
    make_folder(tmp_path / "far" / "deep")
    assert (tmp_path / "real" / "file").read_bytes() == b"one"
    assert (tmp_path / "real" / "in" / "file").read_bytes() == b"two"
    assert (tmp_path / "real" / "in" / "deep").is_dir()
    monkeypatch.chdir(tmp_path)
    write_whole(Path("/proc/self/cwd/file"), b"three")
    assert (tmp_path / "file").read_bytes() == b"three"


def test_a_circle_of_links_ends(tmp_path):
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    with pytest.raises(OSError, match="Too many levels"):
        write_whole(tmp_path / "a" / "file", b"")


def test_a_link_of_the_files_name_is_replaced(tmp_path, secret):
    (tmp_path / "file").symlink_to(secret)
    write_whole(tmp_path / "file", b"ours")
    assert not (tmp_path / "file").is_symlink()
    assert (tmp_path / "file").read_bytes() == b"ours"


def test_a_link_that_everybody_can_put_there_is_not_followed(tmp_path):
    (tmp_path / "open").mkdir(mode=0o777)
    (tmp_path / "open").chmod(0o777)
    (tmp_path / "open" / "link").symlink_to(tmp_path)
    with pytest.raises(PermissionError, match="everybody can change"):
        write_whole(tmp_path / "open" / "link" / "file", b"")
    (tmp_path / "open").chmod(0o1777)
    write_whole(tmp_path / "open" / "link" / "file", b"")  # there each has its own


def test_below_a_folder_no_link_counts(tmp_path, secret):
    run = tmp_path / "run"
    run.mkdir()
    (run / "raw").symlink_to(secret.parent)
    (run / "plan.json").symlink_to(secret)
    for call in (
        lambda: write_whole(run / "raw" / "new", b"", below=run),
        lambda: make_folder(run / "raw" / "new", run),
        lambda: create_file(run / "raw" / "new", run),
        lambda: read_bytes(run / "raw" / "secret", run),
        lambda: read_bytes(run / "plan.json", run),
        lambda: read_bytes(run / ".." / "roots" / "secret", run),
        lambda: remove_folder(run / "raw" / "secret", run),
    ):
        with pytest.raises(OSError, match=r"link|leads out"):
            call()
    remove_folder(run / "raw", run)  # the link itself
    assert not (run / "raw").is_symlink()


@as_root
def test_files_and_folders_belong_to_the_owner_of_their_folder(theirs):
    make_folder(theirs / "one" / "two")
    make_new_folder(theirs / "new")
    write_whole(theirs / "one" / "two" / "file", b"")
    os.close(create_file(theirs / "one" / "stream"))
    made = [*theirs.rglob("*")]
    assert len(made) == 5
    for path in made:
        assert (path.stat().st_uid, path.stat().st_gid) == (NOBODY, NOBODY)


@as_root
def test_root_writes_in_a_users_folder_with_that_users_rights(theirs):
    theirs.chmod(0o555)
    for call in (
        lambda: write_whole(theirs / "file", b""),
        lambda: make_folder(theirs / "folder"),
        lambda: create_file(theirs / "file"),
    ):
        with pytest.raises(PermissionError):
            call()
    theirs.chmod(0o755)
    write_whole(theirs / "file", b"")
    rename(theirs / "file", theirs / "other")
    remove_folder(theirs / "other")
    assert list(theirs.iterdir()) == []


@as_root
def test_root_has_its_rights_again_afterwards_and_in_threads(theirs, secret):
    seen = []

    def read():
        for _ in range(200):
            seen.append(secret.read_bytes())

    thread = threading.Thread(target=read)
    thread.start()
    for number in range(50):
        write_whole(theirs / str(number % 3), b"")
    thread.join()
    assert seen == [b"secret"] * 200
    assert secret.read_bytes() == b"secret"


@as_root
def test_planted_links_lead_to_nobodys_files(theirs, secret):
    plant(theirs / "report.html", secret)
    plant(theirs / f".report.html.{os.getpid()}.partial", secret)
    plant(theirs / "capture", secret)
    plant(theirs / "runs", secret.parent)
    write_whole(theirs / "report.html", b"ours")
    assert (theirs / "report.html").read_bytes() == b"ours"
    with pytest.raises(FileExistsError):
        create_file(theirs / "capture")
    for call in (
        lambda: write_whole(theirs / "runs" / "new", b""),
        lambda: make_folder(theirs / "runs" / "new"),
        lambda: make_new_folder(theirs / "runs" / "new"),
        lambda: create_file(theirs / "runs" / "new"),
        lambda: rename(theirs / "runs" / "secret", theirs / "mine"),
        lambda: rename(theirs / "report.html", theirs / "runs" / "secret"),
        lambda: remove_folder(theirs / "runs" / "secret"),
    ):
        with pytest.raises(PermissionError, match=f"a link of user {NOBODY}"):
            call()
    remove_folder(theirs / "runs")  # the link itself


@as_root
def test_a_users_own_links_are_followed_to_that_users_folders(theirs, tmp_path):
    disk = tmp_path / "disk"
    disk.mkdir()
    os.chown(disk, NOBODY, NOBODY)
    plant(theirs / "results", disk)
    make_folder(theirs / "results" / "new")
    write_whole(theirs / "results" / "new" / "file", b"one")
    assert (disk / "new" / "file").stat().st_uid == NOBODY
    plant(theirs / "twice", theirs / "other", user=1234)
    plant(theirs / "other", disk)
    with pytest.raises(PermissionError, match="is a link of user"):
        write_whole(theirs / "twice" / "file", b"")


@as_root
def test_a_link_in_tmp_of_another_user_is_not_roots_to_follow(tmp_path, secret):
    (tmp_path / "tmp").mkdir()
    (tmp_path / "tmp").chmod(0o1777)
    plant(tmp_path / "tmp" / "results", secret.parent)
    with pytest.raises(PermissionError, match="a link of user"):
        make_folder(tmp_path / "tmp" / "results" / "new")


@as_root
def test_a_folder_swapped_for_a_link_leads_nowhere_else(theirs, secret):
    run, link = theirs / "run", theirs / "link"
    run.mkdir()
    os.chown(run, NOBODY, NOBODY)
    plant(link, secret.parent)
    ended = threading.Event()
    libc = ctypes.CDLL(None)

    def swap():
        while not ended.is_set():
            libc.renameat2(_AT_FDCWD, bytes(run), _AT_FDCWD, bytes(link), _RENAME_EXCHANGE)

    thread = threading.Thread(target=swap)
    thread.start()
    written = refused = 0
    until = time.monotonic() + 0.5
    try:
        while time.monotonic() < until:
            try:
                make_folder(run / "raw")
                write_whole(run / "raw" / "file", b"ours")
                write_whole(run / "secret", b"ours")
                remove_folder(run / "raw")
                written += 1
            except OSError:
                refused += 1
    finally:
        ended.set()
        thread.join()
    assert written
    assert refused  # and the secret's fixture looks at what the link led to


@as_root
def test_the_way_is_held_while_a_folder_is_swapped(theirs, secret):
    run = theirs / "run"
    make_folder(run)
    with open_folder(run) as held:
        run.rename(theirs / "kept")
        plant(run, secret.parent)
        os.close(os.open("file", os.O_CREAT | os.O_WRONLY, dir_fd=held.descriptor))
    assert (theirs / "kept" / "file").exists()
