"""What driven runs cost beside the run of the same flows from a list: CPU seconds on one thread.

A ring of hosts on a fat tree (k = 8): each message that arrives is passed on after a while. Needs the netloom package of this checkout
(`make installed`): .venv/bin/python benches/driven.py
"""

import time

import netloom

HOSTS, STEPS, SIZE = 64, 126, 1 << 20
SCENARIO = {"topology": {"kind": "fat-tree", "k": 8}}


def ring(reaction: int | str, wait_ps: int) -> tuple[float, netloom.Outcome, list]:
    """CPU seconds, the outcome, and what was sent when."""
    sim = netloom.Simulation(SCENARIO, reaction=reaction)
    flows = []
    begin = time.process_time()

    def send(src: int, step: int, at: int) -> None:
        flows.append((src, (src + 1) % HOSTS, SIZE, at))
        sim.start(src, (src + 1) % HOSTS, SIZE, step, at=at)

    for host in range(HOSTS):
        send(host, 1, 0)
    while done := sim.next_completion():
        if done.tag < STEPS:
            send(done.dst, done.tag + 1, done.time_ps + wait_ps)
    outcome = sim.finish()
    return time.process_time() - begin, outcome, flows


def main() -> None:
    """Prints one line per way of running."""
    for wait_ps in (6_000_000, 10_000):
        rows = []
        for name, reaction in (("event by event", 0), (f"reaction {wait_ps // 1000} ns", wait_ps)):
            seconds, outcome, flows = ring(reaction, wait_ps)
            rows.append((name, seconds))
        src, dst, size, at = zip(*flows, strict=True)
        listed = SCENARIO | {
            "workload": netloom.flow_list({"src": src, "dst": dst, "bytes": size, "start_ps": at})
        }
        begin = time.process_time()
        same = netloom.run(listed, threads=1)
        rows.append(("netloom.run of the list", time.process_time() - begin))
        assert same.summary == outcome.summary, "the results differ"
        base = rows[-1][1]
        print(f"{len(flows)} messages of 1 MiB, answered after {wait_ps // 1000} ns")
        for name, seconds in rows:
            print(f"  {name:<24} {seconds:6.2f} CPU s  {seconds / base:5.2f} x")


if __name__ == "__main__":
    main()
