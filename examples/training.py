"""A training loop: data-parallel ranks compute, and sum their gradients bucket by bucket in rings over a simulated network while they still compute.

`python examples/training.py [iterations]` prints the time of each iteration, and how much of it the network adds to the computation.
"""

import heapq
import sys

import netloom

RANKS = 32
BUCKETS = 6
BUCKET_BYTES = 8 << 20
FORWARD_PS, BACKWARD_PER_BUCKET_PS = 400_000_000, 150_000_000
REACTION_PS = 5_000_000  # a kernel launch: a rank passes a chunk on 5 us after it got it


def train(preset: str, iterations: int) -> list[int]:
    """The time of each iteration in picoseconds."""
    sim = netloom.Simulation(
        {
            "topology": {
                "kind": "leaf-spine",
                "leaves": 4,
                "spines": 4,
                "hosts_per_leaf": 8,
                "rate": "200Gbps",
            },
            "routing": {"preset": preset},
        },
        reaction=REACTION_PS,
    )
    # Neighbours in the ring are under different switches.
    ring = [leaf * 8 + place for place in range(8) for leaf in range(4)]
    following = {rank: ring[(place + 1) % RANKS] for place, rank in enumerate(ring)}
    chunk, steps = BUCKET_BYTES // RANKS, 2 * (RANKS - 1)
    times = []
    for _ in range(iterations):
        begin = sim.now_ps
        # Gradients of a bucket are ready at all ranks at the same time.
        ready = [
            (begin + FORWARD_PS + (bucket + 1) * BACKWARD_PER_BUCKET_PS, bucket) for bucket in range(BUCKETS)
        ]
        heapq.heapify(ready)
        received: dict[tuple[int, int], int] = {}
        missing = BUCKETS * RANKS
        while missing:
            done = sim.next_completion(ready[0][0] if ready else None)
            if done is None:
                _, bucket = heapq.heappop(ready)
                sim.start_many((rank, following[rank], chunk, bucket) for rank in ring)
                continue
            key = (done.tag, done.dst)
            received[key] = received.get(key, 0) + 1
            if received[key] < steps:
                sim.start(done.dst, following[done.dst], chunk, done.tag, at=done.time_ps + REACTION_PS)
            else:
                missing -= 1
        times.append(sim.now_ps - begin)
        # The optimiser; nothing is on its way.
        sim.run_until(sim.now_ps + 200_000_000)
    sim.finish()
    return times


def main() -> None:
    iterations = int(sys.argv[1]) if len(sys.argv) > 1 else 2
    computation = FORWARD_PS + BUCKETS * BACKWARD_PER_BUCKET_PS
    for preset in ("ecmp", "spray"):
        times = train(preset, iterations)
        exposed = [f"{(time - computation) / 1e9:.3f}" for time in times]
        print(
            f"{preset}: {len(times)} iterations of {times[0] / 1e9:.3f} ms, of which the network {', '.join(exposed)} ms"
        )


if __name__ == "__main__":
    main()
