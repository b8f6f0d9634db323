"""What `fast = true` gains and costs by scheme, transport and workload: `python3 studies/fast/table.py`, minutes.

Each cell is run with and without it, on one thread, in turn. All tables of the two outcomes must have the same bytes, or the script fails. Prints
Markdown: processor time without over that with it, the least of some rounds, and the share of packet-hops that was skipped.
"""

import argparse
import json
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent

# 64 hosts at eight leaf switches; the NICs of a server are at as many leaf switches, so that a ring of servers stays within a rail.
LEAVES = {"topology.kind": "leaf-spine", "topology.leaves": 8, "topology.spines": 4}
LEAVES |= {"topology.hosts_per_leaf": 8, "topology.rate": "100Gbps"}
RAILS = {"servers.nics": 8, "servers.wiring": "rail-optimised"}


def gpus(operation, algorithm, size):
    """A collective among all hosts."""
    fields = {"kind": "gpu-collective", "operation": operation, "algorithm": algorithm, "size": size}
    return {f"workload.{field}": value for field, value in fields.items()}


WORKLOADS = {
    "ring all-reduce within rails": RAILS
    | {"workload.kind": "collective", "workload.algorithm": "ring-allreduce", "workload.size": "512MiB"},
    "ring reduce-scatter over leaves": gpus("reduce-scatter", "ring", "512MiB"),
    "all-to-all": gpus("all-to-all", "pairwise", "32MiB"),
    "lone flows": {"workload.kind": "flow-list", "workload.file": "flows.csv"},
    "permutation": {"workload.kind": "permutation", "workload.size": "8MiB"},
    "incast": {"workload.kind": "incast", "workload.senders": 16, "workload.size": "8MiB"},
    "web search": {
        "workload.kind": "poisson",
        "workload.load": 0.5,
        "workload.duration": "2ms",
    },
}

SCHEMES = ["ecmp", "spray-round-robin", "spray", "flowcut", "reps"]

ECN = {"fabric.ecn.kmin": "100KB", "fabric.ecn.kmax": "400KB", "fabric.ecn.pmax": 0.2}
TRANSPORTS = {
    "constant window": ECN,
    "DCQCN and PFC": ECN | {"transport.preset": "roce", "fabric.flow_control": "pfc"},
    "DCTCP": ECN | {"transport.preset": "dctcp"},
    "NSCC": ECN | {"transport.preset": "uet-nscc"},
}


def processor_time():
    """Seconds that processes which have ended took."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


class Cell:
    """A scenario that is run with and without skipping."""

    def __init__(self, folder, fields):
        """Writes the scenario into a folder."""
        self.folder = folder
        (folder / "flows.csv").write_text("src,dst,bytes,start\n0,9,640000000,0ns\n18,27,480000000,5us\n")
        self.file = folder / "cell.toml"
        self.file.write_text("".join(f"{field} = {json.dumps(value)}\n" for field, value in fields.items()))
        self.seconds = {"false": float("inf"), "true": float("inf")}

    def run(self, binary, fast):
        """Runs it once; returns why it is refused, if it is."""
        out = self.folder / fast
        command = [binary, "run", self.file, "--threads", "1", "--quiet", "--force", "--out", out]
        before = processor_time()
        done = subprocess.run(
            [*command, "--set", f"fast={fast}"], check=False, capture_output=True, text=True
        )
        spent = processor_time() - before
        if done.returncode:
            return done.stderr.strip().splitlines()[0]
        self.seconds[fast] = min(self.seconds[fast], spent)
        return None

    def difference(self):
        """The first table that differs."""
        for table in sorted((self.folder / "false").glob("*.parquet")):
            if table.read_bytes() != (self.folder / "true" / table.name).read_bytes():
                return table.name
        return None

    def text(self):
        """The ratio and the share, or a dash if nothing can be skipped."""
        performance = json.loads((self.folder / "true" / "performance.json").read_text())
        skipped = performance["skipped"]
        ratio = self.seconds["false"] / self.seconds["true"]
        if skipped["obstacle"] and not skipped["jumps"]:
            return "–"
        return f"{ratio:.3g} ({100 * skipped['packet_hops'] / performance['packet_hops']:.0f}%)"


def measure(binary, fields, rounds):
    """What is said of a cell."""
    with tempfile.TemporaryDirectory() as folder:
        cell = Cell(Path(folder), fields)
        for _ in range(rounds):
            for fast in ["false", "true"]:
                refusal = cell.run(binary, fast)
                if refusal:
                    print(f"  refused: {refusal}", file=sys.stderr)
                    return "refused"
        difference = cell.difference()
        if difference:
            raise SystemExit(f"{difference} differs:\n{cell.file.read_text()}")
        return cell.text()


def main():
    """Measures all cells."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--binary", default=ROOT / "target" / "release" / "netloom", help="netloom to measure"
    )
    parser.add_argument("--rounds", type=int, default=3, help="rounds of runs")
    parser.add_argument("--schemes", nargs="*", default=SCHEMES, help="some of the schemes")
    arguments = parser.parse_args()
    lines = [
        "| scheme | transport | " + " | ".join(WORKLOADS) + " |",
        "| --- | --- |" + " --- |" * len(WORKLOADS),
    ]
    print("\n".join(lines))
    for scheme in arguments.schemes:
        for transport, with_transport in TRANSPORTS.items():
            cells = []
            for workload in WORKLOADS.values():
                fields = LEAVES | {"routing.preset": scheme} | with_transport | workload
                cells.append(measure(arguments.binary, fields, arguments.rounds))
            print(f"| {scheme} | {transport} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
