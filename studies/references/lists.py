"""The flow lists of studies/references, as the csg-htsim runs had them: `python3 lists.py` writes them anew.

A permutation shuffles sources and destinations with Python's `random`; where a host would send to itself, its destination and the next one change
places. NDP's sizes are whole packets, as htsim rounds them up; Swift sends one packet more than asked; TCP's packets have one byte of header here, so
that 223 packets of 8999 B are what it sends.
"""

import random
from pathlib import Path

HERE = Path(__file__).parent / "lists"


def permutation(hosts, seed):
    """Sources in order of start, and the destination of each."""
    draw = random.Random(seed)
    sources, destinations = list(range(hosts)), list(range(hosts))
    draw.shuffle(sources)
    draw.shuffle(destinations)
    for i in range(hosts):
        if sources[i] == destinations[i]:
            j = (i + 1) % hosts
            destinations[i], destinations[j] = destinations[j], destinations[i]
    return list(zip(sources, destinations, strict=True))


def incast(senders, seed):
    """Hosts of 128 that send to host 0."""
    others = list(range(1, 128))
    random.Random(seed).shuffle(others)
    return [(sender, 0) for sender in others[:senders]]


def write(name, pairs, size):
    """Writes flows of one size as a list that all start at once."""
    rows = [f"{source},{destination},{size}\n" for source, destination in pairs]
    (HERE / f"{name}.csv").write_text("src,dst,bytes\n" + "".join(rows))


if __name__ == "__main__":
    HERE.mkdir(exist_ok=True)
    write("uet-lone", [(0, 15)], 2_000_000)
    write("uet-both-directions", [(0, 15), (15, 0)], 2_000_000)
    write("uet-10-packets", [(0, 15)], 10 * 4086)
    write("uet-100-packets", [(0, 15)], 100 * 4086)
    for payload in (9000, 4096):
        size = -(-2_000_000 // payload) * payload
        write(f"permutation-128-{payload}", permutation(128, 1), size)
        for senders in (8, 32, 100):
            write(f"incast-{senders}-{payload}", incast(senders, 1), -(-450_000 // payload) * payload)
    write("permutation-128-swift-4000", permutation(128, 1), 501 * 4000)
    write("permutation-128-swift-9000", permutation(128, 1), 224 * 9000)
    write("permutation-128-tcp", permutation(128, 1), 223 * 8999)
    write("permutation-128-tcp-long", permutation(128, 1), 90_000_000)
