"""Templates of pages, each of which needs nothing beside itself."""

from __future__ import annotations

import functools
import importlib.resources
from typing import TYPE_CHECKING

from testbed.base.untrusted_text import escape_controls
from testbed.experiments.report.palette import declarations

if TYPE_CHECKING:
    from jinja2 import Template


@functools.cache
def template(package: str, file: str) -> Template:
    """A template in a package. It can extend `base.html` of this one, which is what all pages have."""
    from jinja2 import Environment, FunctionLoader, StrictUndefined  # noqa: PLC0415 - only a page needs it

    def base(name: str) -> str:
        return _text("testbed.experiments.report", name)

    page = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True, loader=FunctionLoader(base),
        finalize=lambda value: escape_controls(value) if type(value) is str else value,
    )  # fmt: skip
    page.globals.update(light=declarations(dark=False), dark=declarations(dark=True))
    return page.from_string(_text(package, file))


def _text(package: str, file: str) -> str:
    return importlib.resources.files(package).joinpath(file).read_text(encoding="utf-8")
