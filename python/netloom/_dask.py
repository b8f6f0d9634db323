"""Cells as tasks of a Dask cluster.

A task carries its cell's scenario and the files that it names; what comes back are the files of the outcome. So the workers share
no file system with the caller, a lost worker loses only the cells that it was at, and those are given to another one. What has come
back lies in the study's folder as if it had been run here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from netloom import _netloom

#: How often a cell may take its worker down with it before it counts as failed.
ATTEMPTS = 3


def perform(parcel: tuple) -> tuple[bool, Any]:
    """Runs on a worker: whether the cell came to a good end, and the files of its result or else why not."""
    from netloom import _netloom

    return _netloom.perform_parcel(parcel)


def run_cells(study: _netloom.Study, client: Any, ended: Callable[[], None]) -> None:
    """Runs the cells that are left to do on the client's cluster, and stores their results as they come."""
    from distributed import as_completed

    cells = study.cells()
    parcels = study.parcels()
    for _ in range(len(cells) - len(parcels)):
        ended()
    tasks = {}
    # Most work first: a long cell that starts last would keep one worker busy when all others are done.
    for rank, (cell, folder, parcel) in enumerate(parcels):
        name = f"netloom-{cells[cell][2]}-seed={cells[cell][1]}-{folder.name}"
        future = client.submit(perform, parcel, key=name, pure=False, priority=-rank, retries=ATTEMPTS - 1)
        tasks[future] = (cell, folder)
    failures = {}
    try:
        completed = as_completed(list(tasks))
        for future in completed:
            if future.status in ("lost", "pending"):
                # Its worker died with the result before that was fetched: the scheduler has given the cell to another one.
                completed.add(future)
                continue
            cell, folder = tasks.pop(future)
            if future.status == "finished":
                is_good, result = future.result()
                if is_good:
                    _netloom.store_result(folder, result)
                else:
                    failures[cell] = result
            else:
                failures[cell] = f"{future.status}: {future.exception()!r}"
            future.release()
            ended()
    finally:
        # What is left after Ctrl-C is not wanted any more.
        if tasks:
            client.cancel(list(tasks))
    study.look()
    for cell, message in failures.items():
        study.fail(cell, message)
