"""How far off a region of interest is: `python3 studies/fast/region.py`, minutes. Needs pyarrow.

Each case is run in packets, with a region in packets, and flow by flow, on one thread. Prints Markdown: processor times, and for the flows of the region
by how much the means and 99th percentiles of completion times and slowdowns differ from those of the same flows where all is run in packets, and when the last of them has ended.
"""

import argparse
import json
import resource
import subprocess
import tempfile
from pathlib import Path

import pyarrow.parquet as pq

ROOT = Path(__file__).parent.parent.parent

FAT_TREE = 'topology = { kind = "fat-tree", k = 8, rate = "100Gbps", latency = "1us" }\nrouting = "ecmp"\n'
TRANSPORTS = {
    "fixed window": "",
    "DCTCP": 'transport = "dctcp"\nfabric = { ecn = { kmin = "100KB", kmax = "100KB" } }\n',
}
WEB_SEARCH = '{{ kind = "poisson", size = "web-search", load = {load}, duration = "{duration}" }}'
JOB = '[[jobs]]\nname = "job"\nranks = 16\nplacement = "round-robin-leaves"\nworkload = {{ kind = "collective", algorithm = "{algorithm}", size = "{size}" }}\n'


def web_search(load, duration):
    """Web search among all hosts."""
    return f"workload = {WEB_SEARCH.format(load=load, duration=duration)}\n"


def job(algorithm, size):
    """A job beside web search."""
    return web_search(0.5, "20ms") + JOB.format(algorithm=algorithm, size=size)


POD = {"hosts": list(range(16))}
CASES = {
    "web search at load 0.5; one pod of eight": (web_search(0.5, "100ms"), POD),
    "web search at load 0.3; one pod of eight": (web_search(0.3, "100ms"), POD),
    "ring all-reduce of 64 MiB on 16 hosts beside web search at load 0.5": (
        job("ring-allreduce", "64MiB"),
        {"jobs": ["job"]},
    ),
    "all-to-all of 16 MiB on 16 hosts beside web search at load 0.5": (
        job("pairwise-all-to-all", "16MiB"),
        {"jobs": ["job"]},
    ),
}


def run(binary, text, out, detail):
    """Runs a scenario; returns the seconds of processor time that it took."""
    file = out.with_suffix(".toml")
    file.write_text(text)
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    command = [
        binary,
        "run",
        file,
        "--threads",
        "1",
        "--quiet",
        "--force",
        "--out",
        out,
        "--set",
        f"detail={detail}",
    ]
    subprocess.run(command, check=True, capture_output=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime - before.ru_utime


def flows(out):
    """By source and number: completion time, slowdown, end and packets."""
    names = ["src", "flow", "start_ps", "fct_ps", "ideal_fct_ps", "packets"]
    table = pq.read_table(out / "flows.parquet", columns=names).to_pydict()
    rows = zip(*(table[name] for name in names), strict=True)
    return {
        (src, flow): (fct, fct / ideal, start + fct, packets)
        for src, flow, start, fct, ideal, packets in rows
    }


def summed_up(values):
    """Mean and 99th percentile."""
    values = sorted(values)
    return sum(values) / len(values), values[-(-99 * len(values) // 100) - 1]


def compare(binary, text, region, seed):
    """The cells of a row."""
    region = "{packets={" + ", ".join(f"{name}={json.dumps(value)}" for name, value in region.items()) + "}}"
    with tempfile.TemporaryDirectory() as folder:
        seconds, found = [], []
        for detail in ["packets", region, "flow"]:
            out = Path(folder) / "out"
            seconds.append(run(binary, f"seed = {seed}\n" + text, out, detail))
            found.append(flows(out))
    inside = [flow for flow, (_, _, _, packets) in found[1].items() if packets > 0]
    cells = [f"{len(inside)} of {len(found[0])}", " / ".join(f"{second:.1f} s" for second in seconds)]
    for quantity in [0, 1]:
        expected = summed_up(found[0][flow][quantity] for flow in inside)
        for place in [0, 1]:
            of = (summed_up(way[flow][quantity] for flow in inside)[place] for way in found[1:])
            cells.append(" / ".join(f"{100 * (value / expected[place] - 1):+.1f}" for value in of))
    ends = [max(way[flow][2] for flow in inside) for way in found]
    cells.append(" / ".join(f"{100 * (end / ends[0] - 1):+.1f}" for end in ends[1:]))
    return cells


def main():
    """Prints the table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--binary", default=ROOT / "target" / "release" / "netloom")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    print(
        "| case | hosts | flows inside | packets / region / flows | mean FCT | p99 FCT | mean slowdown | p99 slowdown | end |"
    )
    print("| --- | --- | --- | --- | --- | --- | --- | --- | --- |")
    for name, (work, region) in CASES.items():
        for hosts, transport in TRANSPORTS.items():
            cells = compare(arguments.binary, FAT_TREE + transport + work, region, arguments.seed)
            print("| " + " | ".join([name, hosts, *cells]) + " |", flush=True)


if __name__ == "__main__":
    main()
