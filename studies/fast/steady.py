"""How far off runs are that skip what is steady: `python3 studies/fast/steady.py`, minutes. Needs pyarrow.

Each case is run in packets and with `fast = { max_error = … }`, on one thread. Prints Markdown: processor time of the first over that of the second,
the share of packet-hops that was skipped as steady, the errors of completion times (mean, 99th percentile, largest), the differences that a nudge makes
in packets (links longer by a nanosecond), both of the makespan, and the errors that the audits of the same run measured.
"""

import argparse
import json
import resource
import subprocess
import tempfile
from pathlib import Path

import pyarrow.parquet as pq

ROOT = Path(__file__).parent.parent.parent

LEAVES = {"topology.kind": "leaf-spine", "topology.leaves": 4, "topology.spines": 4}
LEAVES |= {"topology.hosts_per_leaf": 4, "topology.rate": "100Gbps"}
DRAWN = {"fabric.ecn.kmin": "100KB", "fabric.ecn.kmax": "400KB", "fabric.ecn.pmax": 0.2}
STEP = {"fabric.ecn.kmin": "100KB", "fabric.ecn.kmax": "100KB", "fabric.ecn.pmax": 1.0}

TRANSPORTS = {
    "constant window, random spraying": {"routing.preset": "spray"},
    "DCQCN and PFC, marks drawn": DRAWN | {"transport.preset": "roce", "fabric.flow_control": "pfc"},
    "DCTCP": STEP | {"transport.preset": "dctcp", "fabric.buffer": "2MB"},
    "NewReno, drops": {"transport.preset": "tcp", "fabric.buffer": "1MB"},
    "HPCC": {"transport.preset": "hpcc"},
    "Swift": {"transport.congestion": "swift", "transport.reliability": "selective-repeat"},
    "NSCC, `uet-mixed`, trimming": DRAWN
    | {"transport.preset": "uet-nscc", "routing.preset": "uet-mixed", "fabric.queue.kind": "trimming"},
}

WORKLOADS = {
    "permutation": {"workload.kind": "permutation"},
    "all-to-all": {
        "workload.kind": "gpu-collective",
        "workload.operation": "all-to-all",
        "workload.algorithm": "pairwise",
    },
}


def run(binary, fields, fast, out):
    """Runs a scenario; returns the seconds of processor time that it took."""
    file = out.with_suffix(".toml")
    file.write_text("".join(f"{field} = {json.dumps(value)}\n" for field, value in fields.items()))
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    command = [binary, "run", file, "--threads", "1", "--quiet", "--out", out, "--set", f"fast={fast}"]
    subprocess.run(command, check=True, capture_output=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime - before.ru_utime


def completions(out):
    """The completion times of flows, and when all was done."""
    flows = pq.read_table(out / "flows.parquet", columns=["src", "flow", "fct_ps"]).to_pydict()
    times = dict(zip(zip(flows["src"], flows["flow"], strict=True), flows["fct_ps"], strict=True))
    return times, json.loads((out / "summary.json").read_text())["totals"]["makespan_ps"]


def percent(*shares):
    """Shares as percentages."""
    return ", ".join("–" if share is None else f"{100 * share:.2f}" for share in shares)


def differences(expected, found):
    """By how much completion times differ: mean, 99th percentile and largest; and when all was done."""
    (times, makespan), (found_times, found_makespan) = expected, found
    errors = sorted(abs(found_times[flow] - time) / time for flow, time in times.items())
    return (
        (sum(errors) / len(errors), errors[-(-99 * len(errors) // 100) - 1], errors[-1]),
        abs(found_makespan - makespan) / makespan,
    )


def compare(binary, fields, max_error, control):
    """The cells of a row; `control` keeps what is known of runs in packets."""
    with tempfile.TemporaryDirectory() as folder:
        steady = Path(folder) / "steady"
        key = json.dumps(fields)
        if key not in control:
            packets, nudged = Path(folder) / "packets", Path(folder) / "nudged"
            seconds = run(binary, fields, "false", packets)
            run(binary, fields | {"topology.latency": "1001ns"}, "false", nudged)
            control[key] = seconds, completions(packets), completions(nudged)
        before, expected, nudged = control[key]
        seconds = run(binary, fields, f"{{max_error={max_error}}}", steady)
        found = completions(steady)
        hops = json.loads((steady / "performance.json").read_text())["packet_hops"]
        of = json.loads((steady / "summary.json").read_text())["steady"]
    (real, of_makespan), (other, other_makespan) = differences(expected, found), differences(expected, nudged)
    return [
        f"{before / seconds:.2g}",
        f"{100 * of['packet_hops'] / hops:.0f}%",
        percent(*real),
        percent(*other),
        f"{percent(of_makespan)} ({percent(other_makespan)})",
        percent(of["error_mean"], of["error_p99"], of["error_max"]),
        f"{of['audited']} of {of['stretches']}",
        "yes" if of["stopped"] else "",
    ]


def main():
    """Compares all cases."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--binary", default=ROOT / "target" / "release" / "netloom", help="netloom to run")
    parser.add_argument("--sizes", nargs="*", default=["64MiB", "1GiB"], help="sizes of messages")
    parser.add_argument("--errors", nargs="*", default=["0.01", "0.03"], help="values of max_error")
    parser.add_argument("--workloads", nargs="*", default=list(WORKLOADS), help="some of the workloads")
    arguments = parser.parse_args()
    print(
        "| workload | transport | size | `max_error` | faster | skipped | errors (%) | of a nudge (%) | makespan (%) | audited (%) | audits | stopped |"
    )
    print("|" + " --- |" * 12)
    for workload in arguments.workloads:
        for transport, with_transport in TRANSPORTS.items():
            for size in arguments.sizes:
                fields = LEAVES | with_transport | WORKLOADS[workload] | {"workload.size": size}
                control = {}
                for max_error in arguments.errors:
                    cells = compare(arguments.binary, fields, max_error, control)
                    print(
                        f"| {workload} | {transport} | {size} | {max_error} | " + " | ".join(cells) + " |",
                        flush=True,
                    )


if __name__ == "__main__":
    main()
