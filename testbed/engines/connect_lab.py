"""Talk to a lab that runs, whichever engine built it."""

from __future__ import annotations

from testbed.base.errors import CapabilityError
from testbed.engines.lab.control.client import LabClient
from testbed.engines.lab.control.launch import NOT_YOURS, Namespaces
from testbed.engines.lab.hosts.interface_names import MODEL


def connect(namespaces: Namespaces) -> LabClient:
    """The client of a lab that runs, whatever its switches are.

    Raises:
        CapabilityError: it is another user's.
        LabError: the lab does not answer.
    """
    try:
        modelled = (namespaces.socket.parent / MODEL).exists()
    except PermissionError as error:
        raise CapabilityError(NOT_YOURS) from error
    if modelled:
        from testbed.engines.realtime.client import ModelClient  # noqa: PLC0415 - others need no numba

        return ModelClient(namespaces)
    return LabClient(namespaces)
