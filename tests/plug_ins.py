"""Plug-ins that tests have brought into the tables of their process."""

from __future__ import annotations

from testbed.scenario import plugins


def forget_plugins() -> None:
    """Take what plug-ins have brought out of the tables, also what scenarios of other tests have."""
    for origin in {owner.origin for owner in plugins._OWNERS.values()}:
        plugins.forget(origin)
    plugins._BROKEN.clear()
