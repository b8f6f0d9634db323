"""Networks: what they consist of, which paths they offer, how much they carry."""

from __future__ import annotations

import json
import os
import tempfile
from functools import cached_property
from typing import Any

import numpy as np

from netloom import _netloom
from netloom._error import whole
from netloom._inputs import demand_lines
from netloom._netloom import Scenario, Table


class Topology:
    """A network of hosts, switches and full-duplex links.

    Hosts are the nodes ``0`` to ``hosts - 1``, switches the nodes after them. Switch-to-switch analysis numbers the switches
    from 0.
    """

    def __init__(self, inner: _netloom.Topology) -> None:
        """Takes the native network; use :func:`netloom.topology`."""
        self._inner = inner

    @property
    def name(self) -> str:
        """A readable name of the network."""
        return self._inner.name

    @property
    def hosts(self) -> int:
        """Number of hosts."""
        return self._inner.hosts

    @property
    def switches(self) -> int:
        """Number of switches."""
        return self._inner.switches

    @cached_property
    def links(self) -> Table:
        """One row per cable: its ends ``a`` and ``b`` (nodes), ``rate_bps``, ``latency_ps``, ``tier``.

        ``links["a"]`` is a NumPy array.
        """
        return self._inner.links()

    @cached_property
    def switch_table(self) -> Table:
        """One row per switch: its ``node``, its ``level`` in a tree (0 elsewhere), its ``pod`` or group."""
        return self._inner.switches_table()

    @cached_property
    def node_names(self) -> list[str]:
        """The nodes' names in exports and scenarios: ``h0``, ``h1``, … and ``s0``, ``s1``, …."""
        return self._inner.node_names()

    @cached_property
    def _described(self) -> tuple[dict[str, Any], dict[str, Any]]:
        metrics, cost = self._inner.metrics()
        return json.loads(metrics), json.loads(cost)

    @property
    def metrics(self) -> dict[str, Any]:
        """Size, radix, distances in hops, bisection in bit/s, as by ``netloom topology --json``."""
        return self._described[0]

    @property
    def cost(self) -> dict[str, Any]:
        """Dollars and watts by the published cost model."""
        return self._described[1]

    def adjacency(self) -> np.ndarray:
        """Links between switches as a matrix of counts, switches numbered from 0."""
        a, b = (self.links[end].astype(np.int64) - self.hosts for end in ("a", "b"))
        inner = (a >= 0) & (b >= 0)
        matrix = np.zeros((self.switches, self.switches), dtype=np.int32)
        np.add.at(matrix, (a[inner], b[inner]), 1)
        return matrix + matrix.T

    def to_networkx(self):
        """The network as a NetworkX graph (a multigraph where nodes have parallel links).

        Nodes have their names and ``kind`` (``host`` or ``switch``), switches also ``level`` and ``pod``; links have
        ``rate_bps``, ``latency_ps``, ``tier``. ``netloom.network`` accepts the graph again.
        """
        import networkx

        names, links, switches = self.node_names, self.links, self.switch_table
        ends = set(zip(links["a"].tolist(), links["b"].tolist(), strict=True))
        graph = networkx.Graph() if len(ends) == len(links) else networkx.MultiGraph()
        graph.graph["name"] = self.name
        graph.add_nodes_from((name, {"kind": "host"}) for name in names[: self.hosts])
        rows = zip(names[self.hosts :], switches["level"].tolist(), switches["pod"].tolist(), strict=True)
        graph.add_nodes_from(
            (name, {"kind": "switch", "level": level, "pod": pod}) for name, level, pod in rows
        )
        columns = (links[name].tolist() for name in ("a", "b", "rate_bps", "latency_ps", "tier"))
        graph.add_edges_from(
            (names[a], names[b], {"rate_bps": rate, "latency_ps": latency, "tier": tier})
            for a, b, rate, latency, tier in zip(*columns, strict=True)
        )
        return graph

    def paths(
        self,
        *,
        samples: int = 5000,
        seed: int = 1,
        max_length: int | None = None,
        exact: bool = True,
        interference: bool = True,
    ) -> dict[str, Table]:
        """Measures the path diversity of the network: the tables of ``netloom paths``, by name.

        ``samples`` switch pairs are measured, all if there are no more; lengths are in hops.
        """
        samples, seed = whole("samples", samples, 1, 2**32 - 1), whole("seed", seed, 0, 2**63 - 1)
        if max_length is not None:
            max_length = whole("max_length", max_length, 1, 2**16 - 1)
        return dict(self._inner.paths((samples, seed), max_length, exact, interference))

    def throughput(
        self,
        routing: str | dict = "fatpaths-random",
        traffic: str | dict | np.ndarray = "worst-case",
        *,
        method: str = "auto",
        gap: float = 0.05,
        seed: int = 1,
    ) -> dict[str, Any]:
        """Throughput of the network's paths: bounds ``lower`` and ``upper``, and how they were found.

        1 means that every host of the traffic sends at link rate. ``routing`` and ``traffic`` are kinds as ``netloom
        throughput`` takes them (``"worst-case:intensity=0.55"``) or dicts; ``traffic`` may be a matrix of demands between
        switches, in units of a link's rate. ``gap`` is how far apart the bounds of an approximation may be.
        """
        seed = whole("seed", seed, 0, 2**63 - 1)
        if isinstance(traffic, (str, dict)):
            return self._inner.throughput(routing, traffic, method, (gap, seed))
        lines = demand_lines(traffic, self.switches)
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "demands.txt")
            with open(path, "w") as file:
                file.write(lines)
            return self._inner.throughput(routing, {"kind": "file", "path": path}, method, (gap, seed))

    def export(self, format: str) -> str:
        """The network as text: ``graphml``, ``dot``, ``json``, ``edge-list``, ``htsim-topo`` or ``ns3-topology``."""
        return self._inner.export(format)

    def __repr__(self) -> str:
        """The network's name and size."""
        return f"netloom.Topology({self.name!r}: {self.hosts} hosts, {self.switches} switches, {len(self.links)} links)"


def topology(spec: str | os.PathLike | dict | Scenario, *, seed: int | None = None) -> Topology:
    """Builds a network.

    ``spec`` is a kind with its parameters in one word (``"fat-tree:k=8"``), a scenario file, a dict as under ``topology`` in a
    scenario (``{"kind": "slim-fly", "q": 7}``), or a scenario. ``seed`` is that of random networks.
    """
    if not isinstance(spec, (str, os.PathLike, dict, Scenario)):
        kinds = "a kind, a file's name, a dict or a Scenario"
        raise TypeError(f"spec: expected {kinds}, found {type(spec).__name__}")
    if seed is not None:
        seed = whole("seed", seed, 0, 2**63 - 1)
    return Topology(_netloom.Topology(spec, seed))
