"""What Python adds: a million flows to polars, and a study on Dask against the same study here.

``.venv/bin/python benches/python.py [CELLS]`` with the package and the tests' tools installed (``make installed``). Other work on the machine makes seconds
worthless, so Dask is measured in CPU seconds of all processes that take part.
"""

import os
import sys
import tempfile
import time

import polars as pl
import psutil
from distributed import Client, LocalCluster

import netloom

FLOWS = {
    "topology": {"kind": "fat-tree", "k": 16},
    "workload": {"kind": "permutation", "size": "1KB", "repeat": 1000},
}

#: Cells of about ten seconds.
CELL = {"topology": {"kind": "fat-tree", "k": 16}, "workload": {"kind": "permutation", "size": "32MiB"}}
CELLS = int(sys.argv[1]) if len(sys.argv) > 1 else 4


def table():
    """Milliseconds in which a table of a million flows becomes a data frame; the best of several."""
    outcome = netloom.run(FLOWS, threads=2, progress=False)
    best = float("inf")
    for _ in range(5):
        started = time.perf_counter()
        frame = pl.DataFrame(outcome.flows)
        best = min(best, time.perf_counter() - started)
    return frame.height, 1e3 * best


def cpu():
    """CPU seconds of this process and its children so far."""
    processes = [psutil.Process(), *psutil.Process().children(recursive=True)]
    return sum(sum(process.cpu_times()[:2]) for process in processes)


def study(folder, **how):
    """CPU and wall seconds of a study."""
    cells = netloom.Study("Cells", CELL, repetitions=CELLS)
    before, started = cpu(), time.perf_counter()
    cells.run(folder, progress=False, **how)
    return cpu() - before, time.perf_counter() - started


def main():
    """Prints both."""
    flows, milliseconds = table()
    print(f"{flows:,} flows to polars: {milliseconds:.1f} ms")
    with tempfile.TemporaryDirectory() as folder:
        here = study(os.path.join(folder, "here"), workers=2)
        cluster = LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None)
        with cluster, Client(cluster) as client:
            there = study(os.path.join(folder, "there"), client=client)
    for name, (seconds, wall) in [("here", here), ("Dask", there)]:
        print(f"{CELLS} cells {name}: {seconds / CELLS:.2f} CPU s each, {wall:.1f} s in all")
    print(f"Dask takes {100 * (there[0] / here[0] - 1):.1f}% more")


if __name__ == "__main__":
    main()
