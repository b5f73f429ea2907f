"""What an operation of a lab is: what it is called, who carries it out, and how several machines answer for a whole."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar, get_args

from testbed.base.errors import LabError

if TYPE_CHECKING:
    from testbed.engines.lab.control.running_lab import RunningLab
    from testbed.engines.lab.fabric_part import Part

R = TypeVar("R")
Progress = Callable[[str], None]


@dataclass(frozen=True)
class Operation(ABC, Generic[R]):
    """What a lab can be asked, of which the answer is an R; a subclass with fields is a frozen dataclass.

    The fields, the method that carries it out in the lab, and those by which a fabric over several machines does are
    all of an operation but the method of LabClient that asks for it.

    Class arguments:
        name: by which it is asked for over the lab's socket, and shown while it is carried out.
        concurrent: it is carried out while another one is under way, such as a load.
        in_turn: machines carry it out one after the other.
    """

    name: ClassVar[str] = ""
    concurrent: ClassVar[bool] = False
    in_turn: ClassVar[bool] = False

    def __init_subclass__(cls, *, name: str = "", concurrent: bool = False, in_turn: bool = False) -> None:
        super().__init_subclass__()
        if name:
            cls.name, cls.concurrent, cls.in_turn = name, concurrent, in_turn
            OPERATIONS[name] = cls

    @classmethod
    def answer_type(cls) -> type[R]:
        """The type of its answer."""
        (base,) = cls.__orig_bases__  # type: ignore[attr-defined]
        found: type[R] = get_args(base)[0]
        return found

    @abstractmethod
    def carry_out(self, lab: RunningLab, progress: Progress) -> R:
        """Do it, in process 1 of a lab; `progress` is told the name of each step of a long one."""

    def for_parts(self, parts: Sequence[Part]) -> Sequence[Operation[R]]:
        """What the parts of a fabric over several machines are asked, in their order; further ones are asked nothing.

        Raises:
            LabError: such a fabric cannot do it.
        """
        raise LabError(f"a fabric over several machines cannot carry out: {self.name}")

    def merge(self, parts: Sequence[Part], answers: Sequence[R]) -> R:
        """The answer for the whole of the answers of the parts.

        Raises:
            LabError: parts do not fit each other.
        """
        del parts
        return answers[0]


class PartwiseOperation(Operation[R]):
    """Each part of a fabric over several machines answers for what it has."""

    def for_parts(self, parts: Sequence[Part]) -> Sequence[Operation[R]]:
        """The same for all."""
        return [self] * len(parts)


class ControllerOperation(Operation[R]):
    """The first part of a fabric over several machines, where the controller runs, answers for all."""

    def for_parts(self, parts: Sequence[Part]) -> Sequence[Operation[R]]:
        """Only for the first part."""
        del parts
        return [self]


OPERATIONS: dict[str, type[Operation[Any]]] = {}
