"""Pictures of outcomes and studies, by matplotlib."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis

    from netloom._netloom import Table
    from netloom._outcome import Outcome
    from netloom._study import Study

#: Axis labels of what can be drawn.
LABELS = {"slowdown": "slowdown (FCT / ideal FCT)", "fct": "flow completion time [us]"}

#: Units that pictures have instead of those of tables, and what numbers are multiplied by.
UNITS = {"bit/s": ("Gbit/s", 1e-9), "B": ("kB", 1e-3), "1": ("", 1.0)}


def _axes(ax: Axes | None) -> Axes:
    if ax is not None:
        return ax
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError("pictures need matplotlib: pip install 'netloom[plot]'") from error
    return plt.subplots(figsize=(6, 4), layout="constrained")[1]


def _plain_ticks(axis: Axis) -> None:
    """Numbers in full, where matplotlib writes powers of ten; between those, too, where an axis has fewer than three."""
    from matplotlib.ticker import FuncFormatter, LogLocator

    formatter = FuncFormatter(lambda value, _: f"{value:,.10g}" if value < 1e15 else f"{value:g}")
    axis.set_major_formatter(formatter)
    if axis.get_scale() == "log":
        low, high = sorted(axis.get_view_interval())
        steps = (
            (1.0,)
            if high > 1000 * low
            else (1.0, 2.0, 5.0)
            if high > 5 * low
            else tuple(np.arange(1, 10, 0.5))
        )
        axis.set_major_locator(LogLocator(subs=steps, numticks=8))
        axis.set_minor_formatter(FuncFormatter(lambda *_: ""))


def _legend(ax: Axes, title: str | None = None) -> None:
    """Keys beside the curves, where they hide none."""
    if len(ax.get_legend_handles_labels()[0]) > 0:
        ax.legend(loc="upper left", bbox_to_anchor=(1.01, 1.0), borderaxespad=0.0, frameon=False, title=title)


def _values(flows: Table, metric: str) -> np.ndarray:
    """The metric of every flow, NaN where it did not complete."""
    if metric == "fct":
        return flows["fct_ps"] / 1e6
    if metric == "slowdown":
        return flows["fct_ps"] / flows["ideal_fct_ps"]
    raise ValueError(f"metric: expected `slowdown` or `fct`, found {metric!r}")


def _cdf(ax: Axes, values: np.ndarray, label: str | None) -> None:
    values = np.sort(values[~np.isnan(values)])
    ax.step(values, np.arange(1, len(values) + 1) / max(len(values), 1), where="post", label=label)


def _finish_cdf(ax: Axes, metric: str) -> Axes:
    ax.set(xscale="log", xlabel=LABELS[metric], ylabel="share of flows", ylim=(0, 1))
    ax.grid(alpha=0.3)
    _plain_ticks(ax.xaxis)
    _legend(ax)
    return ax


class OutcomePlots:
    """Pictures of one run."""

    def __init__(self, outcome: Outcome) -> None:
        """Takes the outcome."""
        self._outcome = outcome

    def cdf(self, metric: str = "slowdown", *, ax: Axes | None = None, label: str | None = None) -> Axes:
        """The distribution function of the flows' ``slowdown`` or ``fct`` (in microseconds)."""
        ax = _axes(ax)
        _cdf(ax, _values(self._outcome.flows, metric), label)
        return _finish_cdf(ax, metric)


class StudyPlots:
    """Pictures of a study: one line per combination of labels, over all seeds."""

    def __init__(self, study: Study) -> None:
        """Takes the study."""
        self._study = study

    def _groups(self, axis: str | None) -> tuple[Table, dict[str, np.ndarray]]:
        """The flows, and which of them belong to each label, in order of their first cells."""
        flows, axes = self._study.flows(), self._study.axes
        if axis is not None and axis not in axes:
            raise ValueError(f"axis: expected one of {', '.join(axes)}, found {axis!r}")
        chosen = axes if axis is None else [axis]
        columns = [flows[name].astype(str) for name in chosen]
        names = columns[0] if columns else np.full(len(flows), "all")
        for column in columns[1:]:
            names = np.char.add(np.char.add(names.astype(str), " "), column.astype(str))
        labels = list(dict.fromkeys(names.tolist()))
        return flows, {label: names == label for label in labels}

    def cdf(self, metric: str = "slowdown", *, axis: str | None = None, ax: Axes | None = None) -> Axes:
        """Distribution functions of the flows' ``slowdown`` or ``fct`` (in microseconds), by label of an axis or of all."""
        ax = _axes(ax)
        flows, groups = self._groups(axis)
        values = _values(flows, metric)
        for label, rows in groups.items():
            _cdf(ax, values[rows], label)
        return _finish_cdf(ax, metric)

    def slowdown_by_size(
        self, quantile: float = 0.99, *, axis: str | None = None, bins: int = 12, ax: Axes | None = None
    ) -> Axes:
        """A quantile of the slowdown over the flows' size, in bins with the same number of flows."""
        ax = _axes(ax)
        flows, groups = self._groups(axis)
        slowdown, size = _values(flows, "slowdown"), flows["bytes"].astype(float)
        for label, rows in groups.items():
            rows = rows & ~np.isnan(slowdown)
            x, y = _by_size(size[rows], slowdown[rows], quantile, bins)
            ax.plot(x, y, marker="o", markersize=3, label=label)
        ax.set(xscale="log", yscale="log", xlabel="flow size [B]", ylabel=f"slowdown p{100 * quantile:g}")
        ax.grid(alpha=0.3)
        _plain_ticks(ax.xaxis)
        _plain_ticks(ax.yaxis)
        _legend(ax)
        return ax

    def bars(self, metric: str = "slowdown.p99", *, axis: str | None = None, ax: Axes | None = None) -> Axes:
        """A number of the summary by label: the mean over the seeds, with error bars from the smallest to the largest of them.

        The label has the unit; rates are drawn in Gbit/s and sizes in kB.
        """
        ax = _axes(ax)
        frame, axes = self._study.frame(), self._study.axes
        chosen = axes if axis is None else [axis]
        unit = frame.units.get(metric, "1")
        unit, factor = UNITS.get(unit, (unit, 1.0))
        values = frame[metric] * factor
        rows: dict[str, list[float]] = {}
        for place, value in enumerate(values):
            rows.setdefault(" ".join(str(frame[name][place]) for name in chosen) or "all", []).append(value)
        mean: list[Any] = [np.mean(found) for found in rows.values()]
        low = [m - min(found) for m, found in zip(mean, rows.values(), strict=True)]
        high = [max(found) - m for m, found in zip(mean, rows.values(), strict=True)]
        ax.bar(list(rows), mean, yerr=[low, high], capsize=3)
        ax.set_ylabel(f"{metric} [{unit}]" if unit else metric)
        _plain_ticks(ax.yaxis)
        if any(len(found) > 1 for found in rows.values()):
            seeds = max(len(found) for found in rows.values())
            ax.set_title(
                f"mean of {seeds} seeds; error bars: least and largest", fontsize="small", loc="left"
            )
        return ax


def _by_size(size: np.ndarray, slowdown: np.ndarray, quantile: float, bins: int) -> tuple[list, list]:
    order = np.argsort(size, kind="stable")
    size, slowdown = size[order], slowdown[order]
    # Flows of one size stay together.
    edges = np.unique(
        np.searchsorted(size, np.quantile(size, np.linspace(0, 1, bins + 1)[1:-1]), side="right")
    )
    parts = [part for part in np.split(np.arange(len(size)), edges) if len(part)] if len(size) else []
    return [size[part].mean() for part in parts], [np.quantile(slowdown[part], quantile) for part in parts]
