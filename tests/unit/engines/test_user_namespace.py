"""Labs without root: why a user namespace is refused, what such a lab lacks, and where its records are."""

from __future__ import annotations

import os

import pytest

from testbed.base import resources
from testbed.base.errors import CapabilityError
from testbed.engines.lab.control import record_folder
from testbed.engines.local_machine import user_namespace
from testbed.engines.local_machine.rootless_losses import list_losses

DENIED = "unshare: unshare failed: Operation not permitted\n"


@pytest.mark.parametrize(
    ("said", "settings", "filtered", "sentence"),
    [
        (
            DENIED,
            {"kernel/unprivileged_userns_clone": "0"},
            False,
            "ordinary users may not make user namespaces (kernel.unprivileged_userns_clone = 0); "
            "sudo sysctl -w kernel.unprivileged_userns_clone=1",
        ),
        (
            "unshare: unshare failed: No space left on device\n",
            {"kernel/unprivileged_userns_clone": "1", "user/max_user_namespaces": "0"},
            False,
            "no user namespaces are allowed (user.max_user_namespaces = 0); sudo sysctl -w "
            "user.max_user_namespaces=9999",
        ),
        (
            "unshare: write failed /proc/self/uid_map: Operation not permitted\n",
            {"user/max_user_namespaces": "100", "kernel/apparmor_restrict_unprivileged_userns": "1"},
            False,
            "AppArmor allows ordinary users no rights in user namespaces "
            "(kernel.apparmor_restrict_unprivileged_userns = 1); load the profile of docs/rootless.md, or sudo sysctl "
            "-w kernel.apparmor_restrict_unprivileged_userns=0",
        ),
        (DENIED, {}, True, user_namespace._FILTERED),
        ("unshare: mount /proc failed: Operation not permitted\n", {}, True, user_namespace._MASKED),
        (DENIED, {}, False, f"it cannot be made ({DENIED.strip()})"),
        ("", {}, False, "it cannot be made (unshare printed nothing)"),
    ],
)
def test_each_refusal_has_its_remedy(said, settings, filtered, sentence):
    assert user_namespace.explain_refusal(said, settings, filtered=filtered) == sentence


def test_what_a_lab_lacks_depends_on_engine_and_limits():
    shares = "shares of the processors only where a group of processes is given to you"
    assert list_losses(10, {"wmem_max": 1 << 10}, model=True) == [shares]
    assert list_losses(-1, {}, model=True) == [shares]
    (late, _) = list_losses(9, {}, model=True)
    assert late.startswith("no real-time priority")
    (path, buffers, _) = list_losses(0, {"rmem_max": 8 << 20, "wmem_max": 212992}, model=False)
    assert path.startswith("no fast path under Open vSwitch")
    assert "(net.core.wmem_max = 212992)" in buffers


@pytest.fixture
def ordinary(monkeypatch):
    """This program takes itself for an ordinary user, who has the number of its files' owner."""
    user = os.geteuid() or 4711
    monkeypatch.setattr(os, "geteuid", lambda: user)
    return user


def test_records_are_in_a_folder_of_the_user(ordinary, monkeypatch, tmp_path):
    os.chown(tmp_path, ordinary, -1)
    tmp_path.chmod(0o700)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    assert record_folder.find_folder() == tmp_path / "testbed"
    for unusable in (str(tmp_path / "none"), "relative", ""):
        monkeypatch.setenv("XDG_RUNTIME_DIR", unusable)
        assert str(record_folder.find_folder()) == f"/tmp/testbed-{ordinary}"
    tmp_path.chmod(0o770)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    assert str(record_folder.find_folder()) == f"/tmp/testbed-{ordinary}"


def test_a_folder_of_records_that_others_write_is_refused(tmp_path):
    folder, link = tmp_path / "testbed", tmp_path / "link"
    record_folder.make(folder)
    record_folder.check(folder)
    record_folder.check(tmp_path / "none")
    folder.chmod(0o777)
    link.symlink_to(tmp_path)
    for place in (folder, link):
        with pytest.raises(CapabilityError, match="is not a folder that only you can write to"):
            record_folder.check(place)


def test_mpi_jobs_of_anothers_clone_are_built_in_ones_cache(ordinary, monkeypatch, tmp_path):
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    found = resources.find_build_folder.__wrapped__("mpi_jobs")
    assert found.parent == tmp_path / "testbed"
    monkeypatch.setenv(resources.BUILDS, "/elsewhere")
    assert resources.find_build_folder.__wrapped__("mpi_jobs").parent.as_posix() == "/elsewhere"
