"""From VLAN intent to OpenFlow rules, and an oracle that follows a frame through them."""
