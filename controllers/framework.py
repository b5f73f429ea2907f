"""os-ken, or Ryu where a machine has that instead: the same names from either."""

from __future__ import annotations

import os
from importlib import import_module
from typing import Any

# os-ken can run on eventlet as well; threads need no patched standard library.
os.environ.setdefault("OSKEN_HUB_TYPE", "native")


def _base() -> str:
    for name in ("os_ken", "ryu"):
        try:
            import_module(name)
        except ModuleNotFoundError:
            continue
        return name
    raise ModuleNotFoundError("neither os_ken nor ryu is installed; run `make setup`, which brings os_ken")


BASE = _base()
# The application manager comes first: the settings of the others register with it.
app_manager: Any = import_module(f"{BASE}.base.app_manager")
cfg: Any = import_module(f"{BASE}.cfg")
ofp_event: Any = import_module(f"{BASE}.controller.ofp_event")
handler: Any = import_module(f"{BASE}.controller.handler")
ofproto_v1_3: Any = import_module(f"{BASE}.ofproto.ofproto_v1_3")

OpenFlowApp: Any = app_manager.OSKenApp if BASE == "os_ken" else app_manager.RyuApp
HANDSHAKE_DISPATCHER = handler.HANDSHAKE_DISPATCHER
MAIN_DISPATCHER = handler.MAIN_DISPATCHER
DEAD_DISPATCHER = handler.DEAD_DISPATCHER
on = handler.set_ev_cls


def _notice_disconnects() -> None:
    """Have a connection end when the switch disconnects.

    os-ken then waits for its sending thread, which with native threads waits for something to send, forever: the
    disconnect would go unnoticed.
    """
    connection: Any = import_module(f"{BASE}.controller.controller").Datapath
    receive = connection._recv_loop

    def receive_and_end(self: Any) -> None:
        try:
            receive(self)
        finally:
            self.close()
            self.send(b"", close_socket=True)

    connection._recv_loop = receive_and_end


if BASE == "os_ken":
    _notice_disconnects()


def run_app(module: str, host: str, port: int, **settings: Any) -> None:
    """Run the application of a module until it is interrupted.

    Args:
        module: its full name; the framework makes the instance.
        host: address to listen at for switches.
        port: TCP port there.
        settings: options that the module has registered with `cfg`, by name.
    """
    import_module(module)
    cfg.CONF(args=[], project=BASE, version="1")
    for name, value in {"ofp_listen_host": host, "ofp_tcp_listen_port": port, **settings}.items():
        cfg.CONF.set_override(name, value)
    app_manager.AppManager.run_apps([module])
