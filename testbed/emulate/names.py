"""Names inside a lab that both the planner's side and the agent use."""


def port_interface(switch: str, port: int) -> str:
    """Name of the interface of a switch port."""
    return f"{switch}-eth{port}"


# In the folder of a lab whose controller installs the rules: its plan.
PLAN = "plan.json"
