"""Studies: a grid of cells, run here or on a Dask cluster, and what came out."""

from __future__ import annotations

import json
import os
import re
import warnings
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from netloom import _netloom
from netloom._error import whole
from netloom._netloom import Scenario, Table
from netloom._plot import StudyPlots
from netloom._progress import Progress, bar, wanted

#: A value of an axis: the fields that it sets, by their dotted paths.
Case = Mapping[str, Any]


class Study:
    """A scenario, lists of values to vary, and claims about the results.

    >>> study = netloom.Study(
    ...     "Schemes",
    ...     netloom.Scenario({"topology": {"kind": "fat-tree", "k": 4}}),
    ...     axes={
    ...         "scheme": {"ecmp": {"routing.preset": "ecmp"}, "flowcut": {"routing.preset": "flowcut-nic"}},
    ...         "size": ("workload.size", ["64KiB", "1MiB"]),
    ...     },
    ...     repetitions=3,
    ... )
    >>> study.run()
    >>> study.frame().to_pandas()

    Every combination of the axes is run with every seed; one run is a cell. Finished cells are not run again, so a
    study that was stopped continues where it stopped.
    """

    def __init__(
        self,
        title: str,
        scenario: Scenario | dict | str | os.PathLike,
        axes: Mapping[str, Mapping[str, Case] | tuple[str, Sequence[Any]]] | None = None,
        *,
        repetitions: int = 1,
        claims: Iterable[Mapping[str, Any]] = (),
        max_cells: int | None = None,
    ) -> None:
        """Creates a study from its parts.

        ``axes`` has per axis either cases (label → fields to set) or a field with its values. ``repetitions`` is the number of
        seeds: the scenario's, then the following ones. ``claims`` are dicts as the ``[[claims]]`` of a study file.
        """
        if not isinstance(scenario, (Scenario, Mapping)):
            scenario = Scenario.from_file(scenario)
        fields: dict[str, Any] = {"title": title, "scenario": scenario, "repetitions": repetitions}
        fields["axis"] = [_axis(name, values) for name, values in (axes or {}).items()]
        fields["claims"] = [dict(claim) for claim in claims]
        if max_cells is not None:
            fields["max_cells"] = max_cells
        self._take(_netloom.Study.from_dict(fields), _plain(title))

    @classmethod
    def from_file(cls, file: str | os.PathLike, *, small: bool = False, full: bool = False) -> Study:
        """Reads a study file; with ``small`` or ``full``, the changes of its ``[small]`` or ``[full]`` table are made."""
        file = Path(file)
        parent = file.parent.name
        name = f"{parent}-{file.stem}" if parent else file.stem
        study = cls.__new__(cls)
        inner = _netloom.Study.from_file(file, small, full)
        study._take(inner, name + ("-small" if small else "-full" if full else ""))
        return study

    def _take(self, inner: _netloom.Study, name: str) -> None:
        self._inner = inner
        self._default = Path("runs") / name
        self._folder: Path | None = None
        self._claims: list[dict[str, Any]] = []

    @property
    def title(self) -> str:
        """What the study is about."""
        return self._inner.title

    @property
    def axes(self) -> list[str]:
        """The names of the axes."""
        return self._inner.axes

    @property
    def warnings(self) -> list[str]:
        """Probable mistakes, each in one sentence with the points that it concerns.

        These are fields that a point's kinds do not have, and warnings that are known before the runs; :meth:`run` repeats them.
        """
        return self._inner.warnings

    @property
    def folder(self) -> Path | None:
        """The folder of the results, once the study was run or opened."""
        return self._folder

    def __len__(self) -> int:
        """Number of cells."""
        return len(self._inner.cells())

    def cells(self) -> list[dict[str, Any]]:
        """Every cell: its labels by axis, and its ``seed``."""
        return [{**dict(labels), "seed": seed} for labels, seed, _ in self._inner.cells()]

    def open(self, out: str | os.PathLike | None = None) -> int:
        """Sets the folder of the results and reads the results in it; returns the number of cells that are done.

        By default the folder is that of the command line: ``runs/`` and the study's name.
        """
        folder = Path(out) if out is not None else self._default
        done = self._inner.open(folder)
        self._folder = folder.absolute()
        return done

    def run(
        self,
        out: str | os.PathLike | None = None,
        *,
        workers: int | None = None,
        shard: tuple[int, int] | None = None,
        client: Any = None,
        progress: Progress = None,
    ) -> Study:
        """Runs the cells that are not done yet, and checks the claims.

        ``workers`` cells run at a time (as many as there are processors), each on one thread. ``shard=(i, n)`` runs the i-th of n parts.
        ``client`` is a Dask client: cells are then tasks of its cluster, those with the most work first; workers need
        this package but no shared file system. If cells fail, raises RuntimeError after all others. Returns the study.
        """
        workers = (os.cpu_count() or 1) if workers is None else whole("workers", workers, 1, 256)
        if shard is not None:
            if not (isinstance(shard, tuple) and len(shard) == 2):
                raise TypeError(
                    f"shard: expected the part and how many there are, such as (1, 4), found {shard!r}"
                )
            shard = tuple(whole("shard", number, 0, 2**32 - 1) for number in shard)
        if client is not None and not hasattr(client, "submit"):
            raise TypeError(
                f"client: expected a Dask client, distributed.Client(address), found {type(client).__name__}"
            )
        if self._folder is None or out is not None:
            self.open(out)
        for warning in self.warnings:
            warnings.warn(warning, stacklevel=2)
        count = len(self)
        shown = bar(desc=self.title, total=count, unit=" cells") if wanted(progress) else None
        done = 0

        def ended() -> None:
            nonlocal done
            done += 1
            if shown is not None:
                shown.update(1)
            if callable(progress):
                progress({"done": done, "cells": count})

        try:
            if client is not None:
                if shard is not None:
                    raise ValueError("a cluster runs all cells: give either `client` or `shard`")
                from netloom._dask import run_cells

                run_cells(self._inner, client, ended)
            else:
                self._inner.run(workers, shard, ended)
        finally:
            if shown is not None:
                shown.close()
        self._claims = json.loads(self._inner.judge())
        if failures := self._inner.failures():
            names = self._inner.cells()
            lines = [f"{names[cell][2]} (seed {names[cell][1]}): {message}" for cell, message in failures]
            raise RuntimeError(f"{len(lines)} of {count} cells failed\n" + "\n".join(lines))
        return self

    @property
    def claims(self) -> list[dict[str, Any]]:
        """The claims with the measured values: ``id``, ``text``, ``verdict``, ``mean_holds``, ``level``, ``measured``, ``published``, …

        ``verdict`` is ``"holds"``, ``"does-not-hold"``, ``"cannot-be-told"`` where the 95% interval over the seeds allows both, or
        ``"not-computed"``; ``holds`` is True, False, None and None then. ``needs`` says what a gate uses: ``"interval"`` or ``"mean"``.
        """
        return self._claims

    def frame(self) -> Table:
        """One row per cell that is done: its labels, its ``seed``, its ``folder``, and every number of its summary.

        It is the table of ``results.parquet``; times of the summary are in microseconds there, and columns have their units.
        """
        return self._opened().frame()

    def flows(self) -> Table:
        """The flows of all cells that are done, with the cells' labels and seeds before their own columns."""
        return self._opened().table("flows")

    def table(self, name: str) -> Table:
        """The same for any other table of an outcome, by the name that it has there, such as ``links``."""
        return self._opened().table(name)

    def _opened(self) -> _netloom.Study:
        if self._folder is None:
            self.open()
        return self._inner

    @property
    def plot(self) -> StudyPlots:
        """Pictures of the results; they need matplotlib."""
        return StudyPlots(self)

    def __repr__(self) -> str:
        """The study's title and size."""
        return f"netloom.Study({self.title!r}: {len(self)} cells along {', '.join(self.axes) or 'no axis'})"


def _axis(name: str, values: Any) -> dict[str, Any]:
    if isinstance(values, Mapping):
        cases = [{"label": str(label), "set": dict(fields)} for label, fields in values.items()]
        return {"name": name, "cases": cases}
    if isinstance(values, tuple) and len(values) == 2 and isinstance(values[0], str):
        field, choices = values
        return {"name": name, "field": field, "values": list(choices)}
    raise TypeError(f"axis {name}: expected a dict of cases, or a field with its values, found {values!r}")


def _plain(title: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-") or "study"
