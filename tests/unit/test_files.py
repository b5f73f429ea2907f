"""Files that are written whole or not at all."""

from __future__ import annotations

import os

import pytest

from testbed.files import make_folder, write_whole


def test_a_file_is_replaced_whole_and_nothing_stays_beside_it(tmp_path):
    file = tmp_path / "a.json"
    write_whole(file, b"one")
    write_whole(file, b"two")
    assert file.read_bytes() == b"two"
    assert list(tmp_path.iterdir()) == [file]


def test_a_write_that_fails_leaves_what_was_there(tmp_path, monkeypatch):
    file = tmp_path / "a.json"
    write_whole(file, b"one")

    def full(partial, content):
        with partial.open("wb") as half:
            half.write(content[:1])
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("pathlib.Path.write_bytes", full)
    with pytest.raises(OSError, match="No space left"):
        write_whole(file, b"two")
    assert file.read_bytes() == b"one"
    assert list(tmp_path.iterdir()) == [file]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
def test_files_and_folders_belong_to_the_owner_of_what_they_are_in(tmp_path):
    os.chown(tmp_path, 1234, 1234)
    make_folder(tmp_path / "one" / "two")
    write_whole(tmp_path / "one" / "two" / "file", b"")
    for path in (tmp_path / "one", tmp_path / "one" / "two", tmp_path / "one" / "two" / "file"):
        assert (path.stat().st_uid, path.stat().st_gid) == (1234, 1234)


def test_a_folder_of_another_that_may_be_written_is_no_obstacle(tmp_path, monkeypatch):
    def refused(*_):
        raise PermissionError

    monkeypatch.setattr("os.chown", refused)
    write_whole(tmp_path / "file", b"content")
    assert (tmp_path / "file").read_bytes() == b"content"
