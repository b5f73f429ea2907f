from __future__ import annotations

import re

import pytest

from testbed.base import errors
from testbed.base.errors import InputError, Problem, TestbedError, did_you_mean


def test_the_tree_in_the_docstring_is_the_tree_of_the_classes():
    drawn = re.findall(r"^[│ ├└─]*(\w+Error) .*exit (\d)$", errors.__doc__ or "", re.MULTILINE)
    classes = {
        name: value
        for name, value in vars(errors).items()
        if isinstance(value, type) and issubclass(value, TestbedError)
    }
    assert {name: int(code) for name, code in drawn} == {name: c.exit_code for name, c in classes.items()}


def test_an_input_error_shows_every_problem():
    error = InputError([Problem("lab.dilation", "is wrong"), Problem("", "so is this")])
    assert str(error) == "lab.dilation: is wrong\nso is this"
    assert InputError.one("a", "b").problems == (Problem("a", "b"),)


@pytest.mark.parametrize(
    ("word", "hint"),
    [
        ("tours", ' Did you mean "torus"?'),
        ("TORUS", ' Did you mean "torus"?'),
        ("torsu", ' Did you mean "torus"?'),
        ("mehs", ' Did you mean "mesh"?'),
        ("xyzzy", ""),
        ("", ""),
    ],
)
def test_did_you_mean(word, hint):
    assert did_you_mean(word, ["mesh", "torus", "ring"]) == hint


def test_did_you_mean_ignores_case_of_what_is_known_too():
    assert did_you_mean("pc5342", ["PC5324", "PC6248"]) == ' Did you mean "PC5324"?'
