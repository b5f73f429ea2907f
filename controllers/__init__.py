"""OpenFlow controllers: they load a plan, install it on connecting switches and carry it over to the next.

They decide nothing that the planner decides. Each runs by `python -m controllers NAME`, on os-ken, or on Ryu where that
is installed instead. In the wheel this package is `testbed.controllers`, so that nothing of a name as general as this
one is installed; for that its modules import each other by relative names.
"""
