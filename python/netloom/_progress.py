"""Where a run stands, in terminals and notebooks."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from typing import Any

#: What ``progress`` may be: whether to show a bar (None: in terminals and notebooks), or a function that is called
#: about 20 times a second with a dict of ``time_s``, ``flows_done``, ``flows``, ``packet_hops``.
Progress = bool | Callable[[dict[str, Any]], object] | None


def wanted(progress: Progress) -> bool:
    """Whether a bar is to be shown."""
    if progress is None:
        return sys.stderr.isatty() or "ipykernel" in sys.modules
    return bool(progress)


def bar(**options: Any):
    """A bar of tqdm, as a widget where there are widgets."""
    with warnings.catch_warnings():
        # Without widgets tqdm warns and draws text, which is as good.
        warnings.simplefilter("ignore")
        from tqdm.auto import tqdm

        # What is over within a second needs no bar.
        return tqdm(delay=1.0, leave=False, **options)


class RunProgress:
    """Shows one run, or tells a function of it."""

    def __init__(self, progress: Progress, name: str) -> None:
        """Takes the user's wish and what to call the run."""
        self._call = progress if callable(progress) else None
        self._show = self._call is None and wanted(progress)
        self._name = name
        self._bar = None
        self._flows: int | None = None
        self._until: float | None = None

    @property
    def start(self):
        """What a run is to call when it starts; None if nobody wants to know."""
        return self._start if self._show or self._call else None

    def _start(self, flows: int | None, until: float | None):
        self._flows, self._until = flows, until
        if self._show:
            # Flows where their number is known, simulated microseconds else.
            total, unit = (flows, " flows") if flows is not None else (until and until * 1e6, " us")
            self._bar = bar(desc=self._name, total=total, unit=unit)
        return self._update

    def _update(self, time: float, flows_done: int, packet_hops: int) -> None:
        if self._call:
            self._call(
                {"time_s": time, "flows_done": flows_done, "flows": self._flows, "packet_hops": packet_hops}
            )
        elif self._bar is not None:
            done = flows_done if self._flows is not None else time * 1e6
            self._bar.set_postfix_str(
                f"{time * 1e3:.3g} ms simulated, {packet_hops:.3g} packet-hops", refresh=False
            )
            self._bar.update(done - self._bar.n)

    def close(self) -> None:
        """Takes the bar away."""
        if self._bar is not None:
            self._bar.close()
