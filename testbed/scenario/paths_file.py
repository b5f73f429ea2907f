"""`routing: {kind: paths, file: paths.json}`: the file is read here, and the scenario holds the paths."""

from __future__ import annotations

import json
from typing import Any

from testbed.base.errors import Problem
from testbed.base.limits import FABRIC_FILE, parse_json
from testbed.scenario.named_files import ScenarioFolder
from testbed.scenario.parameter_models import format_value

SCHEMA: dict[str, object] = {
    "file": {
        "description": "in place of paths: a JSON file with a list of paths, or with an object that has it as paths, "
        "seen from the scenario",
        "type": "string",
    }
}


def with_paths(routing: object, beside: ScenarioFolder, problems: list[Problem]) -> Any:
    """The keys of a routing block with the paths of its file, if it names one; every problem found is added."""
    if not isinstance(routing, dict) or routing.get("kind") != "paths" or "file" not in routing:
        return routing
    rest = {key: value for key, value in routing.items() if key != "file"}
    if "paths" in routing:
        problems.append(Problem("routing.file", "stands beside paths, which says the same; remove one"))
        return rest
    file = routing["file"]
    found: object = None
    try:
        if not isinstance(file, str):
            raise TypeError(f"should be the name of a file, not {format_value(file)}")
        found = parse_json(beside.read(file, "routing.file", FABRIC_FILE))
        found = found.get("paths") if isinstance(found, dict) else found
        if not isinstance(found, list):
            raise TypeError(f"should have a list of paths, not {format_value(found)}")
    except OSError as error:
        problems.append(Problem("routing.file", f"{file}: cannot be read: {error.strerror}"))
    except json.JSONDecodeError as error:
        problems.append(Problem("routing.file", f"{file}: line {error.lineno}: is not JSON: {error.msg}"))
    except (TypeError, ValueError) as error:
        problems.append(Problem("routing.file", f"{file}: {error}" if isinstance(file, str) else str(error)))
    return {**rest, "paths": found if isinstance(found, list) else []}
