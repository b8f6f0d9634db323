"""A scheduler in a loop: tasks go to the worker with the fewest of them, results come back, and the scheduler acts on each.

A task is a message of 4 KiB to a worker, which computes and answers with as much; the scheduler, host 0, then sends the next task. So there are two completions per task.
`python examples/scheduler.py [tasks]` prints how long a task takes in the simulated network, and how many completions the loop handles per second of CPU time.
"""

import heapq
import random
import sys
import time
from typing import NamedTuple

import netloom

SCHEDULER, WORKERS = 0, range(1, 64)
AT_A_TIME = 2  # tasks of a worker: it computes one while the next one comes
COMPUTING_PS = (5_000_000, 50_000_000)  # 5 to 50 us
REACTION = "1us"  # neither the scheduler nor a worker answers earlier


class Loop(NamedTuple):
    """What came of the loop."""

    times_ps: list[int]
    """From sending a task to the arrival of its result, in order of the results."""
    completions_per_second: float
    """Per second of CPU time, simulation included."""


def schedule(tasks: int) -> Loop:
    """Gives out all tasks and waits for their results."""
    network = {"kind": "leaf-spine", "leaves": 8, "spines": 8, "hosts_per_leaf": 8, "rate": "100Gbps"}
    sim = netloom.Simulation({"topology": network}, reaction=REACTION)
    chance = random.Random(1)
    waiting = [(0, worker) for worker in WORKERS]  # by how many tasks a worker has
    load = dict.fromkeys(WORKERS, 0)
    free_at = dict.fromkeys(WORKERS, 0)
    timers: list[tuple[int, int, int]] = []  # when which worker has computed which task
    sent: list[int] = []
    times: list[int] = []
    completions = 0
    begin = time.process_time()

    def give_out() -> None:
        while len(sent) < tasks and waiting[0][0] < AT_A_TIME:
            tasks_there, worker = heapq.heappop(waiting)
            if tasks_there != load[worker]:
                continue  # an entry from before
            load[worker] += 1
            heapq.heappush(waiting, (load[worker], worker))
            sim.start(SCHEDULER, worker, "4KiB", tag=len(sent))
            sent.append(sim.earliest_start_ps)

    give_out()
    while len(times) < tasks:
        done = sim.next_completion(timers[0][0] if timers else None)
        if done is None:
            at, worker, task = heapq.heappop(timers)
            sim.start(worker, SCHEDULER, "4KiB", tag=task, at=at)
            continue
        completions += 1
        if done.src == SCHEDULER:
            free_at[done.dst] = max(free_at[done.dst], done.time_ps) + chance.randint(*COMPUTING_PS)
            heapq.heappush(timers, (free_at[done.dst], done.dst, done.tag))
        else:
            times.append(done.time_ps - sent[done.tag])
            load[done.src] -= 1
            heapq.heappush(waiting, (load[done.src], done.src))
            give_out()
    spent = time.process_time() - begin
    sim.finish()
    return Loop(times, completions / spent)


def main() -> None:
    """Prints one line."""
    tasks = int(sys.argv[1]) if len(sys.argv) > 1 else 20_000
    loop = schedule(tasks)
    times = sorted(loop.times_ps)
    half, most = times[len(times) // 2], times[len(times) * 99 // 100]
    print(
        f"{tasks} tasks: {half / 1e6:.1f} us (median), {most / 1e6:.1f} us (p99); "
        f"{loop.completions_per_second:,.0f} completions per CPU second"
    )


if __name__ == "__main__":
    main()
