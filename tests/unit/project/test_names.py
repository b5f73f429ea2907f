"""The check of names finds each kind of name that it forbids."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[3] / "scripts" / "check_names.py"


def list_problems(root: Path) -> list[str]:
    spec = importlib.util.spec_from_file_location("check_names", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    found: list[str] = module.list_problems(root)
    return found


@pytest.mark.parametrize(
    ("files", "sentence"),
    [
        ({"testbed/base/a.py": "def _told(x): ..."}, "testbed/base/a.py:1: _told says not what it does"),
        (
            {"testbed/base/a.py": "class Row:\n    def gone(self): ..."},
            "testbed/base/a.py:2: gone says not what it does",
        ),
        ({"testbed/base/a.py": "def run():\n    def both(): ..."}, "testbed/base/a.py:2: both says not what it does"),
        (
            {"testbed/base/a.py": "", "testbed/fabric/a.py": "", "controllers/a.py": ""},
            "3 modules are called a.py",
        ),
        (
            {"testbed/base/a.py": "class Row: ...", "testbed/base/b.py": "\nclass Row: ..."},
            "2 classes of base are called",
        ),
        (
            {"testbed/base/a.py": "class _Row: ...", "testbed/base/b.py": "class _Row: ..."},
            "2 classes of base are called _Row",
        ),
        ({"testbed/base/told.py": ""}, "testbed/base/told.py: the module's name says not what it holds"),
        (
            {
                "testbed/base/a.py": "from testbed.base.b import x",
                "testbed/base/b.py": "def run():\n    from . import a",
                "testbed/base/c.py": "import testbed.base.a",
            },
            "testbed.base.a, testbed.base.b import each other in a circle",
        ),
        (
            {"testbed/ui/a.py": "class Outcome: ...", "testbed/base/b.py": "class Outcome: ..."},
            "Outcome is the name of 2",
        ),
        ({"testbed/ui/a.py": f"class {'C' * 61}: ..."}, f"{'C' * 61} has 61 characters; 60 do"),
        ({"tests/unit/test_a.py": f"class Row:\n    async def {'f' * 61}(): ..."}, "tests/unit/test_a.py:2: ffff"),
    ],
)
def test_a_name_that_says_nothing_or_too_much_is_found(files, sentence, tmp_path):
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    (problem,) = list_problems(tmp_path)
    assert sentence in problem


def test_a_name_of_60_characters_is_short_enough(tmp_path):
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "test_a.py").write_text(f"def {'f' * 60}(): ...")
    assert list_problems(tmp_path) == []
