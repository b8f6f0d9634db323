"""What a large training job of execution traces costs: 2,048 ranks with 4,000 nodes each, of kind `astra-sim`, on a fat tree of 2,662 hosts.

At each step a rank computes for 10 us, sends 4 KiB to the next rank and receives as much from the one before; at every tenth step eight neighbouring ranks reduce 64 KiB around a ring.
`make build && python3 benches/large_job.py` writes the traces (500 MB) into a temporary folder, runs them on one thread and prints CPU seconds and peak memory; --ranks and --nodes make it smaller.
"""

import argparse
import json
import resource
import subprocess
import tempfile
from pathlib import Path

COMPUTE, SEND, RECEIVE, COLLECTIVE = 4, 5, 6, 7
NETLOOM = Path(__file__).parent.parent / "target/release/netloom"
SYSTEM = {
    "preferred-dataset-splits": 1,
    "active-chunks-per-dimension": 1,
    "endpoint-delay": 10,
    "local-mem-bw": 1600,
    "all-reduce-implementation": ["ring"],
}


def varint(number: int) -> bytes:
    """A number in protobuf."""
    parts = []
    while number > 127:
        parts.append(number & 127 | 128)
        number >>= 7
    return bytes([*parts, number])


def field(tag: int, value: int | bytes) -> bytes:
    """A field of a protobuf message: a number, or bytes with their length."""
    if isinstance(value, int):
        return varint(tag << 3) + varint(value)
    return varint(tag << 3 | 2) + varint(len(value)) + value


def attribute(name: str, value: int | str) -> bytes:
    """An attribute of a Chakra node: an int64 or a string."""
    said = field(9, value) if isinstance(value, int) else field(29, value.encode())
    return field(10, field(1, name.encode()) + said)


def trace(rank: int, ranks: int, nodes: int) -> bytes:
    """The execution trace of a rank."""
    common = {
        COMPUTE: field(7, 10),
        SEND: attribute("comm_dst", (rank + 1) % ranks)
        + attribute("comm_size", 4096)
        + attribute("comm_tag", 1),
        RECEIVE: attribute("comm_src", (rank - 1) % ranks)
        + attribute("comm_size", 4096)
        + attribute("comm_tag", 1),
        COLLECTIVE: attribute("comm_type", 0)
        + attribute("comm_size", 65536)
        + attribute("pg_name", str(1 + rank // 8)),
    }
    steps = ([COMPUTE, SEND, RECEIVE] * 10 + [COLLECTIVE]) * (nodes // 31 + 1)
    written = [b"\x07\x0a\x05" + b"1.0.0"]
    computed = 0
    for number, kind in enumerate(steps[:nodes], 1):
        # A computation waits for the node before it; a message for the computation of its step.
        waits = number - 1 if kind in (COMPUTE, COLLECTIVE) else computed
        computed = number if kind == COMPUTE else computed
        node = field(1, number) + field(3, kind) + (field(5, waits) if waits else b"") + common[kind]
        written += [varint(len(node)), node]
    return b"".join(written)


def main() -> None:
    """Writes, runs, prints."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ranks", type=int, default=2048)
    parser.add_argument("--nodes", type=int, default=4000)
    options = parser.parse_args()
    ranks, nodes = options.ranks, options.nodes
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for rank in range(ranks):
            (folder / f"job.{rank}.et").write_bytes(trace(rank, ranks, nodes))
        groups = {
            str(1 + first // 8): list(range(first, min(first + 8, ranks))) for first in range(0, ranks, 8)
        }
        (folder / "groups.json").write_text(json.dumps(groups))
        (folder / "system.json").write_text(json.dumps(SYSTEM))
        k = next(k for k in range(4, 1000, 2) if k**3 // 4 >= ranks)
        (folder / "job.toml").write_text(
            f'[topology]\nkind = "fat-tree"\nk = {k}\n[workload]\nkind = "astra-sim"\ntraces = "job"\nsystem = "system.json"\ngroups = "groups.json"\n'
        )
        command = [NETLOOM, "run", folder / "job.toml", "--threads", "1", "--out", folder / "out"]
        subprocess.run(command, check=True)
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        print(
            f"{ranks} ranks, {nodes} nodes each, {k**3 // 4} hosts: {used.ru_utime + used.ru_stime:.1f} CPU s, {used.ru_maxrss / 1024:.0f} MiB"
        )


if __name__ == "__main__":
    main()
