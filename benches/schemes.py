"""What a packet-hop costs under each scheme: `make bench-schemes`, or `.venv/bin/python benches/schemes.py --help`.

Every row of `schemes.toml` is a random permutation on 100 Gb/s links. Instructions are counted by callgrind in a run of `LONG` bytes per host less one
of `SHORT`, on one thread, divided by the packet-hops that the longer run has more: what a further packet-hop takes, without the set-up. A retransmission,
an ACK and a control packet are packet-hops, too. Seconds are of runs of `TIMED` bytes less `LONG`, the least of several rounds in which the rows
take turns; they are shown as ratios to the first row, as machines differ and are shared. Writes Markdown to standard output and, with `--out`, to a file, and the
same as Parquet beside it.
"""

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import tomllib

ROOT = Path(__file__).parent.parent
KIB = 1024
# Bytes per host.
SHORT, LONG, TIMED = 64 * KIB, 1024 * KIB, 8192 * KIB


def as_toml(value):
    """A value as TOML writes it."""
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{key} = {as_toml(inner)}" for key, inner in value.items()) + " }"
    return json.dumps(value)


class Row:
    """A row of the list: a scenario that lacks the bytes per host only."""

    def __init__(self, entry, networks, folder, number, size="small"):
        """Writes the row's scenario into a folder, on the small or the large network."""
        network = networks[entry.get("network", "fat-tree")][size]
        self.name, self.network = entry["name"], network["text"]
        fields = {"topology.rate": "100Gbps", "workload.kind": "permutation"}
        fields |= network["set"] | entry.get("set", {})
        self.file = folder / f"{number}.toml"
        self.file.write_text("".join(f"{field} = {as_toml(value)}\n" for field, value in fields.items()))
        self.outcome = folder / f"{number}"
        self.seconds = float("inf")

    def run(self, binary, size, *before, threads=1):
        """What a run with `size` bytes per host costs: its `performance.json`."""
        command = [*before, binary, "run", self.file, "--threads", str(threads), "--quiet", "--force"]
        command += ["--set", f"workload.size={size}B", "--out", self.outcome]
        done = subprocess.run(command, check=False, capture_output=True, text=True)
        if done.returncode:
            raise SystemExit(f"{self.network}: {self.name}\n{done.stderr}")
        return json.loads((self.outcome / "performance.json").read_text())

    def instructions(self, binary):
        """Instructions of a further packet-hop."""
        counted = []
        for size in (SHORT, LONG):
            with tempfile.NamedTemporaryFile() as out:
                tool = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={out.name}"]
                hops = self.run(binary, size, *tool)["packet_hops"]
                lines = Path(out.name).read_text().splitlines()
            total = next(line for line in lines if line.startswith(("summary:", "totals:")))
            counted.append((int(total.split()[1]), hops))
        (first, few), (second, many) = counted
        return (second - first) / (many - few)

    def time(self, binary):
        """Notes the least seconds of a further packet-hop so far."""
        shorter, longer = (self.run(binary, size) for size in (LONG, TIMED))
        seconds, hops = (longer[key] - shorter[key] for key in ("wall_s", "packet_hops"))
        self.seconds = min(self.seconds, seconds / hops)


def main():
    """Measures all rows."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--binary", default=ROOT / "target" / "release" / "netloom", help="netloom to measure"
    )
    parser.add_argument("--only", default="", help="rows whose name or network contains this")
    parser.add_argument("--rounds", type=int, default=3, help="rounds of runs that are timed; 0: none")
    parser.add_argument("--out", type=Path, help="Markdown file; Parquet goes beside it")
    arguments = parser.parse_args()
    if not shutil.which("valgrind"):
        raise SystemExit("benches/schemes.py needs valgrind, which counts instructions")
    listed = tomllib.loads((Path(__file__).parent / "schemes.toml").read_text())
    with tempfile.TemporaryDirectory() as folder:
        rows = [
            Row(entry, listed["networks"], Path(folder), number)
            for number, entry in enumerate(listed["rows"])
        ]
        chosen = [row for row in rows if arguments.only in f"{row.network}: {row.name}"]
        if not chosen:
            raise SystemExit(f"no row contains {arguments.only!r}")
        timed = [rows[0], *(row for row in chosen if row is not rows[0])]
        for number in range(arguments.rounds):
            print(f"round {number + 1} of {arguments.rounds}", file=sys.stderr)
            for row in timed:
                row.time(arguments.binary)
        table = []
        for row in chosen:
            count = row.instructions(arguments.binary)
            ratio = row.seconds / rows[0].seconds if arguments.rounds else None
            print(f"{count:8.1f}  {row.network}: {row.name}", file=sys.stderr)
            table.append(
                {"network": row.network, "scheme": row.name, "instructions": count, "time_ratio": ratio}
            )
    lines = ["| network | scheme | instructions | time |", "| --- | --- | --: | --: |"]
    for row in table:
        time = "" if row["time_ratio"] is None else f"{row['time_ratio']:.2f}"
        lines.append(f"| {row['network']} | {row['scheme']} | {row['instructions']:.0f} | {time} |")
    print("\n".join(lines))
    if arguments.out:
        arguments.out.write_text("\n".join(lines) + "\n")
        pq.write_table(pa.Table.from_pylist(table), arguments.out.with_suffix(".parquet"))


if __name__ == "__main__":
    main()
