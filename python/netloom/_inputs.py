"""What users bring themselves: networks, flows, sizes, traffic matrices.

A scenario names files, so that it means the same wherever it is read again. What comes from Python is written to a file whose
name is that of its content, below ``$NETLOOM_DATA`` (``~/.cache/netloom`` if that is not set), or to the file that the caller
names.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from netloom import _netloom
from netloom._error import refused, whole
from netloom._netloom import Table


def _folder() -> Path:
    chosen = os.environ.get("NETLOOM_DATA")
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    folder = Path(chosen) if chosen else Path(cache) / "netloom"
    folder.mkdir(parents=True, exist_ok=True)
    return folder.absolute()


def keep(write, kind: str, suffix: str, file: str | os.PathLike | None = None) -> str:
    """Writes what ``write(path)`` writes as a whole or not at all; returns the file's absolute name."""
    folder = Path(file).absolute().parent if file is not None else _folder()
    handle, partial = tempfile.mkstemp(prefix=f".{kind}-", suffix=suffix, dir=folder)
    os.close(handle)
    try:
        write(partial)
        if file is None:
            with open(partial, "rb") as content:
                digest = hashlib.file_digest(content, "sha256") if hasattr(hashlib, "file_digest") else None
                digest = digest or hashlib.sha256(content.read())
            target = folder / f"{kind}-{digest.hexdigest()[:16]}{suffix}"
        else:
            target = Path(file).absolute()
            if target.suffix != suffix:
                raise refused("file", f"expected a name that ends in {suffix}, found {target.name}")
        os.chmod(partial, 0o666 & ~_umask())
        os.replace(partial, target)
    except BaseException:
        os.unlink(partial)
        raise
    return str(target)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def _table(flows: Any) -> Table:
    if isinstance(flows, Table):
        return flows
    if hasattr(flows, "__arrow_c_stream__"):
        return Table.from_arrow(flows)
    if isinstance(flows, Mapping):
        return Table._from_columns(
            [(str(name), np.asarray(values).tolist(), None) for name, values in flows.items()]
        )
    if hasattr(flows, "columns") and hasattr(flows, "to_dict"):
        return _table({name: flows[name].to_numpy() for name in flows.columns})
    raise TypeError(f"expected a data frame or a dict of columns, found {type(flows).__name__}")


def flow_list(flows: Any, *, file: str | os.PathLike | None = None) -> dict[str, Any]:
    """A workload of given flows, to be set as ``scenario["workload"]``.

    ``flows`` is a data frame (pandas, polars, pyarrow, DuckDB, anything with ``__arrow_c_stream__``) or a dict of columns:
    ``src`` and ``dst`` (hosts), ``bytes``, and ``start_ps`` (picoseconds; 0 if absent), all whole numbers. So the
    flows of an outcome can be a workload: ``netloom.flow_list(outcome.flows)``.
    """
    table = _table(flows)
    columns = set(table.columns)
    if missing := [name for name in ("src", "dst", "bytes") if name not in columns]:
        raise refused(
            "flows", f"expected a column `{missing[0]}`, found {', '.join(table.columns) or 'none'}"
        )
    if len(table) == 0:
        raise refused("flows", "expected at least one flow, found none")
    path = keep(lambda path: _netloom.write_flow_list(path, table), "flows", ".parquet", file)
    return {"kind": "flow-list", "file": path}


def traffic_matrix(
    matrix: Any, *, start_ps: int = 0, file: str | os.PathLike | None = None
) -> dict[str, Any]:
    """A workload of one flow per entry of a matrix of bytes, all starting at ``start_ps``.

    ``matrix[src, dst]`` is what host ``src`` sends to host ``dst``, in bytes; the diagonal must be empty.
    """
    matrix = _numbers("matrix", matrix)
    start_ps = whole("start_ps", start_ps, 0, 2**63 - 1)
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
        raise refused("matrix", f"expected a square matrix, found one of shape {matrix.shape}")
    if not np.issubdtype(matrix.dtype, np.integer) and not np.equal(matrix, np.floor(matrix)).all():
        raise refused("matrix", "expected whole numbers of bytes")
    if (matrix < 0).any():
        raise refused("matrix", "expected numbers of bytes from 0 on")
    if (matrix > _LARGEST).any():
        raise refused("matrix", f"expected at most {_LARGEST} bytes from a host to another")
    if np.diagonal(matrix).any():
        raise refused("matrix", "expected nothing on the diagonal: a host sends nothing to itself")
    src, dst = np.nonzero(matrix)
    if len(src) == 0:
        raise refused("matrix", "expected some traffic, found none")
    sizes = matrix[src, dst].astype(np.int64)
    return flow_list(
        {"src": src, "dst": dst, "bytes": sizes, "start_ps": np.full(len(src), start_ps)}, file=file
    )


def sizes(
    sizes: Any,
    shares: Any = None,
    *,
    sampling: str = "interpolate",
    file: str | os.PathLike | None = None,
) -> dict[str, Any]:
    """A distribution of message sizes, to be set as ``scenario["workload.size"]``.

    With ``shares``, ``sizes`` are the points of the distribution function in bytes and ``shares`` its values, rising to 1.
    Without, ``sizes`` are samples: each is as likely as every other. ``sampling`` says what a draw between two points gives:
    ``interpolate``, ``lower`` or ``upper``; samples are drawn as they are.
    """
    points = _numbers("sizes", sizes).astype(float).ravel()
    if len(points) == 0 or not np.isfinite(points).all() or (points < 0).any():
        raise refused("sizes", "expected at least one size, and no size below 0 or without a number")
    if shares is None:
        values, counts = np.unique(points, return_counts=True)
        points, weights, sampling = values, np.cumsum(counts) / counts.sum(), "upper"
        points, weights = np.concatenate([points[:1], points]), np.concatenate([[0.0], weights])
    else:
        weights = _numbers("shares", shares).astype(float).ravel()
        if not ((weights >= 0) & (weights <= 1)).all() or (np.diff(weights) < 0).any():
            raise refused("shares", "expected rising numbers from 0 to 1")
        if len(weights) != len(points):
            raise refused("shares", f"expected as many shares as sizes, {len(points)}, found {len(weights)}")
    lines = "".join(f"{size:.17g} {share:.17g}\n" for size, share in zip(points, weights, strict=True))
    path = keep(lambda path: Path(path).write_text(lines), "sizes", ".cdf", file)
    return {"file": path, "sampling": sampling}


def network(
    links: Any,
    *,
    hosts: Iterable[Any] | None = None,
    hosts_per_switch: int | None = None,
    rate: str | None = None,
    latency: str | None = None,
    file: str | os.PathLike | None = None,
) -> dict[str, Any]:
    """A network of your own, to be set as ``scenario["topology"]`` or given to :func:`netloom.topology`.

    ``links`` is a NetworkX graph, an array or iterable of pairs of nodes, or a data frame or dict with the columns ``a`` and
    ``b`` and, if wanted, ``rate_bps`` and ``latency_ps``. Nodes are whole numbers or names without blanks. ``hosts`` names the
    hosts, in the order in which they are numbered; or ``hosts_per_switch`` new hosts are added to every node; or hosts are the
    nodes with one link. A pair that occurs several times means that many parallel links. ``rate`` and ``latency`` are for links without their own.
    """
    lines: list[str] = []
    if hasattr(links, "edges") and hasattr(links, "nodes"):
        if links.is_directed():
            raise refused(
                "links", "expected an undirected graph, as links are full duplex: graph.to_undirected()"
            )
        if hosts is None and hosts_per_switch is None:
            kinds = [node for node, data in links.nodes(data=True) if data.get("kind") == "host"]
            hosts = kinds or None
        rows = [(a, b, data.get("rate_bps"), data.get("latency_ps")) for a, b, data in links.edges(data=True)]
    elif isinstance(links, Mapping) or hasattr(links, "__arrow_c_stream__") or isinstance(links, Table):
        table = _table(links)
        if missing := [name for name in ("a", "b") if name not in table.columns]:
            raise refused(
                "links", f"expected a column `{missing[0]}`, found {', '.join(table.columns) or 'none'}"
            )
        extra = (table[name].tolist() if name in table.columns else [None] * len(table) for name in _CABLE)
        rows = list(zip(table["a"].tolist(), table["b"].tolist(), *extra, strict=True))
    else:
        rows = []
        if isinstance(links, str) or not isinstance(links, Iterable):
            raise TypeError(
                f"links: expected a graph, columns or pairs of nodes, found {type(links).__name__}"
            )
        for row in links.tolist() if isinstance(links, np.ndarray) else links:
            if not hasattr(row, "__len__") or not 2 <= len(row) <= 4:
                raise refused(
                    "links", f"expected two ends, and a rate and a latency if wanted, found {row!r}"
                )
            rows.append((*row, None, None)[:4])
    if not isinstance(links, Table):
        _each_once(rows)
    if hosts is not None:
        lines += [f"host {_name(host)}" for host in hosts]
    for a, b, link_rate, link_latency in rows:
        words = [_name(a), _name(b)]
        if link_rate is not None:
            words.append(f"{_whole('rate_bps', link_rate)}bps")
        if link_latency is not None:
            if link_rate is None:
                raise refused("links", "a link with a latency of its own needs a rate of its own")
            words.append(f"{_whole('latency_ps', link_latency)}ps")
        lines.append(" ".join(words))
    text = "\n".join(lines) + "\n"
    path = keep(lambda path: Path(path).write_text(text), "network", ".txt", file)
    given = {"rate": rate, "latency": latency, "hosts_per_switch": hosts_per_switch}
    parallel = len({frozenset((str(a), str(b))) for a, b, *_ in rows}) < len(rows)
    fields = {name: value for name, value in given.items() if value is not None}
    return {"kind": "edge-list", "path": path, **fields, **({"parallel_links": True} if parallel else {})}


def _each_once(rows: list[tuple]) -> None:
    """Refuses links that are given from both of their ends, which would be two links each."""
    ends = {(str(a), str(b)) for a, b, *_ in rows}
    for a, b, *_ in rows:
        if str(a) != str(b) and (str(b), str(a)) in ends:
            raise refused(
                "links",
                f"expected every link once, as links are full duplex, found {a} to {b} and {b} to {a}; "
                "parallel links go the same way round",
            )


_CABLE = ("rate_bps", "latency_ps")


#: Bytes of the largest flow.
_LARGEST = 2**53


def _numbers(field: str, values: Any) -> np.ndarray:
    try:
        array = np.asarray(values)
    except ValueError as error:
        raise TypeError(f"{field}: expected numbers in rows of the same length") from error
    kinds = (np.integer, np.floating)
    if array.size > 0 and not any(np.issubdtype(array.dtype, kind) for kind in kinds):
        raise TypeError(f"{field}: expected numbers, found {array.dtype}")
    return array


def _name(node: Any) -> str:
    name = str(node)
    if not name or name == "host" or any(sign.isspace() or sign in ",#" for sign in name):
        raise refused("links", f"expected names of nodes without blanks, commas and #, found {name!r}")
    return name


def _whole(field: str, number: Any) -> int:
    if not isinstance(number, (int, float, np.number)):
        raise refused(field, f"expected a whole number from 0 on, found {number!r}")
    if not np.isfinite(number) or int(number) != number or number < 0:
        raise refused(field, f"expected a whole number from 0 on, found {number}")
    return int(number)


def demand_lines(matrix: Any, switches: int) -> str:
    """A matrix of demands between switches as the lines of a traffic file."""
    matrix = _numbers("traffic", matrix).astype(float)
    if matrix.shape != (switches, switches):
        raise refused(
            "traffic", f"expected a matrix of {switches} x {switches} switches, found shape {matrix.shape}"
        )
    if not np.isfinite(matrix).all() or (matrix < 0).any():
        raise refused("traffic", "expected finite demands from 0 on")
    rows, columns = np.nonzero(matrix)
    pairs = zip(rows.tolist(), columns.tolist(), matrix[rows, columns].tolist(), strict=True)
    return "".join(f"{a} {b} {amount!r}\n" for a, b, amount in pairs if a != b)
