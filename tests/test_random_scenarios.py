"""Scenarios drawn at random from the schema run or are refused: no panic, nothing lost without a trace, the same files on any number of threads.

In the tests a few, always the same; `python tests/test_random_scenarios.py --first 1000 --count 500` draws others and prints what fails.
"""

import argparse
import filecmp
import json
import random
import subprocess
import tempfile
import time
from pathlib import Path

import pytest

NETLOOM = Path(__file__).parent.parent / "target" / "release" / "netloom"
# One run at most, and all of them in the tests.
SECONDS, BUDGET = 20, 60
CASES = 60
# What a scenario that is refused, or a run that its user let deadlock or overflow, ends with.
REFUSED = 2
EXPECTED = ("deadlock: ", "the lossless fabric lost", "the run stands still", "the end of time")

NETWORKS = [
    {"kind": "fat-tree", "k": 4},
    {"kind": "leaf-spine", "leaves": 3, "spines": 2, "hosts_per_leaf": 3},
    {"kind": "k-ary-n-tree", "k": 2, "n": 3},
    {"kind": "crossbar", "hosts": 5},
    {"kind": "slim-fly", "q": 3, "hosts_per_switch": 1},
    {"kind": "dragonfly", "hosts_per_switch": 1},
    {"kind": "hyperx", "dimensions": 2, "switches_per_dimension": [3], "hosts_per_switch": 2},
    {"kind": "complete", "switches": 5, "hosts_per_switch": 2},
    {"kind": "jellyfish", "switches": 10, "degree": 3, "hosts_per_switch": 1},
]
WORK = [
    {"kind": "permutation", "size": "200KB"},
    {"kind": "uniform", "size": "20KB", "messages_per_host": 4},
    {"kind": "incast", "size": "100KB"},
    {"kind": "all-to-all", "size": "10KB"},
]
FLOW_CONTROL = [
    {"kind": "lossy"},
    {"kind": "pfc", "buffer": "300KB"},
    {"kind": "pfc-shared"},
    {"kind": "credits", "buffer": "30KB"},
]
VALUES = {
    "Time": ["0ps", "1ns", "500ns", "5us", "70us", "1ms"],
    "Bytes": ["0B", "100B", "1KB", "4KB", "9KB", "64KB"],
    "Rate": ["1Gbps", "56Gbps", "400Gbps"],
    "integer": [0, 1, 2, 3, 7, 64, 1000],
    "number": [0.0, 0.01, 0.3, 0.5, 1.0, 2.5],
    "boolean": [False, True],
}


def draw_fields(draw, schema, kind, most):
    """A few fields of a table of this kind (none: of the table without kinds), with values of their types."""
    tables = [table for table in schema.get("anyOf", [schema]) if "properties" in table]
    same = [table for table in tables if table["properties"].get("kind", {}).get("const") == kind]
    fields = (same or tables)[0]["properties"]
    drawn = {}
    for name in draw.sample(sorted(fields), min(draw.randint(0, most), len(fields))):
        field = fields[name]
        types = field.get("type", [])
        types = [types] if isinstance(types, str) else types
        choices = field.get("enum") or next((VALUES[t] for t in [field.get("format"), *types] if t in VALUES), None)
        if choices and name not in ("kind", "preset", "about_hosts"):
            drawn[name] = draw.choice(choices)
    return drawn


def presets(schema, field):
    """The presets of a part of scenarios."""
    found = [
        value
        for table in schema["properties"][field].get("anyOf", [schema["properties"][field]])
        for value in table.get("enum", []) + table.get("properties", {}).get("preset", {}).get("enum", [])
    ]
    return sorted(set(filter(None, found)))


def draw_fault(draw):
    start = draw.choice([0, 1, 5, 20, 50])
    links = draw.choice([{"links": 1}, {"links": 2}, {"tier": "host", "links": 1}, {"share": 0.3}])
    kind = draw.choice(["cut", "cut", "loss", "degrade"])
    fault = {"kind": kind, "from": f"{start}us", "until": f"{start + draw.choice([1, 10, 100])}us", **links}
    if kind == "cut":
        fault |= draw.choice([{}, {"reroute_after": "0ps"}, {"reroute_after": "7us"}, {"unreachable": "signal"}])
    return fault | ({"probability": draw.choice([0.001, 0.05])} if kind == "loss" else {})


def draw_scenario(schema, seed):
    draw = random.Random(seed)
    part = schema["properties"]
    fabric = {"flow_control": draw.choice(FLOW_CONTROL), **draw_fields(draw, part["fabric"], None, 1)}
    # Most schemes and transports need marks, some notifications.
    if draw.random() < 0.9:
        fabric["ecn"] = {"kmin": "5KB", "kmax": "50KB", "pmax": 0.5}
    if draw.random() < 0.4:
        fabric["qcn"] = {"q_eq": "20KB"}
    transport = {"preset": draw.choice(presets(schema, "transport")), "rto_initial": "100us", "rto_min": "50us"}
    routing = {"preset": draw.choice(presets(schema, "routing")), **draw_fields(draw, part["routing"], None, 1)}
    measure = {"until": "400us"} if draw.random() < 0.5 else {}
    if draw.random() < 0.3:
        measure["sample"] = "2us"
    return {
        "name": "drawn",
        "seed": seed,
        "topology": draw.choice(NETWORKS) | draw.choice([{}, {"rate": "56Gbps"}, {"latency": "10ns"}]),
        "fabric": fabric,
        "routing": routing,
        "transport": transport | draw_fields(draw, part["transport"], None, 1),
        "workload": draw.choice(WORK),
        "faults": [draw_fault(draw) for _ in range(draw.choice([0, 1, 1, 2]))],
        "measure": measure,
    }


def toml(value):
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{name} = {toml(inner)}" for name, inner in value.items()) + " }"
    return f"[{', '.join(map(toml, value))}]" if isinstance(value, list) else json.dumps(value)


def check(schema, seed, folder):
    """What is wrong with a scenario; none if nothing is. Whether it ran, too."""
    scenario = folder / "drawn.toml"
    fields = draw_scenario(schema, seed).items()
    scenario.write_text("".join(f"{name} = {toml(value)}\n" for name, value in fields))
    outcomes = []
    for threads in [1, 3]:
        out = folder / f"on-{threads}"
        command = [NETLOOM, "run", "-q", scenario, "--threads", str(threads), "--out", out]
        try:
            run = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS)
        except subprocess.TimeoutExpired:
            return f"more than {SECONDS} s", True
        if "panicked" in run.stderr or "conservation" in run.stderr:
            return run.stderr, True
        if run.returncode == REFUSED or any(words in run.stderr for words in EXPECTED):
            return None, False
        if run.returncode:
            return f"{run.returncode}: {run.stderr}", True
        outcomes.append(out)
    one, three = outcomes
    names = {path.name for path in one.iterdir()} - {"performance.json"}
    differ = [name for name in sorted(names) if not filecmp.cmp(one / name, three / name, shallow=False)]
    return (f"{differ} differ by threads" if differ else None), True


def read_schema():
    return json.loads(subprocess.run([NETLOOM, "schema"], check=True, capture_output=True, text=True).stdout)


@pytest.fixture(scope="module")
def schema():
    return read_schema()


def test_what_is_drawn_runs_alike_on_one_thread_and_three_or_is_refused(schema, tmp_path):
    end, ran = time.monotonic() + BUDGET, 0
    for seed in range(CASES):
        (tmp_path / str(seed)).mkdir()
        wrong, has_run = check(schema, seed, tmp_path / str(seed))
        assert wrong is None, f"seed {seed}: {wrong}"
        ran += has_run
        if time.monotonic() > end:
            break
    # If nearly all are refused, nothing is tested.
    assert ran > seed / 5


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--count", type=int, default=CASES)
    parser.add_argument("--netloom", type=Path, default=NETLOOM)
    arguments = parser.parse_args()
    NETLOOM = arguments.netloom
    ran = 0
    for seed in range(arguments.first, arguments.first + arguments.count):
        with tempfile.TemporaryDirectory() as folder:
            wrong, has_run = check(read_schema(), seed, Path(folder))
        ran += has_run
        if wrong:
            print(f"seed {seed}: {wrong}", flush=True)
    print(f"{ran} of {arguments.count} ran")
