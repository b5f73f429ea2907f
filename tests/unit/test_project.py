"""What the project says of itself in several places is the same."""

from __future__ import annotations

import re
from pathlib import Path

from testbed import __version__

ROOT = Path(__file__).parents[2]


def test_the_version_is_the_newest_release_of_the_changelog():
    released = re.findall(r"^## \[(\d[^]]*)\] - \d{4}-\d\d-\d\d$", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert released[0] == __version__
