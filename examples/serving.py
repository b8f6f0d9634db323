"""A serving cluster: GPUs that prefill prompts, GPUs that decode, and KV caches that go from the ones to the others over a simulated network.

Requests come by a Poisson process. The scheduler gives each to the prefill GPU that is free first, and, when the prompt has been computed, its KV cache to the
decode GPU with the least to receive. The first token is there when the cache is. `python examples/serving.py [requests]` prints how long that takes, with all caches over one path each (ECMP), and
with packets spread over all paths.
"""

import heapq
import random
import sys

import netloom

PREFILLS, DECODES = range(16), range(16, 32)
PREFILL_PER_TOKEN_PS = 40_000_000  # 40 us: 25,000 tokens per second
KV_BYTES_PER_TOKEN = 2 * 32 * 8 * 128 * 2  # keys and values, 32 layers, 8 heads of 128 numbers of two bytes
DECISION = "5us"  # how long the scheduler takes: it never answers an arrival earlier


def serve(preset: str, requests: int) -> list[int]:
    """The times from arrival to first token in picoseconds, in order of the requests."""
    sim = netloom.Simulation(
        {
            "topology": {
                "kind": "leaf-spine",
                "leaves": 4,
                "spines": 4,
                "hosts_per_leaf": 8,
                "rate": "100Gbps",
            },
            "routing": {"preset": preset},
        },
        reaction=DECISION,
    )
    chance = random.Random(1)
    timers: list[tuple[int, str, int]] = []
    arrivals, tokens = [], []
    at = 0
    for request in range(requests):
        at += round(chance.expovariate(1 / 500e6))  # one per 500 us
        arrivals.append(at)
        tokens.append(chance.randint(20, 400))
        heapq.heappush(timers, (at, "arrives", request))

    free_at = dict.fromkeys(PREFILLS, 0)
    to_receive = dict.fromkeys(DECODES, 0)
    computed_by: dict[int, int] = {}
    first_token = [0] * requests
    while True:
        done = sim.next_completion(timers[0][0] if timers else None)
        if done:
            to_receive[done.dst] -= done.size
            first_token[done.tag] = done.time_ps - arrivals[done.tag]
        elif timers:
            now, what, request = heapq.heappop(timers)
            if what == "arrives":
                gpu = min(free_at, key=lambda gpu: max(free_at[gpu], now))
                free_at[gpu] = max(free_at[gpu], now) + tokens[request] * PREFILL_PER_TOKEN_PS
                computed_by[request] = gpu
                heapq.heappush(timers, (free_at[gpu], "is computed", request))
            else:
                gpu = min(to_receive, key=lambda gpu: to_receive[gpu])
                size = tokens[request] * KV_BYTES_PER_TOKEN
                to_receive[gpu] += size
                sim.start(computed_by[request], gpu, size, tag=request)
        else:
            break
    sim.finish()
    return first_token


def main() -> None:
    requests = int(sys.argv[1]) if len(sys.argv) > 1 else 200
    for preset in ("ecmp", "spray"):
        times = sorted(serve(preset, requests))
        half, most = times[len(times) // 2], times[len(times) * 99 // 100]
        print(
            f"{preset}: time to first token {half / 1e9:.2f} ms (median), {most / 1e9:.2f} ms (p99) of {len(times)} requests"
        )


if __name__ == "__main__":
    main()
