"""What it takes to set a large network up: `make bench-set-up`, or `.venv/bin/python benches/set_up.py --help`.

CPU seconds of `netloom run --threads 1` in all, set-up, an incast of two senders of 1 KiB and the files, for every topology and scheme of routing,
without flow control and with credits, for which the routes are held against deadlock. Why a scenario is refused stands in the log. Cells take turns, round by round, and the best of each counts.
Writes a table in Markdown and the same as Parquet.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from scale import ROOT, machine

NETLOOM = ROOT / "target" / "release" / "netloom"
TOPOLOGIES = ["fat-tree", "slim-fly", "dragonfly", "hyperx", "jellyfish", "xpander"]
ROUTINGS = {
    "ecmp": {"preset": "ecmp"},
    "valiant": {"preset": "valiant"},
    "ugal-l": {"preset": "ugal-l"},
    "par": {"preset": "par"},
    "valiant-group": {"preset": "valiant-group"},
    "fatpaths": {"preset": "fatpaths"},
    "fatpaths, ECMP within a layer": {"preset": "fatpaths", "selector": {"within_layer": "ecmp"}},
    "overlap-minimising layers": {
        "preset": "fatpaths",
        "selector": {"construction": "fatpaths-overlap"},
    },
    "PAST, random ties": {"preset": "fatpaths", "selector": {"construction": "past"}},
    "PAST, non-minimal": {
        "preset": "fatpaths",
        "selector": {"construction": {"kind": "past", "tree": "non-minimal"}},
    },
    "k-shortest": {"preset": "k-shortest"},
}
FLOW_CONTROLS = ["lossy", "credits"]
# What netloom exits with where it refuses a scenario.
REFUSED = 2


def toml(value):
    """A value as TOML writes it in one line."""
    if not isinstance(value, dict):
        return json.dumps(value)
    return "{ " + ", ".join(f"{key} = {toml(inner)}" for key, inner in value.items()) + " }"


def scenario(topology, routing, flow_control, hosts):
    """The text of a cell's scenario."""
    tables = {
        "topology": {"kind": topology, "about_hosts": hosts},
        "routing": ROUTINGS[routing],
        "fabric": {"flow_control": flow_control},
        "workload": {"kind": "incast", "senders": 2, "size": "1KiB"},
    }
    return "".join(f"{name} = {toml(table)}\n" for name, table in tables.items())


def run(text):
    """CPU seconds and MiB of one run, or why it is refused."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "scenario.toml"
        path.write_text(text)
        command = [NETLOOM, "run", path, "--threads", "1", "--quiet", "--out", Path(folder) / "out"]
        with open(Path(folder) / "errors", "w+") as errors:
            process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=errors)
            _, status, usage = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
            errors.seek(0)
            said = errors.read()
    if process.returncode == REFUSED:
        return said.splitlines()[0]
    if process.returncode:
        raise SystemExit(f"{text}\n{said}")
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def measured(options):
    """A row per cell that is not refused."""
    cells = [
        (topology, routing, flow_control)
        for routing in options.routings
        for topology in options.topologies
        for flow_control in options.flow_controls
    ]
    best, refused = {}, set()
    for number in range(options.rounds):
        for cell in cells:
            if cell in refused:
                continue
            done = run(scenario(*cell, options.hosts))
            print(f"round {number + 1}, {', '.join(cell)}: {done}", file=sys.stderr)
            if isinstance(done, str):
                refused.add(cell)
            else:
                best[cell] = tuple(map(min, best.get(cell, done), done))
    names = "topology", "routing", "flow_control", "cpu_s", "mib"
    return [dict(zip(names, (*cell, *values), strict=True)) for cell, values in best.items()]


def markdown(rows, options, machine):
    """The table for people."""
    seconds = {(row["topology"], row["routing"], row["flow_control"]): row["cpu_s"] for row in rows}
    head = [f"CPU s, {' / '.join(options.flow_controls)}", *options.topologies]
    lines = [machine, "", f"| {' | '.join(head)} |", f"|{' --- |' * len(head)}"]
    for routing in options.routings:
        cells = [
            [seconds.get((topology, routing, flow_control)) for flow_control in options.flow_controls]
            for topology in options.topologies
        ]
        texts = (
            " / ".join("–" if value is None else f"{value:.1f}" for value in cell) if any(cell) else "–"
            for cell in cells
        )
        lines.append(f"| {routing} | {' | '.join(texts)} |")
    return "\n".join(lines) + "\n"


def main():
    """Measures, prints and writes."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])

    def some(what, known):
        parser.add_argument(f"--{what}", nargs="+", choices=known, default=list(known), metavar="KIND")

    some("topologies", TOPOLOGIES)
    some("routings", ROUTINGS)
    some("flow-controls", FLOW_CONTROLS)
    parser.add_argument("--hosts", type=int, default=65536, help="about so many")
    parser.add_argument("--rounds", type=int, default=1, help="the best of so many counts")
    parser.add_argument(
        "--out", type=Path, default=ROOT / "runs" / "set-up", help="where set-up.md and set-up.parquet go"
    )
    options = parser.parse_args()
    rows = measured(options)
    options.out.mkdir(parents=True, exist_ok=True)
    where = machine()
    text = markdown(rows, options, where)
    (options.out / "set-up.md").write_text(text)
    pq.write_table(
        pa.Table.from_pylist(rows).replace_schema_metadata({"machine": where}),
        options.out / "set-up.parquet",
    )
    print(text, end="")


if __name__ == "__main__":
    main()
