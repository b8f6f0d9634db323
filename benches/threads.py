"""How much faster threads make runs under each scheme: `make bench-threads`, or `.venv/bin/python benches/threads.py --help`.

Every row of `schemes.toml` on its large network, with `BYTES` per host. For each number of threads two figures:

- *limit*: the work of the run divided by that of the thread that has most of it between two meetings of all threads, summed over the meetings. So many
  times as fast as one thread could that many threads be if they met in no time and did not share a cache. It is counted, in events and
  batches, and depends on no machine.
- *measured*, as long as there are so many cores: the seconds of one thread divided by those of so many, each the least of several rounds in which they take turns.

*us per meeting* is how long one thread works on what all threads do between two meetings; a part of it, divided by the number of threads, is
what the time of a meeting has to be compared with. Writes Markdown to standard output and, with `--out`, to a file, and the same as Parquet beside it.
"""

import argparse
import os
import sys
import tempfile
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import tomllib
from schemes import ROOT, Row

MIB = 1024 * 1024


def measured(row, options):
    """The figures of a row."""
    size = options.mib * MIB
    timed = [1, *(threads for threads in options.threads if threads <= os.cpu_count())]
    seconds = dict.fromkeys(timed, float("inf"))
    for _ in range(options.rounds):
        for threads in timed:
            wall = row.run(options.binary, size, threads=threads)["wall_s"]
            seconds[threads] = min(seconds[threads], wall)
    figures = {"network": row.network, "scheme": row.name}
    for threads in options.threads:
        division = row.run(options.binary, size, threads=threads)["division"]
        figures[f"limit_{threads}"] = division["work"] / division["longest"]
        figures["us_per_meeting"] = seconds[1] / division["epochs"] * 1e6
        if threads in seconds:
            figures[f"measured_{threads}"] = seconds[1] / seconds[threads]
    return figures


def main():
    """Measures all rows."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--binary", default=ROOT / "target" / "release" / "netloom", help="netloom to measure"
    )
    parser.add_argument("--only", default="", help="rows whose name or network contains this")
    parser.add_argument("--threads", type=int, nargs="+", default=[2, 4, 8, 16], help="numbers of threads")
    parser.add_argument("--rounds", type=int, default=3, help="rounds of runs that are timed")
    parser.add_argument("--mib", type=int, default=4, help="MiB per host")
    parser.add_argument("--out", type=Path, help="Markdown file; Parquet goes beside it")
    options = parser.parse_args()
    listed = tomllib.loads((Path(__file__).parent / "schemes.toml").read_text())
    with tempfile.TemporaryDirectory() as folder:
        rows = [
            Row(entry, listed["networks"], Path(folder), number, "large")
            for number, entry in enumerate(listed["rows"])
        ]
        chosen = [row for row in rows if options.only in f"{row.network}: {row.name}"]
        if not chosen:
            raise SystemExit(f"no row contains {options.only!r}")
        table = []
        for row in chosen:
            table.append(measured(row, options))
            print(table[-1], file=sys.stderr)
    columns = [key for key in table[0] if key not in ("network", "scheme")]
    lines = ["| network | scheme | " + " | ".join(column.replace("_", " ") for column in columns) + " |"]
    lines.append("| --- | --- |" + " --: |" * len(columns))
    for figures in table:
        numbers = " | ".join(f"{figures[column]:.2f}" for column in columns)
        lines.append(f"| {figures['network']} | {figures['scheme']} | {numbers} |")
    print("\n".join(lines))
    if options.out:
        options.out.write_text("\n".join(lines) + "\n")
        pq.write_table(pa.Table.from_pylist(table), options.out.with_suffix(".parquet"))


if __name__ == "__main__":
    main()
