"""Kills -9 of any process of a study on a Dask cluster at random moments: none loses a finished cell.

``.venv/bin/python tests/dask_kills.py [KILLS]``, with the package installed (``make installed``); a hundred kills if not said otherwise.
What is killed is the scheduler, a worker or the process that started the study; whoever is dead is started again, and the study goes on.
"""

import os
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

STUDY = """
title = "Cells to be killed"
repetitions = 12
[scenario]
topology = { kind = "fat-tree", k = 8 }
workload = { kind = "permutation", size = "1MiB" }
[[axis]]
name = "scheme"
field = "routing.preset"
values = ["ecmp", "spray", "flowcut-nic"]
"""
CELLS = 36
WORKERS = 2

#: A worker that waits for a lost scheduler, and a client that does, give up soon.
SETTINGS = {
    "DASK_DISTRIBUTED__COMM__TIMEOUTS__CONNECT": "5s",
    "DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES": "100",
    "DASK_DISTRIBUTED__DASHBOARD__LINK": "",
}


def start(folder, *arguments):
    """A Python process in the folder, quiet."""
    with open(folder / "log", "a") as log:
        return subprocess.Popen(
            [sys.executable, *map(str, arguments)],
            cwd=folder,
            env={**os.environ, **SETTINGS},
            stdout=log,
            stderr=log,
        )


class Cluster:
    """A scheduler, its workers, and the study that runs on them."""

    def __init__(self, folder):
        self.folder = folder
        self.file = folder / "scheduler.json"
        self.processes = {}

    def address(self):
        """That of the scheduler, once it listens."""
        import json

        while True:
            try:
                return json.loads(self.file.read_text())["address"]
            except (FileNotFoundError, ValueError):
                time.sleep(0.05)

    def restart(self):
        """Starts whoever is dead; without its scheduler nobody is of use."""
        alive = {name: process for name, process in self.processes.items() if process.poll() is None}
        if "scheduler" not in alive:
            for process in alive.values():
                process.kill()
            alive = {}
            self.file.unlink(missing_ok=True)
            arguments = ["--port", "0", "--no-dashboard", "--scheduler-file", self.file]
            alive["scheduler"] = start(self.folder, "-m", "distributed.cli.dask_scheduler", *arguments)
        address = self.address()
        for worker in range(WORKERS):
            if f"worker {worker}" not in alive:
                arguments = [address, "--no-nanny", "--no-dashboard", "--nthreads", "1"]
                alive[f"worker {worker}"] = start(
                    self.folder, "-m", "distributed.cli.dask_worker", *arguments
                )
        if "study" not in alive:
            arguments = ["study", "study.toml", "--out", "out", "--dask", address]
            alive["study"] = start(self.folder, "-m", "netloom", *arguments)
        self.processes = alive

    def stop(self):
        """Ends all of them."""
        for process in self.processes.values():
            process.kill()
            process.wait()


def contents(folder):
    """Every file of the finished cells but what a run cost."""
    found = {}
    for cell in folder.glob("cells/[!.]*"):
        for file in cell.iterdir():
            if file.name != "performance.json":
                found[f"{cell.name}/{file.name}"] = file.read_bytes()
    return found


def finished(folder):
    """The finished cells, and when each was written."""
    return {cell.name: (cell / "summary.json").stat().st_mtime_ns for cell in folder.glob("cells/[!.]*")}


def main(kills):
    """Kills so often, and compares what came out with a study that nobody killed."""
    chance = random.Random()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "study.toml").write_text(STUDY)
        begun = time.monotonic()
        local = [sys.executable, "-m", "netloom", "study", "study.toml", "--out", "reference"]
        subprocess.run(local, cwd=folder, check=True, capture_output=True)
        whole = time.monotonic() - begun
        reference = contents(folder / "reference")
        assert len(finished(folder / "reference")) == CELLS
        cluster, before, gained, done = Cluster(folder), {}, 0, 0
        counts = {}
        try:
            for _ in range(kills):
                cluster.restart()
                time.sleep(chance.uniform(0, 2 + whole))
                victim = chance.choice(sorted(cluster.processes))
                cluster.processes[victim].kill()
                cluster.processes[victim].wait()
                kind = victim.split()[0]
                counts[kind] = counts.get(kind, 0) + 1
                now = finished(folder / "out")
                for cell, written in before.items():
                    assert now.get(cell) == written, f"{cell} was lost or run again"
                gained += len(now) - len(before)
                before = now
                if len(now) == CELLS:
                    assert contents(folder / "out") == reference
                    cluster.stop()
                    subprocess.run(["rm", "-rf", folder / "out"], check=True)
                    before, done = {}, done + 1
            cluster.restart()
            cluster.processes["study"].wait()
            if cluster.processes["study"].returncode != 0:
                cluster.restart()
                cluster.processes["study"].wait()
            assert contents(folder / "out") == reference
        finally:
            cluster.stop()
        partial = [path.name for path in (folder / "out" / "cells").glob(".*")]
        assert not partial, partial
        killed = ", ".join(f"{count} of the {kind}" for kind, count in sorted(counts.items()))
        print(
            f"{kills} kills ({killed}); {gained} cells finished between them, {done} whole studies, none lost"
        )


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 100)
