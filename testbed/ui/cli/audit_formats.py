"""An audit in the forms that other programs read: JUnit and SARIF."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING
from xml.etree import ElementTree

from testbed.base.untrusted_text import escape_line
from testbed.base.version import __version__

if TYPE_CHECKING:
    from testbed.devices.audit import Audit, Finding

_SARIF = "https://json.schemastore.org/sarif-2.1.0.json"
# Kinds of findings, with what each says; a test case of JUnit each, so that one that passes is shown, too.
KINDS = {
    "doubt": "nothing contradicts itself",
    "loop": "no VLAN loops",
    "cut": "frames of every pair arrive",
    "copies": "frames arrive once",
    "leak": "hosts of different VLANs stay apart",
    "broadcast": "broadcasts reach every host once",
    "multicast": "multicasts arrive once",
    "deadlock": "links that pause cannot deadlock",
}


def format_junit(place: str, found: Audit) -> str:
    """A test suite: a case for each kind of finding, one that something was audited, one that all was understood."""
    cases: dict[str, list[str]] = {f"{kind}: {what}": [] for kind, what in KINDS.items()}
    for finding in found.findings:
        cases[f"{finding.kind}: {KINDS[finding.kind]}"].append(str(finding))
    cases["audited: frames were followed"] = [found.why_not_audited] if found.why_not_audited else []
    cases["understood: every line that may decide where frames go"] = list(found.network.unclear)
    failures = sum(bool(wrong) for wrong in cases.values())
    suite = ElementTree.Element("testsuite", name=escape_line(place), tests=str(len(cases)), failures=str(failures))
    for name, wrong in cases.items():
        case = ElementTree.SubElement(suite, "testcase", classname="audit", name=name)
        if wrong:
            failure = ElementTree.SubElement(case, "failure", message=escape_line(wrong[0])[:200])
            failure.text = "\n".join(map(escape_line, wrong))
    return ElementTree.tostring(suite, encoding="unicode")


def format_sarif(place: str, found: Audit) -> str:
    """Results of static analysis, as code hosts show them; each leads to the file of the switch that it is about."""
    rules = [{"id": kind, "shortDescription": {"text": what}} for kind, what in KINDS.items()]
    rules.append({"id": "not-understood", "shortDescription": {"text": "every line is understood"}})
    results = [_result(place, finding) for finding in found.findings]
    for sentence in [*found.network.unclear, *([found.why_not_audited] if found.why_not_audited else [])]:
        level = "error" if sentence == found.why_not_audited else "warning"
        results.append({"ruleId": "not-understood", "level": level, "message": {"text": escape_line(sentence)}})
    driver = {"name": "testbed audit", "version": __version__, "rules": rules}
    return json.dumps(
        {"$schema": _SARIF, "version": "2.1.0", "runs": [{"tool": {"driver": driver}, "results": results}]},
        indent=2,
        ensure_ascii=True,
    )


def _result(place: str, finding: Finding) -> dict[str, object]:
    where = [
        {"physicalLocation": {"artifactLocation": {"uri": place}}, "logicalLocations": [{"name": escape_line(one)}]}
        for one in (finding.witness[:1] or ("",))
    ]
    return {
        "ruleId": finding.kind,
        "level": "error",
        "message": {"text": escape_line(str(finding))},
        "locations": where,
    }
