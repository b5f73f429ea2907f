"""Values that go to another process together with the plug-ins whose classes are in them."""

from __future__ import annotations

import pickle
from dataclasses import dataclass
from typing import Any

from testbed.base.trust import PluginFile
from testbed.scenario.plugins import load_installed, loaded_files, take_file
from testbed.scenario.spec import Scenario


@dataclass(frozen=True, slots=True, eq=False)
class Pickled:
    """A value that is only unpickled where its plug-ins have been loaded.

    Whoever carries it, such as Dask's scheduler, handles bytes, and needs nothing of a plug-in. Plug-ins come as the
    bytes that run in this program, so what a worker runs is what was trusted here, and nobody is asked again.
    """

    plugins: tuple[PluginFile, ...]  # loaded before anything is unpickled
    content: bytes  # the pickle
    buffers: tuple[bytearray, ...]  # its arrays, which the value shares, so that they are in memory once

    def load(self) -> Any:
        """The value, once its kinds are in the tables of this process.

        Raises:
            InputError: a plug-in does not run here.
        """
        load_installed()
        for file in self.plugins:
            take_file(file)
        return pickle.loads(self.content, buffers=self.buffers)


def pickle_value(value: object, scenario: Scenario) -> Pickled:
    """A value that holds the scenario, or what was planned from it, for another process."""
    buffers: list[pickle.PickleBuffer] = []
    content = pickle.dumps(value, protocol=5, buffer_callback=buffers.append)
    return Pickled(loaded_files(scenario.plugins), content, tuple(bytearray(one.raw()) for one in buffers))
