"""What a run gave."""

from __future__ import annotations

import json
import os
from functools import cached_property
from pathlib import Path
from typing import Any

from netloom import _netloom
from netloom._netloom import Scenario, Table
from netloom._plot import OutcomePlots


class Summary(dict):
    """The summary of a run: a dict as in ``summary.json``.

    Times are in picoseconds (``fct_ps``), rates in bit/s, sizes in bytes.
    """

    def metrics(self) -> dict[str, float]:
        """Every number by its dotted path, e.g. ``slowdown.p99``; bins of sizes are named by their upper ends."""
        return dict(_numbers(self, ""))

    def table(self) -> Table:
        """The numbers as a table of one row."""
        return Table._from_columns([(name, [value], _unit(name)) for name, value in self.metrics().items()])


def _numbers(value: Any, path: str):
    if isinstance(value, bool) or value is None or isinstance(value, str):
        return
    if isinstance(value, (int, float)):
        yield path, value
    elif isinstance(value, dict):
        for name, part in value.items():
            yield from _numbers(part, f"{path}.{name}" if path else name)
    elif isinstance(value, list):
        for index, part in enumerate(value):
            end = part.get("up_to_bytes", index) if isinstance(part, dict) else index
            name = part.get("tier") if isinstance(part, dict) and "tier" in part else end
            yield from _numbers(part, f"{path}.{'larger' if name is None else name}")


def _unit(path: str) -> str | None:
    for part in reversed(path.split(".")):
        for end, unit in (("_ps", "ps"), ("_bps", "bit/s"), ("_bytes", "B")):
            if part.endswith(end):
                return None if path.endswith(".count") else unit
    return None


class Outcome:
    """The results of a run: tables of flows, links, series and windows, and a summary.

    The tables are Arrow tables: polars, pandas, pyarrow and DuckDB take them as they are, without a copy. Their columns are
    those of the outcome folder's Parquet files; a table of what was not measured has no rows.
    """

    def __init__(self, inner: _netloom.Outcome) -> None:
        """Takes the native outcome; use :func:`netloom.run` or :meth:`read`."""
        self._inner = inner

    @classmethod
    def read(cls, folder: str | os.PathLike) -> Outcome:
        """Reads an outcome folder."""
        return cls(_netloom.Outcome.read(folder))

    @cached_property
    def flows(self) -> Table:
        """One row per flow that started; per message, where servers have several NICs."""
        return self._inner.table("flows")

    @cached_property
    def parts(self) -> Table:
        """One row per message and rail; without rows unless ``servers`` have several NICs."""
        return self._inner.table("parts")

    @cached_property
    def links(self) -> Table:
        """One row per channel (direction of a link)."""
        return self._inner.table("links")

    @cached_property
    def series(self) -> Table:
        """One row per sample of a channel; without rows unless ``measure.sample`` is set."""
        return self._inner.table("series")

    @cached_property
    def flow_series(self) -> Table:
        """One row per sample of a flow; without rows unless ``measure.sample_flows`` is set."""
        return self._inner.table("flow_series")

    @cached_property
    def sender_series(self) -> Table:
        """One row per sample of a flow's sender: window, rate, RTT and what it learnt; without rows unless ``measure.sample_senders`` is set."""
        return self._inner.table("sender_series")

    @cached_property
    def gaps(self) -> Table:
        """One row per flow and length of the gaps between its departures; without rows unless ``measure.gaps`` is set."""
        return self._inner.table("gaps")

    @cached_property
    def switch_gaps(self) -> Table:
        """The same at the flow's first switch; without rows unless ``measure.switch_gaps`` is set."""
        return self._inner.table("switch_gaps")

    @cached_property
    def flowlets(self) -> Table:
        """One row per flow and switch that distinguishes its flowlets; with ``measure.switch_gaps`` every switch does."""
        return self._inner.table("flowlets")

    @cached_property
    def windows(self) -> Table:
        """One row per window and flow that delivered something in it; without rows unless ``measure.windows`` is set."""
        return self._inner.table("windows")

    @cached_property
    def packets(self) -> Table:
        """One row per flow, on the latency and hops of its packets; without rows unless ``measure.packets`` is set."""
        return self._inner.table("packets")

    @cached_property
    def latency(self) -> Table:
        """The histogram of packet latencies; without rows unless ``measure.packets`` is set."""
        return self._inner.table("latency")

    @cached_property
    def trace(self) -> Table:
        """One row per packet and channel that was traced; without rows unless ``measure.trace`` is set."""
        return self._inner.table("trace")

    @cached_property
    def jobs(self) -> Table:
        """One row per job and repetition; without rows where the run had neither jobs nor programs."""
        return self._inner.table("jobs")

    @cached_property
    def ranks(self) -> Table:
        """What every rank of a job did in every repetition: computation, exposed communication, waiting."""
        return self._inner.table("ranks")

    @cached_property
    def collectives(self) -> Table:
        """One row per collective operation of a job, with its bandwidths as NCCL-tests define them."""
        return self._inner.table("collectives")

    @cached_property
    def activities(self) -> Table:
        """What ranks did when; without rows unless ``measure.activities`` is set."""
        return self._inner.table("activities")

    @cached_property
    def operations(self) -> Table:
        """What became of each operation of a program; without rows unless ``measure.operations`` is set."""
        return self._inner.table("operations")

    @cached_property
    def summary(self) -> Summary:
        """Percentiles, counts and totals, as in ``summary.json``."""
        return Summary(json.loads(self._inner.summary))

    @cached_property
    def performance(self) -> dict[str, Any]:
        """The cost of the run: wall time, threads, packet-hops per second, peak memory."""
        return json.loads(self._inner.performance)

    @property
    def scenario(self) -> Scenario:
        """The scenario of the run, with every default filled in."""
        return Scenario.from_toml(self._inner.scenario, "scenario.toml")

    @property
    def folder(self) -> Path | None:
        """The outcome folder, if the outcome was written to or read from one."""
        return None if self._inner.folder is None else Path(self._inner.folder)

    @property
    def plot(self) -> OutcomePlots:
        """Pictures of the outcome; they need matplotlib."""
        return OutcomePlots(self)

    def __repr__(self) -> str:
        """What was run, and how many flows it had."""
        place = "in memory" if self.folder is None else f"in {self.folder}"
        return f"netloom.Outcome of {self.scenario['name']!r}, {len(self.flows)} flows, {place}"
