"""Find a scenario; text to raw blocks: YAML with a stricter reading of keys, and the settings of the command line."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import yaml

from testbed.base.errors import InputError, Problem, did_you_mean, setting
from testbed.base.limits import DEPTH, YAML, YAML_VALUES, scaled_limit, too_much
from testbed.base.resources import find_part
from testbed.scenario.parameter_models import format_value

_DIGITS = 9  # of the number of a list's entry
_SHOWN = 80


def shorten_text(text: str) -> str:
    """A text that a message quotes, without the middle of a very long one."""
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN // 2]}…{text[-_SHOWN // 4 :]}"


_HALVES = re.compile("[\ud800-\udfff]")


_NUMBERS = ("tag:yaml.org,2002:int", "tag:yaml.org,2002:float")
_LONGEST_NUMBER = 4300  # characters; Python takes no more digits, and a sum of sixties takes ever longer


class _Loader(yaml.SafeLoader):
    """Safe loader that refuses a key given twice, instead of silently losing the first, and what goes beyond limits.

    An alias counts as all that it stands for, since whoever follows what was read meets that many.
    """

    def __init__(self, stream: str) -> None:
        super().__init__(stream)
        self._values = self._depth = 0
        self._extents: dict[str, int] = {}  # anchor → values that an alias of it stands for

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
        """A value, counted."""
        event = self.peek_event()  # type: ignore[no-untyped-call]
        if self.check_event(yaml.AliasEvent):
            if event.anchor in self.anchors and event.anchor not in self._extents:
                self._refuse("an alias stands for a block that it is in itself", event)
            self._count(self._extents.get(event.anchor, 1), event)
            return super().compose_node(parent, index)
        before = self._values
        self._count(1, event)
        self._depth += 1
        most = scaled_limit(DEPTH)
        if self._depth > most:
            self._refuse(f"blocks are nested too deeply: {most} in each other are the most that is read", event)
        node = super().compose_node(parent, index)
        self._depth -= 1
        if event.anchor is not None:
            self._extents[event.anchor] = self._values - before
        return node

    def _count(self, values: int, event: yaml.Event) -> None:
        self._values += values
        most = scaled_limit(YAML_VALUES)
        if self._values > most:
            found = "here the text has come to more values than are read, each alias counted as all that it stands for"
            self._refuse(f"{too_much(found, most, 'values')}; a large fabric belongs into a file of its own", event)

    def _refuse(self, sentence: str, event: yaml.Event) -> None:
        raise yaml.constructor.ConstructorError(None, None, sentence, event.start_mark)  # type: ignore[arg-type]

    def construct_scalar(self, node: yaml.ScalarNode | yaml.MappingNode) -> Any:
        """A text whose escapes are characters; those of JSON may come in halves, two a character."""
        value: Any = super().construct_scalar(node)
        if node.tag in _NUMBERS and len(value) > _LONGEST_NUMBER:
            raise ValueError(f"a number has {len(value):,} characters")
        if not isinstance(value, str) or not _HALVES.search(value):
            return value
        try:
            return value.encode("utf-16", "surrogatepass").decode("utf-16")
        except UnicodeDecodeError as error:
            raise yaml.constructor.ConstructorError(
                None, None, "an escape is half a character; write the character itself", node.start_mark
            ) from error


def _mapping(loader: _Loader, node: yaml.MappingNode) -> dict[Any, Any]:
    seen: set[Any] = set()
    for key_node, _ in node.value:
        key = key_node.value
        if key_node.tag != "tag:yaml.org,2002:str":
            text = f'key "{key}"' if isinstance(key, str) else "a key"
            raise yaml.constructor.ConstructorError(
                None, None, f"{text} is not text; put it in quotes", key_node.start_mark
            )
        if key in seen:
            raise yaml.constructor.ConstructorError(
                None, None, f'key "{key}" is listed twice; remove one', key_node.start_mark
            )
        seen.add(key)
    return yaml.SafeLoader.construct_mapping(loader, node, deep=True)


_Loader.add_constructor(yaml.resolver.BaseResolver.DEFAULT_MAPPING_TAG, _mapping)
# PyYAML follows YAML 1.1, where 1e3 is text; everyone else reads a number.
_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:float",
    re.compile(r"[-+]?([0-9]+(\.[0-9]*)?|\.[0-9]+)[eE][-+]?[0-9]+$"),
    list("-+.0123456789"),
)


def read_blocks(text: str, source: str, settings: Iterable[str]) -> tuple[dict[str, object], list[Problem]]:
    """Return the blocks of a scenario text with settings carried out, and what was wrong with the settings.

    Raises:
        InputError: the text is not YAML, or is not a block of keys.
    """
    raw = read_value(text, source)
    if not isinstance(raw, dict):
        wanted = "should be a block of keys such as topology: and workloads:"
        raise InputError.one(source, f"{wanted}, not {format_value(raw)}")
    problems: list[Problem] = []
    for given in settings:
        try:
            _set(raw, given)
        except InputError as error:
            problems += error.problems
    return raw, problems


def read_value(text: str, place: str) -> Any:
    """What a text of YAML says.

    Raises:
        InputError: it is not YAML; `place` says where it stands.
    """
    most = scaled_limit(YAML)
    if len(text) > most:
        sentence = too_much(f"has {len(text):,} characters", most, "of YAML")
        raise InputError.one(place, f"{sentence}; a large fabric belongs into a file of its own")
    try:
        return yaml.load(text, Loader=_Loader)
    except yaml.MarkedYAMLError as error:
        problem = error.problem or "not YAML"
        if "'\\t'" in problem:
            problem = "a tab; YAML indents with spaces"
        if problem == "mapping values are not allowed here":
            problem = (
                'a second ": " in one line; put a text that contains one in quotes, and each key into a line of its own'
            )
        elif "but found '<block" in problem:
            problem = "is indented otherwise than the lines above; keys of one block begin in the same column"
        elif problem.startswith("but "):
            problem = f"{error.context}, {problem}"
        mark = error.problem_mark
        line = f"line {mark.line + 1}, column {mark.column + 1}: " if mark else ""
        raise InputError.one(place, line + problem) from error
    except yaml.reader.ReaderError as error:
        sentence = f"character {error.position + 1} is U+{error.character:04X}, which YAML does not allow"
        raise InputError.one(place, sentence) from error
    except RecursionError as error:
        raise InputError.one(place, "blocks are nested too deeply") from error
    except (ValueError, IndexError, KeyError, AttributeError, OverflowError) as error:
        # An impossible date, a number of no digits or of thousands; what does not look like what its tag says.
        reason: object = error
        if isinstance(error, IndexError):
            reason = "a number has no digits"
        elif isinstance(error, (KeyError, AttributeError)):
            reason = "it is not what its tag says, such as !!bool"
        sentence = f"a value cannot be read: {reason}; text that looks like a date or a number needs quotes"
        raise InputError.one(place, sentence) from error


def _set(raw: dict[str, object], given: str) -> None:
    """Carry out one `key.key=value`; a number in place of a key counts the entries of a list from 0."""
    path, separator, text = given.partition("=")
    keys = path.strip().split(".")
    if not separator or not all(keys):
        raise InputError.one(setting(""), f'"{given}" should look like lab.dilation=50')
    value = read_value(text, setting(path))
    block: Any = raw
    if len(keys) > 1 and keys[0] in ("topology", "routing", "assignment") and isinstance(raw.get(keys[0]), str):
        raw[keys[0]] = {"kind": raw[keys[0]]}  # as `routing: dor` means
    for depth, key in enumerate(keys):
        where = ".".join(keys[:depth])
        index: Any = key
        if isinstance(block, list):
            if not key.isdecimal() or len(key) > _DIGITS or int(key) >= len(block):
                sentence = f'{where} has no entry "{shorten_text(key)}"; it has {len(block)}, counted from 0'
                raise InputError.one(setting(shorten_text(path)), sentence)
            index = int(key)
        elif not isinstance(block, dict):
            raise InputError.one(setting(path), f"{where} is {format_value(block)}, which has no keys")
        if depth == len(keys) - 1:
            block[index] = value
        elif isinstance(block, dict) and block.get(key) is None:
            block[key] = {}
        block = block[index]


_BESIDE_PACKAGE = find_part("scenarios")


def scenario_folders() -> tuple[Path, ...]:
    """Folders searched for names: `scenarios/` here, then the one of the testbed itself."""
    here = Path("scenarios").resolve()
    return (here,) if here == _BESIDE_PACKAGE else (here, _BESIDE_PACKAGE)


def scenario_names() -> dict[str, Path]:
    """Every name that can be given, with its file."""
    found: dict[str, Path] = {}
    for folder in reversed(scenario_folders()):
        found.update({file.stem: file for file in sorted(folder.glob("*.yaml"))})
    return dict(sorted(found.items()))


def _suggest_file(file: Path) -> str:
    """A file beside the one that is not there, or a scenario of nearly its name; not just any that is least unlike."""
    beside = [other.name for other in file.parent.glob("*.y*ml")] if file.parent.is_dir() else []
    return did_you_mean(file.name, beside, _NEAR_FILE) or did_you_mean(file.stem, scenario_names(), _NEAR_FILE)


_NEAR_FILE = 0.75  # as a name of a file is rarely mistyped by more than a letter or two


def find_scenario(name: str) -> Path:
    """Return the file of a scenario given as a file or as a name in `scenarios/`.

    Raises:
        InputError: there is none; suggests the nearest name.
    """
    if name.endswith((".yaml", ".yml")) or "/" in name:
        file = Path(name)
        try:
            if file.stat():
                return file
        except FileNotFoundError:
            pass
        except OSError as error:
            raise InputError.one(shorten_text(name), f"cannot be read: {error.strerror}") from error
        raise InputError.one(name, f"no such file.{_suggest_file(file)}")
    names = scenario_names()
    if name in names:
        return names[name]
    known = f" Known: {', '.join(names)}." if names else " There is no scenarios/ folder here."
    raise InputError.one(name, f"no scenario of that name.{did_you_mean(name, names)}{known}")
