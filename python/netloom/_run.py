"""Running a scenario."""

from __future__ import annotations

import os
from typing import Any

from netloom import _netloom
from netloom._error import whole
from netloom._netloom import Scenario
from netloom._outcome import Outcome
from netloom._progress import Progress, RunProgress


def taken(scenario: Any) -> Scenario:
    """The scenario that a caller gives in one of the ways that are taken."""
    if isinstance(scenario, Scenario):
        return scenario
    if isinstance(scenario, dict):
        return Scenario(scenario)
    if isinstance(scenario, (str, os.PathLike)):
        return Scenario.from_file(scenario)
    raise TypeError(
        f"scenario: expected a Scenario, a dict or a file's name, found {type(scenario).__name__}"
    )


def run(
    scenario: Scenario | dict | str | os.PathLike,
    *,
    threads: int = 1,
    out: str | os.PathLike | None = None,
    replace: bool = False,
    progress: Progress = None,
) -> Outcome:
    """Runs a scenario and returns its outcome.

    ``scenario`` is a Scenario, a dict of its fields, or the path of a scenario file. The results do not depend on
    ``threads``. With ``out`` the outcome is also written to that folder, the same bytes as by ``netloom run``; an
    existing outcome is only replaced with ``replace=True``. ``progress`` shows a bar (True; None: in terminals and
    notebooks), or is a function that is called about 20 times a second with a dict of ``time_s`` (simulated seconds),
    ``flows_done``, ``flows`` (how many there will be, if known) and ``packet_hops``.

    Ctrl-C, or an exception of the ``progress`` function, ends the run; with ``out``, the results until then are
    written and marked as interrupted. Raises ScenarioError for mistakes in the scenario, and SimulationError for a
    run that fails.
    """
    threads = whole("threads", threads, 1, 256)
    scenario = taken(scenario)
    shown = RunProgress(progress, str(scenario["name"]))
    try:
        return Outcome(_netloom.run(scenario, threads, out, replace, shown.start))
    finally:
        shown.close()
