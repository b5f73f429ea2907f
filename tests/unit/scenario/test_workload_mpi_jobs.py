"""What a job.yaml may say, where jobs are looked for, and what is said when one cannot be built."""

import os
import pickle
import re
import shutil
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace

import pytest
from typer.testing import CliRunner

from testbed.base import trust
from testbed.base.errors import CapabilityError, InputError
from testbed.engines.lab.hosts import build_mpi_jobs, scenario_mpi_jobs
from testbed.engines.lab.hosts.build_mpi_jobs import _reason
from testbed.experiments.run.loads.run_mpi import prepare_mpi
from testbed.planning import make_plan
from testbed.scenario import load_scenario
from testbed.ui.cli import ask_trust, load_commands
from testbed.ui.cli.app import app
from testbed.ui.cli.ask_trust import ask_for_trust, trust_programs

GOOD = "name: mine\ndescription: a job\nbinary: run.sh\nsuccess: ^right$\noutput: free\n"
needs_make = pytest.mark.skipif(not (shutil.which("make") and shutil.which("cc")), reason="needs make and a C compiler")


@pytest.fixture(autouse=True)
def places(tmp_path, monkeypatch):
    """Nothing is trusted, and nothing was built before."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setattr(scenario_mpi_jobs, "CACHE", tmp_path / "state" / "testbed")


@pytest.fixture
def folder(tmp_path):
    """A job's folder beside a scenario, with a program and without a Makefile."""
    made = tmp_path / "my_job"
    made.mkdir()
    (made / "job.yaml").write_text(GOOD)
    (made / "run.sh").write_text("#!/bin/sh\necho right\n")
    (made / "run.sh").chmod(0o755)
    return made


def trusted(name, base):
    """A job that the caller trusts."""
    with trust.allow_programs(True):
        return build_mpi_jobs.read_job(name, "x", base)


def problems(name, base):
    with pytest.raises(InputError) as caught:
        build_mpi_jobs.read_job(name, "x.yaml: workloads.0.job", base)
    return [str(problem) for problem in caught.value.problems]


@pytest.mark.parametrize("name", build_mpi_jobs.job_names())
def test_every_job_of_the_testbed_says_what_it_may(name, tmp_path):
    job = build_mpi_jobs.read_job(name, "x", tmp_path)
    assert job.name == name
    assert job.folder == str(build_mpi_jobs.FOLDER / name)


def test_the_jobs_of_the_testbed_are_found_by_name():
    assert build_mpi_jobs.job_names() == ["collectives", "fabric_bench", "hpl", "imb", "osu", "pattern"]


def test_a_job_may_be_a_path_seen_from_the_scenario(folder):
    job = build_mpi_jobs.read_job("./my_job", "x", folder.parent)
    assert (job.name, job.binary, job.output, job.folder) == ("mine", str(folder / "run.sh"), "free", str(folder))
    assert build_mpi_jobs.read_job("my_job/", "x", folder.parent) == job
    assert build_mpi_jobs.read_job(str(folder), "x", folder / "elsewhere") == job


def test_an_unknown_job_names_the_nearest(folder):
    assert problems("fabric_bnch", folder) == [
        'x.yaml: workloads.0.job: there is no MPI job "fabric_bnch". Did you mean "fabric_bench"? Known: collectives, '
        "fabric_bench, hpl, imb, osu, pattern, or a path such as ./my_job"
    ]
    assert 'Did you mean "./my_job"?' in problems("my_job", folder.parent)[0]


def test_a_path_without_a_job_is_a_sentence(folder):
    (sentence,) = problems("./other", folder.parent)
    assert sentence == (
        f'x.yaml: workloads.0.job: there is no MPI job in "./other": {folder.parent}/other has no job.yaml'
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("name: [", ["line 1, column 8: expected the node content"]),
        ("just text", ['should be a block of keys, not "just text"']),
        (GOOD + "sucess: x\n", ['sucess: unknown key. Did you mean "success"? Known: name, description, binary']),
        ("name: mine\n", ["description: is required", "binary: is required", "success: is required"]),
        (
            GOOD.replace("free", "jsn"),
            ['output: should be one of json, free, imb, osu, hpl, npb, not "jsn". Did you mean "json"?'],
        ),
        (GOOD + "args: [1]\n", ["args.0: should be text (in quotes), not 1"]),
        (GOOD + "time_limit_seconds: 0\n", ["time_limit_seconds: should be above 0, not 0"]),
        (GOOD + "interpreter: perl\n", ['interpreter: should be one of python, not "perl"']),
        (GOOD.replace("mine", "my job"), ['name: should be letters, digits, "-" and "_", not "my job"']),
        (
            GOOD.replace("^right$", "'(right'"),
            ['success: "(right" is not a regular expression: missing ), unterminated'],
        ),
        (
            GOOD.replace("free", "json") + "fabric_bytes: 5\n",
            ["fabric_bytes: is for output: free; with json the output itself tells it"],
        ),
    ],
)
def test_a_wrong_job_file_is_told_whole(folder, text, expected):
    (folder / "job.yaml").write_text(text)
    found = problems("./my_job", folder.parent)
    assert len(found) == len(expected)
    for sentence, start in zip(found, expected, strict=True):
        assert sentence.startswith(f"{folder}/job.yaml: {start}"), sentence


def test_a_job_file_that_is_a_link_is_not_read(folder, tmp_path):
    (tmp_path / "secret").write_text("root:x:0\n")
    (folder / "job.yaml").unlink()
    (folder / "job.yaml").symlink_to(tmp_path / "secret")
    assert problems("./my_job", folder.parent) == [
        f"{folder}/job.yaml: cannot be read: it is a link, and none is followed there"
    ]


@needs_make
def test_a_folder_without_a_makefile_brings_its_program(folder):
    build_mpi_jobs.build_job(build_mpi_jobs.read_job("./my_job", "x", folder.parent))


@needs_make
def test_a_makefile_runs_where_the_job_does_not_where_planned(folder, tmp_path, monkeypatch):
    (folder / "Makefile").write_text("all:\n\ttouch built\n")
    (tmp_path / "sc.yaml").write_text("topology: {kind: ring, switches: 3}\nworkloads: [{kind: mpi, job: ./my_job}]\n")
    monkeypatch.chdir(tmp_path)
    load_commands()
    for words in ("plan sc.yaml", "verify sc.yaml", "analyse sc.yaml", "export sc.yaml -d csv -o x"):
        assert CliRunner().invoke(app, words.split()).exit_code == 0, words
    assert not (folder / "built").exists()
    job = trusted("./my_job", tmp_path)
    build_mpi_jobs.build_job(job)
    assert (Path(job.folder) / "built").exists()


CXX = """#include <cstdio>
#include <mpi.h>
int main(int argc, char **argv) { MPI_Init(&argc, &argv); std::puts("right"); MPI_Finalize(); }
"""


def run_cxx(folder):
    """What a job's program of C++ prints, built by its Makefile and run as a single rank."""
    (folder / "job.yaml").write_text(GOOD.replace("run.sh", "build/solver"))
    job = trusted("./my_job", folder.parent)
    build_mpi_jobs.build_job(job)
    return subprocess.run([job.binary], capture_output=True, text=True, check=True, timeout=60).stdout


@needs_make
@pytest.mark.slow
@pytest.mark.skipif(not shutil.which("g++"), reason="needs a C++ compiler")
def test_a_makefile_gets_the_compiler_of_cxx(folder):
    (folder / "solver.cpp").write_text(CXX)
    (folder / "Makefile").write_text("build/solver: solver.cpp\n\tmkdir -p build\n\t$(MPICXX) -o $@ $<\n")
    assert run_cxx(folder) == "right\n"


@needs_make
@pytest.mark.slow
@pytest.mark.skipif(not (shutil.which("g++") and shutil.which("cmake")), reason="needs CMake and a C++ compiler")
def test_a_project_of_cmake_needs_the_makefile_of_the_readme(folder):
    readme = (Path(__file__).parents[3] / "mpi_jobs" / "README.md").read_text("utf-8")
    (folder / "Makefile").write_text(readme.partition("```make\n")[2].partition("```")[0])
    (folder / "src").mkdir()
    (folder / "src" / "solver.cpp").write_text(CXX)
    project = "cmake_minimum_required(VERSION 3.10)\nproject(solver CXX)\nadd_executable(solver solver.cpp)\n"
    (folder / "src" / "CMakeLists.txt").write_text(project)
    assert run_cxx(folder) == "right\n"


@needs_make
def test_a_makefile_is_run_in_a_copy_once(folder):
    (folder / "run.sh").unlink()
    (folder / "Makefile").write_text("run.sh:\n\techo '#!/bin/sh' >>run.sh && chmod +x run.sh\n")
    before = {path.name for path in folder.iterdir()}
    for _ in range(2):
        job = trusted("./my_job", folder.parent)
        build_mpi_jobs.build_job(job)
        assert Path(job.binary).read_text() == "#!/bin/sh\n"
    assert Path(job.binary).parent == Path(job.folder) != folder
    assert {path.name for path in folder.iterdir()} == before


def prepared(folder):
    """A scenario's job before its lab is built."""
    file = folder.parent / "sc.yaml"
    file.write_text("topology: {kind: ring, switches: 3}\nworkloads: [{kind: mpi, job: ./my_job}]\n")
    plan = make_plan(load_scenario(file))
    return prepare_mpi(plan, plan.scenario.workloads[0].spec, "workloads.0")


def refused(folder):
    with pytest.raises(InputError) as caught:
        prepared(folder)
    return str(caught.value)


@needs_make
def test_nothing_of_a_job_is_built_until_it_is_trusted(folder, tmp_path):
    (folder / "Makefile").write_text("all:\n\ttouch built\n")
    sources = trust.read_job_folder(folder)
    said = refused(folder)
    who = trust.user_name(os.geteuid())
    size = sum(path.stat().st_size for path in folder.iterdir())
    assert said == (
        f"{tmp_path}/sc.yaml: workloads.0.job: ./my_job is an MPI job of {who} (3 files, {size} bytes, SHA-256 "
        f"{sources.digest[:16]}…) whose Makefile would build it with your rights, and you have not said that you "
        f"trust it; read {folder}, then say trust=True"
    )
    assert not (tmp_path / "state").exists()
    trust.remember(sources)
    assert (Path(prepared(folder).job.folder) / "built").exists()
    (folder / "new.h").touch()
    assert "then say trust=True" in refused(folder)
    (folder / "new.h").unlink()
    (folder / "run.sh").chmod(0o644)
    assert "then say trust=True" in refused(folder)


@needs_make
def test_the_bytes_that_are_trusted_are_the_bytes_that_are_built(folder, tmp_path):
    """A Makefile that another program changes after it was read, and before it runs."""
    (folder / "Makefile").write_text("all:\n\ttouch built\n")

    def changed_meanwhile(found):
        (folder / "Makefile").write_text(f"all:\n\ttouch {tmp_path}/evil\n")
        return found.files["Makefile"].content == b"all:\n\ttouch built\n"

    with trust.decide_trust_with(changed_meanwhile):
        job = prepared(folder).job
    assert (Path(job.folder) / "built").exists()
    assert not (tmp_path / "evil").exists()


def test_shipped_jobs_and_ready_programs_are_not_asked_about(folder):
    with trust.decide_trust_with(lambda found: pytest.fail("it is asked about")):
        for name in build_mpi_jobs.job_names():
            build_mpi_jobs.read_job(name, "x")
        assert build_mpi_jobs.read_job(str(build_mpi_jobs.FOLDER / "osu"), "x") == build_mpi_jobs.read_job("osu", "x")
        build_mpi_jobs.read_job("./my_job", "x", folder.parent)


def test_a_makefile_that_came_after_the_question_is_not_run(folder):
    job = build_mpi_jobs.read_job("./my_job", "x", folder.parent)
    (folder / "Makefile").write_text("all:\n\ttouch built\n")
    with pytest.raises(CapabilityError, match="the MPI job mine has got a Makefile meanwhile; run the command again"):
        build_mpi_jobs.build_job(job)
    assert not (folder / "built").exists()


@needs_make
def test_another_machine_gets_what_is_trusted_without_a_folder(folder):
    (folder / "Makefile").write_text("all:\n\ttouch built\n")
    (folder / "src").mkdir()
    (folder / "src" / "x.c").write_text("int x;\n")
    sent = pickle.dumps(trusted("./my_job", folder.parent))
    shutil.rmtree(folder)
    job = pickle.loads(sent)
    build_mpi_jobs.build_job(job)
    assert (Path(job.folder) / "built").exists()
    assert (Path(job.folder) / "src" / "x.c").read_text() == "int x;\n"


def planted(folder, what):
    """Something in a job's folder that is no file of a job."""
    if what == "a link":
        (folder / "src").mkdir()
        (folder / "src" / "x.h").symlink_to("/etc/passwd")
    elif what == "a link to a folder":
        (folder / "src").symlink_to("/etc")
    elif what == "a pipe":
        os.mkfifo(folder / "pipe")
    elif what == "many files":
        for number in range(trust.MOST_FILES):
            (folder / f"{number}").touch()
    else:
        os.truncate(folder / "run.sh", trust.MOST_BYTES)


@pytest.mark.parametrize(
    ("what", "sentence"),
    [
        ("a link", "src/x.h: it is a link; put what it leads to in its place"),
        ("a link to a folder", "src: it is a link; put what it leads to in its place"),
        ("a pipe", "pipe: it is a pipe or a device, not a file"),
        ("many files", ": there is more in it than a job may have (1,000 files and 64 MiB)"),
        ("a large file", ": there is more in it than a job may have (1,000 files and 64 MiB)"),
    ],
)
def test_what_cannot_be_a_job_s_folder_is_a_sentence(folder, what, sentence):
    (folder / "Makefile").write_text("all:\n")
    planted(folder, what)
    (said,) = problems("./my_job", folder.parent)
    assert said.startswith("x.yaml: workloads.0.job: the MPI job ./my_job cannot be read: ")
    assert said.endswith(sentence)


@pytest.mark.parametrize("which", ["mpi_jobs", "the copy"])
def test_a_copy_that_others_can_write_is_not_built(folder, tmp_path, which):
    (folder / "Makefile").write_text("all:\n\ttouch built\n")
    job = trusted("./my_job", folder.parent)
    scenario_mpi_jobs.unpack_sources(job.sources)
    place = Path(job.folder).parent if which == "mpi_jobs" else Path(job.folder)
    place.chmod(0o777)
    with pytest.raises(CapabilityError, match=f"others can write into {place}, where MPI jobs are built"):
        build_mpi_jobs.build_job(job)
    assert not (Path(job.folder) / "built").exists()


def test_trust_on_the_command_line_names_and_remembers_the_job(folder, capsys):
    (folder / "Makefile").write_text("all:\n")
    with ask_for_trust():
        trust_programs()
        build_mpi_jobs.read_job("./my_job", "x", folder.parent)
    digest = trust.read_job_folder(folder).digest
    said = " ".join(capsys.readouterr().err.split())
    assert f"{folder} is trusted from now on, as long as it is the same (SHA-256 {digest})" in said.replace(" /", "/")
    build_mpi_jobs.read_job("./my_job", "x", folder.parent)


def test_who_is_not_at_the_terminal_is_not_asked(folder, monkeypatch):
    """A thread beside a command serves others, as the live page does."""
    (folder / "Makefile").write_text("all:\n")
    monkeypatch.setattr(ask_trust, "messages", SimpleNamespace(is_terminal=True))
    monkeypatch.setattr("sys.stdin", SimpleNamespace(isatty=lambda: pytest.fail("it is asked")))
    with ask_for_trust(), ThreadPoolExecutor(1) as pool:
        assert "you have not said that you trust it" in pool.submit(problems, "./my_job", folder.parent).result()[0]


@needs_make
@pytest.mark.parametrize(
    ("prepare", "message"),
    [
        (lambda folder: (folder / "run.sh").unlink(), "has no program .*run.sh; its Makefile should make it"),
        (lambda folder: (folder / "run.sh").chmod(0o644), "is not executable; chmod"),
        (
            lambda folder: (folder / "Makefile").write_text("all:\n\t@echo 'get it by hand' >&2; exit 1\n"),
            "^the MPI job mine does not build: get it by hand$",
        ),
        (
            lambda folder: (folder / "Makefile").write_text(
                "all: it.c\n\tcc -o run.sh it.c\nit.c:\n\techo '#error oops' >$@\n"
            ),
            "^the MPI job mine does not build: it.c:1:2: error: #error oops",
        ),
        (lambda folder: (folder / "Makefile").write_text("all:\n\t@exit 1\n"), r"does not build: make(\[\d\])?: "),
    ],
)
def test_a_job_that_cannot_be_built_says_why(folder, prepare, message):
    prepare(folder)
    job = trusted("./my_job", folder.parent)
    with pytest.raises(CapabilityError, match=re.compile(message, re.S)):
        build_mpi_jobs.build_job(job)


@needs_make
def test_a_script_needs_no_executable_bit(folder):
    (folder / "run.sh").chmod(0o644)
    (folder / "job.yaml").write_text(GOOD + "interpreter: python\n")
    build_mpi_jobs.build_job(build_mpi_jobs.read_job("./my_job", "x", folder.parent))


@needs_make
def test_imb_says_how_to_get_it(tmp_path):
    shutil.copytree(build_mpi_jobs.FOLDER / "imb", tmp_path / "imb", ignore=shutil.ignore_patterns("build"))
    job = trusted("./imb", tmp_path)
    with pytest.raises(CapabilityError, match="IMB-MPI1 is not here; get it with `make -C mpi_jobs/imb get`"):
        build_mpi_jobs.build_job(job)


@needs_make
def test_hpl_without_network_or_source_says_so(tmp_path, monkeypatch):
    shutil.copytree(build_mpi_jobs.FOLDER / "hpl", tmp_path / "hpl", ignore=shutil.ignore_patterns("build"))
    # An apt-get that fails as one without a network does.
    (tmp_path / "apt-get").write_text("#!/bin/sh\necho 'E: Failed to fetch' >&2\nexit 100\n")
    (tmp_path / "apt-get").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    job = trusted("./hpl", tmp_path)
    with pytest.raises(CapabilityError, match=r"cannot be fetched by apt-get; is there no network\?") as caught:
        build_mpi_jobs.build_job(job)
    assert "E: Failed to fetch" in str(caught.value)
    assert f"Put the file into {job.folder}/build" in str(caught.value)


@needs_make
def test_hpl_takes_no_other_source_than_the_one_it_knows(tmp_path, monkeypatch):
    shutil.copytree(build_mpi_jobs.FOLDER / "hpl", tmp_path / "hpl", ignore=shutil.ignore_patterns("build"))
    (tmp_path / "hpl" / "build").mkdir()
    (tmp_path / "hpl" / "build" / "hpcc_1.5.0.orig.tar.gz").write_bytes(b"something else")
    (tmp_path / "apt-get").write_text("#!/bin/sh\nexit 0\n")
    (tmp_path / "apt-get").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    with pytest.raises(CapabilityError, match="cannot be fetched"):
        build_mpi_jobs.build_job(trusted("./hpl", tmp_path))


def test_a_linker_s_cause_is_told_and_not_only_its_end():
    said = _reason(
        "make: Entering directory 'x'\n/usr/bin/ld: hello.o: in function `main':\n"
        "hello.c:(.text+0x1c): undefined reference to `MPI_Finalise'\ncollect2: error: ld returned 1 exit status\n"
        "make: *** [Makefile:2: hello] Error 1\n"
    )
    assert said.startswith("hello.c:(.text+0x1c): undefined reference to `MPI_Finalise'")
    assert "make" not in said
