"""Links that change while a load runs: what the fabric is told, when it did it, and that it is undone afterwards."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass

from testbed.base.messages import Disturbance, LinkChange
from testbed.experiments.run.checks.fidelity import Finding, Verdict
from testbed.experiments.run.loads.context import Context, LoadOutcome, LoadResult
from testbed.planning.failover.events import Change


def link_changes(change: Change) -> tuple[LinkChange, ...]:
    """What an event of the action `link` asks for."""
    words = change.event.words
    return tuple(LinkChange(link, words.rate, words.delay, words.loss, words.reset) for link in change.links)


@dataclass(frozen=True, slots=True)
class LinkWatch:
    """The link changes of one load."""

    context: Context  # the load
    changes: Sequence[Change]  # its events, failures among them, in order

    def close(self, result: LoadResult, outcome: LoadOutcome, **labels: str) -> None:
        """Let links be as planned again, and add what happened when, in laboratory seconds after the start."""
        mine = [change for change in self.changes if not change.fails]
        links = sorted({link for change in mine for link in change.links})
        self.context.lab.disturb(Disturbance(up=True, links=tuple(LinkChange(link, reset=True) for link in links)))
        done = [
            (change, done) for change, done in zip(self.changes, result.disturbed, strict=False) if not change.fails
        ]
        findings: list[Finding] = [
            (Verdict.FAIL, f'"{change.event}" could not be carried out: {at.error}') for change, at in done if at.error
        ]
        if len(done) < len(mine):
            findings.append((Verdict.FAIL, f'the load ended before "{mine[len(done)].event}"'))
        outcome.findings += findings
        outcome.changes.append(
            {
                **labels,
                "events": [
                    {
                        "event": str(change.event),
                        "at": at.ended - result.start,
                        "links": list(change.event.targets),
                        **{key: value for key, value in asdict(change.event.words).items() if value},
                    }
                    for change, at in done
                ],
            }
        )
