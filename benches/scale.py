"""What a packet-hop costs as the network grows: `make bench-scale`, or `.venv/bin/python benches/scale.py --help`.

The permutation of `packet-hop` under ECMP on fat trees of growing radix, each in a process of its own: nanoseconds per packet-hop on one thread and
on several, the set-up, and the most memory per host. Runs are short, so that their beginnings and ends, when nodes are made, memory is first used and records are written, have a part in the
nanoseconds; what a further packet-hop takes is what a run with four times the bytes takes longer than one with twice as many. Each network has a run that does not count before
those that do: where the host of a virtual machine has to find memory first, the first run of the larger network pays for it. What several threads gain is to be held against what the machine gives to as many runs of one thread at the
same time, which share nothing but its caches and its power. Networks take turns, round by round, and the best of each counts, so that a machine with
other work slows all of them alike. With `--misses` the smaller ones run under cachegrind as well, with a last-level cache of 2 MiB: instructions and
misses per packet-hop, of a long run less a short one. Writes a table in Markdown and the same as Parquet.
"""

import argparse
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

ROOT = Path(__file__).parent.parent
PACKET_HOP = ROOT / "target" / "release" / "packet-hop"
PRINTED = re.compile(r"(\d+) packet-hops in ([\d.]+) s, set up in ([\d.]+) s, (\d+) MiB")
# Bytes per host times hosts: every network has about as many packet-hops.
TOTAL = 4 << 30
# A further packet-hop is measured between runs with so many times as many.
LONGER = (2, 4)
# The same under cachegrind, which is some fifty times slower, and the largest network that is run there.
TOTAL_OF_CACHEGRIND = 256 << 20
MOST_HOSTS_OF_CACHEGRIND = 8192


def command(k, size, threads):
    """One run of the benchmark."""
    return [PACKET_HOP, "--once", str(threads), "--schemes", "ecmp", "--k", str(k), "--size", f"{size}B"]


def run(*arguments):
    """Packet-hops, seconds, seconds of the set-up and MiB of a run."""
    done = subprocess.run(command(*arguments), check=True, capture_output=True, text=True)
    hops, seconds, set_up, memory = PRINTED.fullmatch(done.stdout.strip()).groups()
    return int(hops), float(seconds), float(set_up), int(memory)


def run_at_once(k, size, count):
    """Seconds until so many runs on one thread each are done that begin together."""
    runs = [subprocess.Popen(command(k, size, 1), stdout=subprocess.PIPE, text=True) for _ in range(count)]
    outputs = [run.communicate()[0] for run in runs]
    if any(run.returncode for run in runs):
        raise SystemExit(f"{command(k, size, 1)} failed")
    return max(float(PRINTED.fullmatch(output.strip())[2]) for output in outputs)


def events(k, size):
    """Packet-hops, instructions and last-level misses of a run under cachegrind."""
    with tempfile.NamedTemporaryFile() as out:
        options = ["--tool=cachegrind", "--cache-sim=yes", "--LL=2097152,16,64"]
        valgrind = ["valgrind", *options, f"--cachegrind-out-file={out.name}"]
        done = subprocess.run([*valgrind, *command(k, size, 1)], check=True, capture_output=True, text=True)
        lines = Path(out.name).read_text().splitlines()
    hops = int(PRINTED.fullmatch(done.stdout.strip())[1])
    names, values = (
        next(line for line in lines if line.startswith(word)) for word in ("events:", "summary:")
    )
    counted = dict(zip(names.split()[1:], map(int, values.split()[1:]), strict=True))
    return hops, counted["Ir"], counted["DLmr"] + counted["DLmw"] + counted["ILmr"]


def per_hop(k, size):
    """Instructions and last-level misses per packet-hop of a run, what a run of a packet per host takes left out."""
    (base_hops, *base), (hops, *long) = events(k, 4096), events(k, size)
    return [(more - less) / (hops - base_hops) for less, more in zip(base, long, strict=True)]


def machine():
    """The processor, its cores, and how busy they were."""
    cpuinfo = Path("/proc/cpuinfo")
    models = re.findall(r"model name\s*: (.*)", cpuinfo.read_text()) if cpuinfo.exists() else []
    load = os.getloadavg()[0]
    return f"{models[0] if models else platform.processor() or platform.machine()}, {os.cpu_count()} cores, load {load:.1f}"


def measured(options):
    """A row per network."""
    sizes = {k: max(TOTAL // (k**3 // 4), 4096) for k in options.ks}
    best = {}
    longer = {}
    at_once = {}
    for number in range(options.rounds):
        for k, size in sizes.items():
            run(k, size, options.threads)
            for threads in dict.fromkeys([1, options.threads]):
                print(f"round {number + 1}, k = {k}, {threads} threads", file=sys.stderr)
                hops, seconds, set_up, memory = run(k, size, threads)
                row = best.setdefault((k, threads), [hops, seconds, set_up, memory])
                row[1:] = map(min, row[1:], (seconds, set_up, memory))
            for times in LONGER:
                hops, seconds, _, _ = run(k, times * size, 1)
                longer[k, times] = (hops, min(longer.get((k, times), (hops, seconds))[1], seconds))
            at_once[k] = min(at_once.get(k, float("inf")), run_at_once(k, size, options.threads))
    rows = []
    for k, size in sizes.items():
        hosts = k**3 // 4
        hops, seconds, set_up, memory = best[k, 1]
        further = [more - less for less, more in zip(*(longer[k, times] for times in LONGER), strict=True)]
        row = {
            "k": k,
            "hosts": hosts,
            "bytes_per_host": size,
            "packet_hops": hops,
            "ns_per_hop": seconds / hops * 1e9,
            "ns_per_further_hop": further[1] / further[0] * 1e9,
            "speed_up": seconds / best[k, options.threads][1],
            "runs_at_once": options.threads * seconds / at_once[k],
            "set_up_s": set_up,
            "kib_per_host": memory * 1024 / hosts,
            "instructions_per_hop": None,
            "misses_per_hop": None,
        }
        if options.misses and hosts <= MOST_HOSTS_OF_CACHEGRIND:
            print(f"cachegrind, k = {k}", file=sys.stderr)
            row["instructions_per_hop"], row["misses_per_hop"] = per_hop(k, TOTAL_OF_CACHEGRIND // hosts)
        rows.append(row)
    for row in rows:
        row["ratio"] = row["ns_per_hop"] / rows[0]["ns_per_hop"]
        row["further_ratio"] = row["ns_per_further_hop"] / rows[0]["ns_per_further_hop"]
    return rows


def markdown(rows, options, machine):
    """The table for people."""
    speed_up = f"{options.threads} threads / 1 | {options.threads} runs / 1"
    lines = [
        machine,
        "",
        f"| fat tree | hosts | ns per packet-hop | of the first | a further one | of the first | {speed_up} | set-up, s | KiB per host | instructions | last-level misses |",
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for row in rows:
        counts = (
            "" if value is None else f"{value:.{digits}f}"
            for value, digits in ((row["instructions_per_hop"], 0), (row["misses_per_hop"], 1))
        )
        lines.append(
            f"| k = {row['k']} | {row['hosts']:,} | {row['ns_per_hop']:.0f} | {row['ratio']:.2f} "
            f"| {row['ns_per_further_hop']:.0f} | {row['further_ratio']:.2f} "
            f"| {row['speed_up']:.2f} | {row['runs_at_once']:.2f} | {row['set_up_s']:.2f} | {row['kib_per_host']:.1f} | {' | '.join(counts)} |"
        )
    return "\n".join(lines) + "\n"


def main():
    """Measures, prints and writes."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--ks", type=int, nargs="+", default=[16, 32, 48, 64], help="radixes, the first to compare with"
    )
    parser.add_argument("--rounds", type=int, default=3, help="the best of so many counts")
    parser.add_argument("--threads", type=int, default=min(os.cpu_count() or 1, 2), help="threads beside one")
    parser.add_argument("--misses", action="store_true", help="under cachegrind, too")
    parser.add_argument(
        "--out", type=Path, default=ROOT / "runs" / "scale", help="where scale.md and scale.parquet go"
    )
    options = parser.parse_args()
    if options.misses and not shutil.which("valgrind"):
        parser.error("--misses needs valgrind, which is not installed")
    rows = measured(options)
    options.out.mkdir(parents=True, exist_ok=True)
    where = machine()
    text = markdown(rows, options, where)
    (options.out / "scale.md").write_text(text)
    pq.write_table(
        pa.Table.from_pylist(rows).replace_schema_metadata({"machine": where}),
        options.out / "scale.parquet",
    )
    print(text, end="")


if __name__ == "__main__":
    main()
