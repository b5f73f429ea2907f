"""Kinds of changes that make a certificate false, or a plan one that says more than the checker understands.

A kind is a function of a plan with its certificate and a generator of random numbers; it gives both with one thing
changed, or None where the plan has nothing of the sort.
"""

from __future__ import annotations

import re
from random import Random

from benchmarks.fuzz_certificate_claims import CLAIMS, UNCHANGED, Changed, Kind
from benchmarks.fuzz_certificate_plans import Base

_DST = r"dl_dst=[0-9a-f:]+"
_OUT = r"output:\d+"


def _of_rule(pattern: str, instead: str, *more: str) -> Kind:
    """A rule that frames meet, with a pattern's first place replaced, and more rules in its switch.

    In the texts stand {out} for the port that the rule sends by, {other} for another one, {arrival} for the one that
    frames come by, {dst} for the address they go to, {rule} for the rule as it was, {match} for its match, and groups
    of the pattern as in re.
    """

    def change(base: Base, draw: Random) -> Changed | None:
        start = draw.randrange(len(base.met)) if base.met else 0
        for switch, number, frame in base.met[start:] + base.met[:start]:
            rule = base.plan["rules"][switch][number]
            found = re.search(pattern, rule)
            out = re.search(_OUT, rule)
            others = [port for port in base.ports[switch] if port != frame[0] and out and port != int(out[0][7:])]
            if found is None or ("{other}" in instead + "".join(more) and not others):
                continue
            words = {
                "out": out[0][7:] if out else "1", "other": str(draw.choice(others or [1])), "arrival": str(frame[0]),
                "dst": frame[4], "rule": rule, "match": rule.partition(",actions=")[0],
            }  # fmt: skip
            text = rule[: found.start()] + found.expand(_filled(instead, words)) + rule[found.end() :]
            rules = list(base.plan["rules"][switch])
            rules[number : number + 1] = [text] if instead != "{gone}" else []
            return base.with_rules(switch, rules + [_filled(one, words) for one in more])
        return None

    return change


def _filled(text: str, words: dict[str, str]) -> str:
    """A text with words in their places; braces of regular expressions do not occur in it."""
    for key, word in words.items():
        text = text.replace(f"{{{key}}}", word)
    return text


def _of_group(pattern: str, instead: str) -> Kind:
    """A group with a pattern replaced wherever it is, or None where it is not; {other} is another group's number."""

    def change(base: Base, draw: Random) -> Changed | None:
        switches = [number for number, groups in enumerate(base.plan["groups"]) if groups]
        if not switches:
            return None
        switch = draw.choice(switches)
        groups = list(base.plan["groups"][switch])
        place = draw.randrange(len(groups))
        numbers = [re.search(r"\d+", one)[0] for one in groups]  # type: ignore[index]
        ports = re.findall(_OUT, groups[place])
        elsewhere = [port for port in base.ports[switch] if f"output:{port}" not in ports]
        words = {"other": numbers[place - 1], "elsewhere": str(draw.choice(elsewhere or [1])), "group": groups[place]}
        text, count = re.subn(pattern, _filled(instead, words), groups[place], count=1)
        if not count:
            return None
        groups[place : place + 1] = text.split("\n") if text else []
        return base.with_groups(switch, groups)

    return change


_NOTHING = "table=9,priority=1,actions=drop"
_RULES: dict[str, Kind] = {
    # tags
    "a second tag where frames enter": _of_rule("push_vlan:0x8100", "push_vlan:0x8100,push_vlan:0x8100"),
    "a second tag on the way": _of_rule(f"actions=({_OUT})", r"actions=push_vlan:0x8100,set_field:4106->vlan_vid,\1"),
    "a second tag below a resubmit": _of_rule(
        f"actions=({_OUT})", r"actions=resubmit(,9),\1", "table=9,priority=1,dl_vlan=10,actions=push_vlan:0x8100",
        "table=9,priority=2,vlan_tci=0x0000/0x1fff,actions=push_vlan:0x8100"),
    "a provider's tag": _of_rule("push_vlan:0x8100", "push_vlan:0x88a8"),
    "no tag where frames enter": _of_rule(r"push_vlan:0x8100,set_field:\d+->vlan_vid,", ""),
    "a tag left on": _of_rule("pop_vlan,", ""),
    "a tag taken off twice": _of_rule("pop_vlan", "pop_vlan,pop_vlan"),
    "a tag taken off on the way": _of_rule(
        rf"dl_vlan=(\d+),({_DST}),actions=output", r"dl_vlan=\1,\2,actions=pop_vlan,output"),
    "a tag taken off below a resubmit": _of_rule(
        f"actions=({_OUT})", r"actions=resubmit(,9),\1", "table=9,priority=1,actions=pop_vlan"),
    "a tag taken off below a resubmit, by its match": _of_rule(
        rf"dl_vlan=(\d+),({_DST}),actions=output", r"dl_vlan=\1,\2,actions=resubmit(,9),output",
        *(f"table=9,priority=1,dl_vlan={vlan},actions=pop_vlan" for vlan in range(10, 40))),
    "another VLAN where frames enter": _of_rule(r"set_field:\d+->vlan_vid", "set_field:4999->vlan_vid"),
    "another VLAN on the way": _of_rule(f"actions=({_OUT})", r"actions=set_field:4999->vlan_vid,\1"),
    "a VLAN without the bit of presence": _of_rule(r"set_field:\d+->vlan_vid", "set_field:10->vlan_vid"),
    "a VLAN out of range": _of_rule(r"set_field:\d+->vlan_vid", "set_field:8192->vlan_vid"),
    "another PCP": _of_rule(f"({_OUT})", r"set_field:3->vlan_pcp,\1"),
    "another PCP where it is set": _of_rule(r"set_field:\d->vlan_pcp", "set_field:5->vlan_pcp"),
    "a PCP out of range": _of_rule(f"({_OUT})", r"set_field:8->vlan_pcp,\1"),
    "a VLAN by an old action": _of_rule(r"set_field:\d+->vlan_vid", "mod_vlan_vid:99"),
    "a tag taken off by an old action": _of_rule("pop_vlan", "strip_vlan"),
    "a tag overwritten bit by bit": _of_rule(f"({_OUT})", r"load:0->NXM_OF_VLAN_TCI[],\1"),
    # ports
    "another port": _of_rule(_OUT, "output:{other}"),
    "a port twice": _of_rule(f"({_OUT})", r"\1,\1"),
    "another port as well": _of_rule(f"({_OUT})", r"\1,output:{other}"),
    "another port before": _of_rule(f"({_OUT})", r"output:{other},\1"),
    "a port that is not there": _of_rule(_OUT, "output:77"),
    "a port that is not there as well": _of_rule(f"({_OUT})", r"\1,output:77"),
    "the port of arrival": _of_rule(_OUT, "output:{arrival}"),
    "the port of arrival as well": _of_rule(f"({_OUT})", r"\1,IN_PORT"),
    "the port of arrival by number": _of_rule(f"({_OUT})", r"\1,output:65528"),
    "the port of arrival, by another name of it": _of_rule(
        f"actions=(.*{_OUT})", r"actions=set_field:{out}->in_port,\1"),
    "NORMAL": _of_rule(_OUT, "NORMAL"),
    "output:NORMAL": _of_rule(_OUT, "output:NORMAL"),
    "FLOOD": _of_rule(_OUT, "FLOOD"),
    "ALL": _of_rule(_OUT, "ALL"),
    "all ports, by number": _of_rule(_OUT, "output:65532"),
    "LOCAL as well": _of_rule(f"({_OUT})", r"\1,LOCAL"),
    "a controller": _of_rule(_OUT, "CONTROLLER:65535"),
    "a controller as well": _of_rule(f"({_OUT})", r"\1,controller(max_len=64)"),
    "an octal port": _of_rule(r"output:(\d+)", r"output:0\1"),
    "a hexadecimal port": _of_rule(r"output:(\d+)", r"output:0x\1"),
    "a port in a field": _of_rule(_OUT, "output:NXM_NX_REG0[]"),
    "a port with a queue": _of_rule(r"output:(\d+)", r"enqueue:\1:0"),
    "a port that cuts frames": _of_rule(r"output:(\d+)", r"output(port=\1,max_len=64)"),
    "a port in letters of another script": _of_rule(_OUT, "output:\u0662"),
    "a port by name": _of_rule(_OUT, "output:s1-eth2"),
    "nothing": _of_rule("actions=.*", "actions=drop"),
    "no action": _of_rule("actions=.*", "actions="),
    "drop beside a port": _of_rule(f"({_OUT})", r"\1,drop"),
    "a comma at the end": _of_rule(f"({_OUT})$", r"\1,"),
    # tables
    "a table that is not there": _of_rule(r"goto_table:\d+", "goto_table:8"),
    "the same table for ever": _of_rule(r"goto_table:\d+", "goto_table:0"),
    "a table before": _of_rule(f"actions=.*{_OUT}", "actions=goto_table:0"),
    "a table out of range": _of_rule(r"goto_table:\d+", "goto_table:300"),
    "an action behind goto_table": _of_rule(r"(goto_table:\d+)", r"\1,output:{arrival}"),
    "a table twice": _of_rule(r"(goto_table:(\d+))", r"resubmit(,\2),\1"),
    "a table that copies": _of_rule(f"({_OUT})", r"resubmit(,9),\1", "table=9,priority=1,actions=output:{other}"),
    "a table that sends, and drop behind it": _of_rule(
        _OUT, "resubmit(,9),drop", "table=9,priority=1,actions=output:{out}"),
    "a table that names another port of arrival": _of_rule(
        f"({_OUT})", r"resubmit(,9),\1", "table=9,priority=1,actions=set_field:{out}->in_port"),
    "a table that sets a register": _of_rule(
        r"(set_field:\S+->reg0),(resubmit\(,2\))", r"\1,resubmit(,9),\2",
        "table=9,priority=1,actions=set_field:0x63->reg0"),
    "a table that asks itself": _of_rule(f"({_OUT})", r"resubmit(,9),\1", "table=9,priority=1,actions=resubmit(,9)"),
    "tables that ask each other": _of_rule(
        f"({_OUT})", r"resubmit(,9),\1", "table=9,priority=1,actions=resubmit(,10)",
        "table=10,priority=1,actions=resubmit(,9)"),
    "resubmit with a port": _of_rule(f"({_OUT})", r"resubmit({out},9),\1", "table=9,priority=1,actions=output:{other}"),
    "resubmit to a port": _of_rule(f"({_OUT})", r"resubmit:{out},\1"),
    "resubmit with a connection": _of_rule(f"({_OUT})", r"resubmit(,9,ct),\1", _NOTHING),
    # priorities
    "a rule above that drops": _of_rule("^", "", "table=1,priority=60000,dl_dst={dst},actions=drop"),
    "a rule above by the port of arrival": _of_rule("^", "", "table=0,priority=60000,in_port={arrival},actions=drop"),
    "a rule above for all": _of_rule("^", "", "table=0,priority=60000,actions=output:{arrival}"),
    "a rule above that sends elsewhere": _of_rule(
        _OUT, r"\g<0>", "table=1,priority=60000,dl_dst={dst},actions=output:{other}"),
    "an overlap of one priority": _of_rule("^", "", "table=1,priority=200,dl_dst={dst},actions=drop"),
    "a rule twice": _of_rule("^", "", "{rule}"),
    "a rule again that drops": _of_rule("^", "", "{match},actions=drop"),
    "a rule lower than others": _of_rule(r"priority=\d+", "priority=1"),
    "no rule": _of_rule(".*", "{gone}"),
    # matches
    "another port of arrival": _of_rule(r"in_port=\d+", "in_port=77"),
    "another VLAN": _of_rule(r"dl_vlan=\d+", "dl_vlan=999"),
    "a VLAN out of range in a match": _of_rule(r"dl_vlan=\d+", "dl_vlan=5000"),
    "no tag by a number": _of_rule("vlan_tci=0x0000/0x1fff", "dl_vlan=0xffff"),
    "no tag by another mask": _of_rule("vlan_tci=0x0000/0x1fff", "vlan_tci=0x1000/0x1000"),
    "another address": _of_rule(_DST, "dl_dst=02:00:00:00:99:99"),
    "an address in capitals": _of_rule(_DST, "dl_dst=0A:00:00:00:00:01"),
    "an address in short": _of_rule(_DST, "dl_dst=2:0:0:0:0:1"),
    "a whole mask": _of_rule("^", "", "table=1,priority=60000,dl_dst={dst}/ff:ff:ff:ff:ff:ff,actions=drop"),
    "half a mask": _of_rule("^", "", "table=1,priority=60000,dl_dst=02:00:00:00:00:00/ff:ff:ff:ff:ff:00,actions=drop"),
    "a mask of nothing": _of_rule(
        "^", "", "table=0,priority=60000,dl_src=00:00:00:00:00:00/00:00:00:00:00:00,actions=drop"),
    "one sender": _of_rule(",actions", ",dl_src=02:00:00:00:00:77,actions"),
    "senders by a mask": _of_rule(
        "^", "", "table=0,priority=60000,dl_src=02:00:00:00:00:00/ff:ff:00:00:00:00,actions=drop"),
    "one protocol": _of_rule(",actions", ",dl_type=0x0806,actions"),
    "one protocol in short": _of_rule(",actions", ",icmp,actions"),
    "one address of IP": _of_rule(",actions", ",ip,nw_dst=10.0.0.1,actions"),
    "one port of TCP": _of_rule(",actions", ",tcp,tp_dst=80,actions"),
    "one PCP": _of_rule(r"dl_vlan=(\d+)", r"dl_vlan=\1,dl_vlan_pcp=6"),
    "a PCP in a match out of range": _of_rule(r"dl_vlan=(\d+)", r"dl_vlan=\1,dl_vlan_pcp=9"),
    "a register": _of_rule(",actions", ",reg0=0x7,actions"),
    "another register": _of_rule(",actions", ",reg1=0x1,actions"),
    "metadata": _of_rule(",actions", ",metadata=0x1,actions"),
    "a tunnel": _of_rule(",actions", ",tun_id=0x1,actions"),
    "a state of connections": _of_rule(",actions", ",ct_state=+trk,actions"),
    "a conjunction": _of_rule("^", "", "table=1,priority=60000,conj_id=1,actions=drop"),
    "a field twice": _of_rule(r"dl_vlan=(\d+)", r"dl_vlan=\1,dl_vlan=4"),
    "an address twice": _of_rule(f"({_DST})", r"\1,\1"),
    "a table told twice": _of_rule(r"table=\d+", r"\g<0>,table=7"),
    "no priority told": _of_rule(r"priority=\d+,", ""),
    "a priority out of range": _of_rule(r"priority=\d+", "priority=65536"),
    "a table that is all of them": _of_rule(r"table=\d+", "table=255"),
    "a number in another script": _of_rule(r"dl_vlan=(\d)(\d*)", "dl_vlan=\u0661\\2"),
    "a number with an underscore": _of_rule(r"priority=(\d)(\d+)", r"priority=\1_\2"),
    "blanks": _of_rule(",actions", ", actions"),
    "a rule that goes idle": _of_rule("table=", "idle_timeout=5,table="),
    "a rule that ends": _of_rule(",actions", ",hard_timeout=60,actions"),
    "a rule that tells of its end": _of_rule(",actions", ",send_flow_rem,actions"),
    "a rule that checks overlaps": _of_rule(",actions", ",check_overlap,actions"),
    "a rule that may be thrown out": _of_rule(",actions", ",importance=1,actions"),
    "a cookie": _of_rule("table=", "cookie=0x5,table="),
    # instructions
    "a meter": _of_rule("actions=", "actions=meter:1,"),
    "actions for later": _of_rule(f"actions=.*{_OUT}", "actions=write_actions(output:{other})"),
    "actions forgotten": _of_rule("actions=", "actions=clear_actions,"),
    "metadata written": _of_rule(r"goto_table", "write_metadata:0x1,goto_table"),
    "learning": _of_rule(
        "actions=",
        "actions=learn(table=1,priority=60000,NXM_OF_ETH_DST[]=NXM_OF_ETH_SRC[],output:NXM_OF_IN_PORT[]),"),
    "a note": _of_rule("actions=", "actions=note:00.01,"),
    "a copy of the frame": _of_rule("actions=", "actions=clone(output:{arrival}),"),
    "a connection": _of_rule("actions=", "actions=ct(table=9),"),
    "a link by hash": _of_rule(_OUT, "bundle(eth_src,0,hrw,ofport,members:1,2)"),
    "a TTL less": _of_rule("actions=", "actions=dec_ttl,"),
    "another destination": _of_rule("actions=", "actions=mod_dl_dst:02:00:00:00:00:09,"),
    "another destination, by a field": _of_rule("actions=", "actions=set_field:02:00:00:00:00:09->eth_dst,"),
    "exit": _of_rule("actions=", "actions=exit,"),
    "a queue": _of_rule("actions=", "actions=set_queue:1,"),
    "a stack": _of_rule("actions=", "actions=push:NXM_NX_REG0[],"),
    "a frame truncated": _of_rule("actions=", "actions=truncate(20),"),
    "an action that is none": _of_rule("actions=", "actions=teleport:3,"),
    "a group that is not there": _of_rule(_OUT, "group:66"),
    "another group": _of_rule(r"group:\d+", "group:66"),
}  # fmt: skip
_SELECT = r"type=select,selection_method=hash,fields\([a-z_,]+\)"
_GROUPS: dict[str, Kind] = {
    "a group of all buckets": _of_group("type=select", "type=all"),
    "a group of all buckets without a hash": _of_group(_SELECT, "type=all"),
    "a group of one bucket": _of_group(_SELECT, "type=indirect"),
    "a group of the first alive": _of_group(_SELECT, "type=fast_failover"),
    "a group of another method": _of_group("selection_method=hash", "selection_method=dp_hash"),
    "a group of no type": _of_group("type=select,", ""),
    "a group with a property": _of_group("type=select", "type=select,selection_method_param=5"),
    "a bucket that sends twice": _of_group(f"({_OUT})", r"\1,\1"),
    "a bucket that sends elsewhere as well": _of_group(f"({_OUT})", r"\1,output:{elsewhere}"),
    "a bucket that leads elsewhere": _of_group(_OUT, "output:{elsewhere}"),
    "a bucket that leads elsewhere, as it watches": _of_group(
        r"watch_port:\d+,actions=output:\d+", "watch_port:{elsewhere},actions=output:{elsewhere}"),
    "a bucket more that leads elsewhere": _of_group(
        "$", ",bucket=bucket_id:9,watch_port:{elsewhere},actions=output:{elsewhere}"),
    "a bucket that drops": _of_group(_OUT, "drop"),
    "a bucket without actions": _of_group(_OUT, ""),
    "a bucket that takes the tag off": _of_group(f"({_OUT})", r"pop_vlan,\1"),
    "a bucket that tags": _of_group(f"({_OUT})", r"push_vlan:0x8100,\1"),
    "a bucket that asks a table": _of_group(_OUT, "resubmit(,0)"),
    "a bucket that asks a group": _of_group(_OUT, "group:{other}"),
    "a bucket by which nobody goes": _of_group("(bucket_id:0)", r"\1,weight:0"),
    "a bucket that weighs more": _of_group("(bucket_id:0)", r"\1,weight:5"),
    "a bucket that watches another port": _of_group(r"watch_port:\d+", "watch_port:{elsewhere}"),
    "a bucket that watches a port that is not there": _of_group(r"watch_port:\d+", "watch_port:77"),
    "a bucket that watches a group": _of_group(r"watch_port:\d+", "watch_group:{other}"),
    "a bucket to the port of arrival": _of_group(_OUT, "IN_PORT"),
    "two buckets of one number": _of_group("bucket_id:1", "bucket_id:0"),
    "no bucket": _of_group(",bucket=.*", ""),
    "no group": _of_group(".*", ""),
    "a group twice": _of_group("^", "{group}\n"),
    "a group by another number": _of_group(r"group_id=\d+", "group_id=66"),
    "a hash of other fields": _of_group(r"fields\([a-z_,]+\)", "fields(eth_dst)"),
}  # fmt: skip


def _bucket_of_arrival(base: Base, draw: Random) -> Changed | None:
    """A bucket that sends by a port by which frames come that meet the group."""
    met = [
        (switch, frame) for switch, number, frame in base.met if "actions=group:" in base.plan["rules"][switch][number]
    ]
    if not met:
        return None
    switch, frame = draw.choice(met)
    groups = [
        one + f",bucket=bucket_id:9,watch_port:{frame[0]},actions=output:{frame[0]}"
        for one in base.plan["groups"][switch]
    ]
    return base.with_groups(switch, groups)


KINDS: dict[str, Kind] = {
    **_RULES, **_GROUPS, "a bucket more to the port of arrival": _bucket_of_arrival, **CLAIMS, **UNCHANGED,
}  # fmt: skip
SAME = frozenset(UNCHANGED)  # kinds that leave a certificate true, and which must pass
# Kinds that a switch takes for what was there before, or which make nothing false of these plans: they may pass or not.
EQUAL = frozenset(
    {
        "a provider's tag", "a tag taken off twice", "a tag taken off by an old action", "LOCAL as well",
        "a port that is not there as well", "an octal port", "a hexadecimal port", "a comma at the end", "a rule twice",
        "no tag by a number", "an address twice", "no priority told", "blanks", "a rule that tells of its end",
        "a rule that checks overlaps", "a cookie", "a group of one bucket", "a group of the first alive",
        "a group of another method", "a bucket by which nobody goes", "a bucket that weighs more",
        "a bucket that watches another port", "a bucket that watches a port that is not there",
        "two buckets of one number", "a hash of other fields",
    }
)  # fmt: skip
