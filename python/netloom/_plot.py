"""Pictures of outcomes, by matplotlib."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from netloom._netloom import Table
    from netloom._outcome import Outcome

#: Axis labels of what can be drawn.
LABELS = {"slowdown": "slowdown", "fct": "flow completion time [us]"}


def _axes(ax: Axes | None) -> Axes:
    if ax is not None:
        return ax
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError("pictures need matplotlib: pip install 'netloom[plot]'") from error
    return plt.subplots(figsize=(6, 4), layout="constrained")[1]


def _values(flows: Table, metric: str) -> np.ndarray:
    """The metric of every flow, NaN where it did not complete."""
    if metric == "fct":
        return flows["fct_ps"] / 1e6
    if metric == "slowdown":
        return flows["fct_ps"] / flows["idle_fct_ps"]
    raise ValueError(f"metric: expected `slowdown` or `fct`, found {metric!r}")


def _cdf(ax: Axes, values: np.ndarray, label: str | None) -> None:
    values = np.sort(values[~np.isnan(values)])
    ax.step(values, np.arange(1, len(values) + 1) / max(len(values), 1), where="post", label=label)


def _finish_cdf(ax: Axes, metric: str) -> Axes:
    ax.set(xscale="log", xlabel=LABELS[metric], ylabel="share of flows", ylim=(0, 1))
    ax.grid(alpha=0.3)
    if ax.get_legend_handles_labels()[0]:
        ax.legend()
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
