"""The lab: the only package that touches the machine.

`launch` and `client` run on the user's side; `agent` and what it imports run as process 1 inside the lab's own
PID, network, mount and UTS namespaces, and import neither planner nor numpy so that a lab starts at once.
"""
