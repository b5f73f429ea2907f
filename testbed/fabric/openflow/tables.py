"""The pipeline, as data: tables, what each matches, where it may go next, priorities by name.

Fixed, renamed and static assignments forward by VLAN and address, as 802.1Q does; OpenFlow forwarding matches the
in-port and the priority as well. Where links are aggregated, rules speak of a bundle by the port of its first member:
a frame that arrives by another member is taken for one of the first, and the last table finds the member to send by.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

UNTAGGED = -1  # value of `dl_vlan` for a frame without a tag
# Actions that note a frame's source; their value is the ageing time in s, 0 = never. Frames leave a host port untagged.
LEARN_AT_HOST, LEARN_AT_TRUNK = "learn_at_host", "learn_at_trunk"
LEARN_AT_BUNDLE = "learn_at_bundle"  # a learned rule can send by a port and not by a group: it notes the bundle alone
LEARNED = 1 << 63  # cookie of a rule that was learned
LEARN = frozenset({LEARN_AT_HOST, LEARN_AT_TRUNK, LEARN_AT_BUNDLE})


class Priority(IntEnum):
    """The ladder of priorities; a higher rung wins within its table."""

    FLOOD = 100  # group addresses and addresses without an entry: the tree of the VLAN, or the one of broadcasts
    STATIC_ENTRY = 200  # a registered MAC address, or one that was learned
    ADMIT = 300  # frames a port takes in
    BUNDLE = 400  # a frame for a bundle: one of its members
    SAME_BUNDLE = 500  # a frame for the bundle that it came by: dropped
    MEMBER = 600  # a frame that came by a member beside the first: as by the first
    FILTER = 700  # what no switch forwards or learns, and tags without a VLAN
    LLDP = 800  # what tells a controller which ports are joined; it alone gets it


@dataclass(frozen=True, slots=True)
class Table:
    """One table of the pipeline."""

    number: int  # OpenFlow table number
    purpose: str  # what it decides
    match_fields: frozenset[str]  # fields its rules may match
    goto: frozenset[int]  # tables its rules may continue with, or have a frame pass and come back
    miss: str  # what happens to a frame that no rule matches


INGRESS = Table(
    number=0,
    purpose="tag an untagged frame with the PVID; admit tagged frames of the VLANs that the trunk is a member of",
    match_fields=frozenset({"in_port", "dl_vlan", "dl_src", "dl_dst"}),
    goto=frozenset({0, 1, 2}),
    miss="drop (802.1Q ingress filtering)",
)
FORWARDING = Table(
    number=1,
    purpose="static MAC entries of the VLAN, then its tree; a host port sends untagged",
    match_fields=frozenset({"in_port", "dl_vlan", "dl_vlan_pcp", "dl_dst"}),
    goto=frozenset({2}),
    miss="drop",
)
EGRESS = Table(
    number=2,
    purpose="the member of a bundle to send by, never for the bundle that the frame came by; aggregated links only",
    match_fields=frozenset({"bundle", "in_port"}),
    goto=frozenset(),
    miss="drop",
)
TABLES: tuple[Table, ...] = (INGRESS, FORWARDING, EGRESS)
