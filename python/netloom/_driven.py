"""Runs that a program drives."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any, NamedTuple

from netloom import _netloom
from netloom._error import whole
from netloom._netloom import Scenario
from netloom._outcome import Outcome
from netloom._run import taken


class Completion(NamedTuple):
    """A flow is complete: its last byte has arrived at its receiver or, if requested, its last ACK at its sender."""

    #: What was given to :meth:`Simulation.start`.
    tag: Any
    src: int
    dst: int
    #: Payload in bytes.
    size: int
    #: When the flow started, in picoseconds.
    start_ps: int
    #: When its last byte, or its last ACK, arrived, in picoseconds.
    time_ps: int
    #: ``"arrived"``, or ``"acknowledged"``.
    event: str = "arrived"

    @property
    def fct_ps(self) -> int:
        """The flow completion time in picoseconds; for the event of the acknowledgement, the time until the sender has the last ACK."""
        return self.time_ps - self.start_ps


class Simulation:
    """A driven run: the program starts flows and receives their completions during the run.

    >>> sim = netloom.Simulation({"topology": {"kind": "fat-tree", "k": 4}})
    >>> sim.start(0, 9, "1MiB", tag="request")
    >>> done = sim.next_completion()
    >>> sim.start(done.dst, done.src, "64KiB", tag="answer")  # at the instant at which the request was complete
    >>> sim.next_completion().fct_ps

    Times are whole picoseconds, or text such as ``"10us"``; sizes are bytes, or text such as ``"64KiB"``. The outcome is, byte
    by byte, that of a run with the same flows in a list. If the scenario has no workload, only the driven flows
    are sent (``idle``); otherwise those of the workload are sent as well.

    Without a *reaction time* the run proceeds event by event, because a flow may start at the same instant as a completion: a
    packet-hop costs many times as much as with :func:`netloom.run`. With one, such as ``reaction="2us"``, no flow that reacts to a
    completion starts earlier than that time after it, and a packet-hop costs little more than with :func:`netloom.run`.
    """

    def __init__(
        self,
        scenario: Scenario | dict | str | os.PathLike,
        *,
        reaction: int | str = 0,
        threads: int = 1,
        acknowledged: bool = False,
    ) -> None:
        """Creates the network of a Scenario, a dict of its fields, or a scenario file; no time has passed yet.

        ``threads`` may be more than 1 with a reaction time. With ``acknowledged`` every flow completes twice: when its last byte has arrived, and when its sender has the
        last ACK.
        """
        reaction, threads = _picoseconds("reaction", reaction), whole("threads", threads, 1, 2**16 - 1)
        self._run = _netloom.Simulation(taken(scenario), reaction, threads, bool(acknowledged))
        self._flows: list[tuple[Any, int, int, int, int]] = []

    @property
    def now_ps(self) -> int:
        """The current simulated time in picoseconds: everything before it has happened."""
        return self._run.now()

    @property
    def earliest_start_ps(self) -> int:
        """The earliest time at which a flow may start, in picoseconds: now or, with a reaction time, that long after the last completion."""
        return self._run.earliest_start()

    def start(
        self,
        src: int,
        dst: int,
        size: int | str,
        tag: Any = None,
        *,
        at: int | str | None = None,
        traffic_class: int = 0,
    ) -> None:
        """Starts a flow of ``size`` bytes from host ``src`` to host ``dst``, at the earliest possible time or later.

        A flow of zero bytes is one packet. A flow from a host to itself does not enter the network: it completes when it starts, and is not in the outcome.

        Where the scenario's ``servers`` have several NICs, ``src`` and ``dst`` are servers, and the flow completes with its last part.

        ``tag`` is returned with the flow's completion.
        """
        src, dst = whole("src", src, 0, 2**32 - 1), whole("dst", dst, 0, 2**32 - 1)
        traffic_class = whole("traffic_class", traffic_class, 0, 255)
        size = _bytes("size", size)
        at = self.earliest_start_ps if at is None else _picoseconds("at", at)
        self._run.start((src, dst), size, at, traffic_class)
        self._flows.append((tag, src, dst, size, at))

    def start_many(self, flows: Iterable[tuple]) -> None:
        """Starts many flows in one call, which takes less time than one call for each: all of them or, on an error, none.

        Each is ``(src, dst, size, tag)``, optionally followed by ``at`` and ``traffic_class``, all as for :meth:`start`; ``at`` may be None.
        """
        now, orders, known = self.earliest_start_ps, [], []
        for place, flow in enumerate(flows):
            src, dst, size, tag, at, traffic_class = _complete(place, flow)
            name = f"flows[{place}]."
            src = whole(name + "src", src, 0, 2**32 - 1)
            dst = whole(name + "dst", dst, 0, 2**32 - 1)
            size = _bytes(name + "size", size)
            at = now if at is None else _picoseconds(name + "at", at)
            orders.append((src, dst, size, at, whole(name + "traffic_class", traffic_class, 0, 255)))
            known.append((tag, src, dst, size, at))
        self._run.start_many(orders)
        self._flows += known

    def run_until(self, time: int | str | None = None) -> None:
        """Handles all events before ``time``; without a time, all events."""
        self._run.run_until(None if time is None else _picoseconds("time", time))

    def next_completion(self, until: int | str | None = None) -> Completion | None:
        """The next completion, in order of time, that has not been returned yet; the run continues up to it if necessary.

        None if there is none before ``until``; then the run has reached ``until``. Without ``until``, None means that
        no events are left.
        """
        found = self._run.next_completion(None if until is None else _picoseconds("until", until))
        if found is None:
            return None
        flow, time, is_acknowledged = found
        tag, src, dst, size, start = self._flows[flow]
        event = "acknowledged" if is_acknowledged else "arrived"
        return Completion(tag, src, dst, size, start, time, event)

    def finish(self) -> Outcome:
        """Ends the run at the current time and returns its outcome."""
        return Outcome(self._run.finish())


def _complete(place: int, flow: tuple) -> tuple:
    """A flow of a list with what it leaves out."""
    if not isinstance(flow, tuple | list) or not 4 <= len(flow) <= 6:
        expected = "(src, dst, size, tag), optionally followed by at and traffic_class"
        raise TypeError(f"flows[{place}]: expected {expected}, found {flow!r}")
    return (*flow, *(None, 0)[len(flow) - 4 :])


def _picoseconds(name: str, time: int | str) -> int:
    return _netloom.Simulation.picoseconds(name, time) if isinstance(time, str) else _whole(name, time)


def _bytes(name: str, size: int | str) -> int:
    return _netloom.Simulation.bytes(name, size) if isinstance(size, str) else _whole(name, size)


def _whole(name: str, number: Any) -> int:
    if not hasattr(number, "__index__"):
        raise TypeError(f"{name}: expected a whole number or text with a unit, found {type(number).__name__}")
    return whole(name, number, 0, 2**64 - 1)
