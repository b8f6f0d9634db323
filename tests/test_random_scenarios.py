"""Scenarios drawn at random over the JSON schema run or are refused: no panic, no packet unaccounted for, the same files on any number of threads.

In `make test` the same few every time; `python tests/test_random_scenarios.py 1000 500` draws those of the seeds 1000 to 1499 and prints what fails.
"""

import filecmp
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

NETLOOM = os.environ.get("NETLOOM", Path(__file__).parent.parent / "target" / "release" / "netloom")
# Of one run, and of all of them in `make test`.
SECONDS, BUDGET = 20, 60
# Exit code of a scenario that is refused; what ends a run that can deadlock, overflow or wait for ever as it was written.
REFUSED = 2
ENDS = ("deadlock: ", "the lossless fabric lost", "the run stands still", "the end of time")

NETWORKS = [
    {"kind": "fat-tree", "k": 4},
    {"kind": "leaf-spine", "leaves": 3, "spines": 2, "hosts_per_leaf": 3},
    {"kind": "k-ary-n-tree", "k": 2, "n": 3},
    {"kind": "slim-fly", "q": 3, "hosts_per_switch": 1},
    {"kind": "dragonfly", "hosts_per_switch": 1},
    {"kind": "hyperx", "dimensions": 2, "switches_per_dimension": [3], "hosts_per_switch": 2},
    {"kind": "jellyfish", "switches": 10, "degree": 3, "hosts_per_switch": 1},
]
WORK = [
    {"kind": "permutation", "size": "200KB"},
    {"kind": "uniform", "size": "20KB", "messages_per_host": 4},
    {"kind": "incast", "size": "100KB"},
    {"kind": "all-to-all", "size": "10KB"},
    {
        "kind": "incast",
        "size": "30KB",
        "senders": 4,
        "every": "5us",
        "repeat": 5,
        "receivers": "random",
        "spacing": "poisson",
    },
    {"kind": "gpu-collective", "size": "100KB", "channels": 2, "chunks": 3},
    {"kind": "gpu-collective", "operation": "all-to-all", "algorithm": "bruck", "size": "50KB", "repeat": 2},
    # Eight GPUs: two tensor-parallel ranks, two stages, two data-parallel ranks.
    {
        "kind": "training-step",
        "hidden": 64,
        "heads": 4,
        "sequence": 64,
        "vocabulary": 0,
        "tensor": 2,
        "pipeline": 2,
        "data": 2,
        "micro_batches": 3,
    },
    {"kind": "training-step", "hidden": 64, "heads": 4, "sequence": 32, "vocabulary": 100, "zero": 3},
]
JOBS = [
    {"kind": "collective", "size": "100KB", "compute": "3us"},
    {"kind": "collective", "algorithm": "pairwise-all-to-all", "size": "5KB"},
    {"kind": "collective", "algorithm": "dissemination-barrier"},
    {"kind": "all-to-all", "size": "10KB"},
    {"kind": "permutation", "size": "30KB"},
]
FLOW_CONTROL = [
    {"kind": "lossy"},
    {"kind": "pfc", "buffer": "300KB"},
    {"kind": "pfc-shared"},
    {"kind": "credits", "buffer": "30KB"},
]
FLOW_SCHEMES = [
    "ecmp",
    "wcmp",
    "s-mod-k",
    "spray",
    "spray-nic",
    "spray-round-robin",
    "presto",
    "reps",
    "drill",
    "ugal-l",
    "par",
]
VALUES = {
    "Time": ["0ps", "1ns", "500ns", "5us", "1ms"],
    "Bytes": ["0B", "100B", "1KB", "4KB", "9KB", "64KB"],
    "integer": [0, 1, 2, 7, 64],
    "number": [0.0, 0.01, 0.5, 1.0, 2.5],
    "boolean": [False, True],
}


def a_preset(draw, schema, part):
    return {"preset": draw.choice(schema["properties"][part]["anyOf"][0]["enum"])}


def a_field(draw, schema, part):
    """Half the time some field of a part, with a value of its type."""
    tables = schema["properties"][part].get("anyOf", [schema["properties"][part]])
    fields = {}
    for name, field in tables[-1]["properties"].items():
        types = field.get("type") or []
        kinds = [field.get("format"), *([types] if isinstance(types, str) else types)]
        if known := [kind for kind in kinds if kind in VALUES]:
            fields[name] = VALUES[known[0]]
    name = draw.choice(sorted(fields))
    return {name: draw.choice(fields[name])} if draw.random() < 0.5 else {}


# The axes of which kinds are drawn by name, beside those of presets.
AXES = [
    ("routing", "granularity"),
    ("routing", "selector"),
    ("transport", "congestion"),
    ("transport", "reliability"),
    ("transport", "shaping"),
    ("transport", "reorder"),
]


def names_of(schema, part, axis):
    """The names of all kinds of an axis, as the schema and `netloom list` have them."""
    field = schema["properties"][part]["anyOf"][-1]["properties"][axis]
    while "$ref" in field:
        field = schema["$defs"][field["$ref"].rpartition("/")[2]]
    return next(choice["enum"] for choice in field["anyOf"] if "enum" in choice)


def some_kinds(schema, seed):
    """Kinds with their defaults instead of a preset's in every third scenario, drawn apart from everything else."""
    draw = random.Random(f"kinds {seed}")
    if draw.random() > 1 / 3:
        return {}
    kinds = {}
    for part, axis in draw.sample(AXES, draw.choice([1, 1, 2])):
        kinds.setdefault(part, {})[axis] = draw.choice(names_of(schema, part, axis))
    return kinds


def a_fault(draw):
    start = draw.choice([0, 1, 5, 20, 50])
    kind = draw.choice(["cut", "cut", "loss", "degrade"])
    links = draw.choice([{"links": 1}, {"links": 2}, {"tier": "host", "links": 1}, {"link_fraction": 0.3}])
    fault = {"kind": kind, "from": f"{start}us", "until": f"{start + draw.choice([1, 10, 100])}us"} | links
    if kind == "cut":
        fault |= draw.choice(
            [{}, {}, {"reroute_after": "0ps"}, {"reroute_after": "7us"}, {"unreachable": "notify-source"}]
        )
    return fault | ({"probability": draw.choice([0.001, 0.05])} if kind == "loss" else {})


def some_jobs(seed):
    """Jobs beside the workload in every third scenario, drawn apart from everything else."""
    draw = random.Random(f"jobs {seed}")
    if draw.random() > 1 / 3:
        return {}
    placements = ["packed", "random", "round-robin-leaves", "by-rail", {"hosts": [0, 4, 2, 5]}]
    jobs = []
    for number in range(draw.choice([1, 2, 2, 3])):
        job = {"name": f"j{number}", "workload": draw.choice(JOBS), "ranks": draw.choice([2, 3, 4, 4])}
        job |= {"placement": draw.choice(placements), "share": draw.random() < 1 / 2}
        job |= draw.choice([{}, {"start": "7us"}, {"start_jitter": "2us"}])
        if job["workload"]["kind"] == "collective":
            job |= draw.choice([{}, {"repetitions": 3}])
        if "compute" in job["workload"]:
            job |= draw.choice(
                [{}, {"stragglers": [{"count": 1, "factor": 1.5, "max_factor": 2.5, "draw": "calculation"}]}]
            )
        jobs.append(job)
    return {"jobs": jobs}


def some_servers(seed):
    """Servers with several NICs, planes or GPUs in every third scenario, drawn apart from everything else."""
    draw = random.Random(f"servers {seed}")
    if draw.random() > 1 / 3:
        return {}
    nics = draw.choice([1, 2, 2, 4])
    servers = {"nics": nics, "planes": draw.choice([1, 1, 2, 3])}
    servers |= draw.choice([{}, {"wiring": "rail-optimised"}])
    servers["nic_selection"] = draw.choice(["stripe", "round-robin", "hash", "least-outstanding", "gpu"])
    if draw.random() < 2 / 3:
        servers["gpus"] = draw.choice([1, nics, nics])
    if draw.random() < 1 / 2:
        servers["scale_up"] = {
            "wiring": draw.choice(["switch", "all-to-all", "ideal"]),
            "latency": draw.choice(["0ps", "300ns"]),
        }
    return {"servers": servers}


def a_scenario(schema, seed):
    draw = random.Random(seed)
    kinds = some_kinds(schema, seed)
    fabric = {"flow_control": draw.choice(FLOW_CONTROL), "ecn": {"kmin": "5KB", "kmax": "50KB", "pmax": 0.5}}
    return (
        {
            "seed": seed,
            "topology": draw.choice(NETWORKS) | draw.choice([{}, {"rate": "56Gbps"}, {"latency": "10ns"}]),
            "fabric": fabric | draw.choice([{}, {"qcn": {"q_eq": "20KB"}}]) | a_field(draw, schema, "fabric"),
            "routing": a_preset(draw, schema, "routing")
            | a_field(draw, schema, "routing")
            | kinds.get("routing", {}),
            "transport": a_preset(draw, schema, "transport")
            | {"rto_initial": "100us", "rto_min": "50us"}
            | a_field(draw, schema, "transport")
            | kinds.get("transport", {}),
            "workload": draw.choice(WORK),
            "faults": [a_fault(draw) for _ in range(draw.choice([0, 1, 1, 2]))],
            "measure": draw.choice([{}, {}, {"until": "400us"}, {"sample": "2us"}]),
        }
        | some_jobs(seed)
        | some_servers(seed)
    )


def toml(value):
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{name} = {toml(inner)}" for name, inner in value.items()) + " }"
    return f"[{', '.join(map(toml, value))}]" if isinstance(value, list) else json.dumps(value)


def flow_by_flow(fields):
    """The same without packets, and without most of what is refused then; every second one with a scheme that needs no queues."""
    fields = {"detail": "flow"} | fields
    fields["faults"] = [fault for fault in fields["faults"] if fault["kind"] != "loss"]
    fields["measure"].pop("sample", None)
    fields["routing"].pop("max_flow_entries", None)
    fields["transport"].pop("subflows", None)
    if fields["seed"] % 2:
        fields["routing"] = {"preset": random.Random(f"flow {fields['seed']}").choice(FLOW_SCHEMES)}
    return fields


def beside_a_region(fields):
    """The same with only a job, a part of a mix or the first hosts in packets, and all else as flows, beside arrivals at all hosts."""
    draw = random.Random(f"region {fields['seed']}")
    fields = flow_by_flow(fields)
    fields["fabric"].pop("flow_control", None)
    fields["routing"] = {"preset": draw.choice(FLOW_SCHEMES)}
    arrivals = {"kind": "poisson", "size": draw.choice(["5KB", "vl2"]), "load": 0.4, "duration": "20us"}
    parts = [arrivals | {"name": "arrivals"}, draw.choice(WORK) | {"name": "work"}]
    fields["workload"] = (
        arrivals if fields.get("jobs") else draw.choice([arrivals, {"kind": "mix", "parts": parts}])
    )
    names = [job["name"] for job in fields.get("jobs", [])] + ["background"]
    names = names if "jobs" in fields else [part["name"] for part in fields["workload"].get("parts", [])]
    by_hosts = {"hosts": list(range(draw.choice([2, 4, 8])))}
    return fields | {"detail": {"packets": {"jobs": [draw.choice(names)]} if names else by_hosts}}


def check(schema, seed, folder, change=lambda fields: fields):
    """Whether the scenario of a seed ran; fails if something is wrong with it."""
    scenario, outs = folder / "drawn.toml", [folder / "one", folder / "three"]
    fields = change(a_scenario(schema, seed)).items()
    scenario.write_text("".join(f"{name} = {toml(value)}\n" for name, value in fields))
    for threads, out in zip(["1", "3"], outs, strict=True):
        command = [NETLOOM, "run", "--quiet", scenario, "--threads", threads, "--out", out]
        run = subprocess.run(command, check=False, capture_output=True, text=True, timeout=SECONDS)
        assert "panicked" not in run.stderr and "conservation" not in run.stderr, f"seed {seed}: {run.stderr}"
        if run.returncode == REFUSED or any(end in run.stderr for end in ENDS):
            return False
        assert run.returncode == 0, f"seed {seed}: {run.stderr}"
    names = {path.name for path in outs[0].iterdir()} - {"performance.json"}
    differing = filecmp.cmpfiles(*outs, names, shallow=False)[1:]
    assert not any(differing), f"seed {seed}: {differing}"
    return True


def read_schema():
    return json.loads(subprocess.run([NETLOOM, "schema"], check=True, capture_output=True, text=True).stdout)


def test_every_kind_is_drawn():
    schema = read_schema()
    drawn = [some_kinds(schema, seed) for seed in range(3000)]
    for part, axis in AXES:
        missing = set(names_of(schema, part, axis)) - {kinds.get(part, {}).get(axis) for kinds in drawn}
        assert not missing, f"{part}.{axis}: {missing}"


def test_what_is_drawn_runs_alike_on_any_number_of_threads_or_is_refused(tmp_path):
    schema, end, ran, seed = read_schema(), time.monotonic() + BUDGET, 0, 0
    while seed < 100 and time.monotonic() < end:
        (tmp_path / str(seed)).mkdir()
        ran += check(schema, seed, tmp_path / str(seed))
        seed += 1
    assert ran > seed / 5, "if nearly all are refused, nothing is tested"


def ran(folder, seeds, change):
    """Seed, summary, and whether the run was cut at a time, of each changed scenario that runs."""
    schema = read_schema()
    for seed in range(seeds):
        own = folder / str(seed)
        own.mkdir()
        if check(schema, seed, own, change):
            summary = json.loads((own / "one" / "summary.json").read_text())
            yield seed, summary, "until" in (own / "drawn.toml").read_text().split("measure")[1]


def test_flows_of_what_is_drawn_all_arrive_or_are_refused(tmp_path):
    count = 0
    for seed, summary, is_cut in ran(tmp_path, 300, flow_by_flow):
        assert summary["flow_level"] and (is_cut or summary["flows"]["unfinished"] == 0), f"seed {seed}"
        count += 1
    assert count > 30, "if nearly all are refused, nothing is tested"


def test_a_region_of_what_is_drawn_runs_alike_on_any_number_of_threads_or_is_refused(tmp_path):
    count = 0
    for seed, summary, is_cut in ran(tmp_path, 200, beside_a_region):
        assert is_cut or summary["flows"]["unfinished"] == 0, f"seed {seed}"
        assert is_cut or summary["background_flows"] <= summary["flows"]["completed"], f"seed {seed}"
        # Of a few arrivals all may be on one side.
        count += 0 < summary["background_flows"] and summary["totals"]["data"]["sent"] > 0
    assert count > 20, "if nearly all are refused, nothing is tested"


if __name__ == "__main__":
    first, count = map(int, sys.argv[1:])
    for seed in range(first, first + count):
        with tempfile.TemporaryDirectory() as folder:
            try:
                check(read_schema(), seed, Path(folder))
            except (AssertionError, subprocess.TimeoutExpired) as error:
                print(f"seed {seed}: {error}", flush=True)
