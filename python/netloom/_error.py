"""What can go wrong."""

from __future__ import annotations

import operator
from typing import Any, NamedTuple


class Problem(NamedTuple):
    """One mistake in a scenario, study or argument."""

    #: The file or text it is written in; None for what was set from Python.
    file: str | None
    #: Its line and column in that text, counted from 1.
    line: int | None
    column: int | None
    #: Dotted path of the field, e.g. ``routing.granularity.gap``; empty where no field is to blame.
    field: str
    #: What was expected and what was found.
    message: str
    #: What to do about it, e.g. the nearest valid name.
    help: str | None

    def __str__(self) -> str:
        """The problem as the command line would print it to a file."""
        place = f"{self.file}:{self.line}:{self.column}: " if self.file is not None else ""
        field = f"{self.field}: " if self.field else ""
        help = f" ({self.help})" if self.help else ""
        return f"{place}{field}{self.message}{help}"


class ScenarioError(ValueError):
    """Something is wrong with a scenario, a study or an argument; nothing was run."""

    #: Everything that is wrong, in the order of reading.
    problems: list[Problem]

    def __init__(self, problems: list[tuple]) -> None:
        """Takes the problems as tuples."""
        self.problems = [Problem(*problem) for problem in problems]
        super().__init__("\n".join(map(str, self.problems)))

    def __reduce__(self):
        """Makes the error cross process borders whole."""
        return ScenarioError, ([tuple(problem) for problem in self.problems],)

    @property
    def file(self) -> str | None:
        """The file of the first problem; None if the field was set from Python."""
        return self.problems[0].file

    @property
    def line(self) -> int | None:
        """The line of the first problem, counted from 1."""
        return self.problems[0].line

    @property
    def field(self) -> str:
        """The field of the first problem, e.g. ``routing.preset``."""
        return self.problems[0].field


def refused(field: str, message: str) -> ScenarioError:
    """The error of an argument."""
    return ScenarioError([(None, None, None, field, message, None)])


def whole(field: str, value: Any, least: int, most: int) -> int:
    """An argument that is a whole number within bounds."""
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise TypeError(f"{field}: expected a whole number, found {type(value).__name__}")
    number = operator.index(value)
    if not least <= number <= most:
        raise refused(field, f"expected a whole number from {least} to {most}, found {number}")
    return number


class SimulationError(RuntimeError):
    """A run that failed: a deadlock, a lossless fabric that lost packets, a program that waits for ever."""
