"""Driven runs from Python: both ends of flows, many flows at once, and the examples of programs that drive."""

import importlib.util
import subprocess
import sys
import time
from pathlib import Path

import pytest

import netloom

TREE = {"topology": {"kind": "fat-tree", "k": 4}}
EXAMPLES = Path(__file__).parent.parent / "examples"


def completions(sim):
    return list(iter(sim.next_completion, None))


@pytest.mark.parametrize("reaction", [0, "10ns"])
def test_flows_complete_at_both_ends(reaction):
    sim = netloom.Simulation(TREE, reaction=reaction, acknowledged=True)
    sim.start(0, 9, "1MiB", tag="a")
    arrived, acknowledged = completions(sim)
    assert (arrived.event, acknowledged.event) == ("arrived", "acknowledged")
    assert arrived.time_ps < acknowledged.time_ps and (arrived.tag, acknowledged.tag) == ("a", "a")
    flow = sim.finish().flows
    assert flow["fct_ps"].tolist() == [arrived.fct_ps]
    plain = netloom.Simulation(TREE, reaction=reaction)
    plain.start(0, 9, "1MiB")
    assert completions(plain) == [arrived._replace(tag=None)]


def test_acknowledgements_need_a_transport_with_acks():
    transport = {"mtu": 1500, "reliability": "none", "congestion": "none"}
    with pytest.raises(netloom.ScenarioError, match="acknowledged: expected a transport with ACKs"):
        netloom.Simulation(TREE | {"transport": transport}, acknowledged=True)


def test_many_flows_start_in_one_call_or_none():
    flows = [(i % 16, i // 16 % 16, 1000 + i, i) for i in range(4000)]
    one, many = (netloom.Simulation(TREE, reaction="10ns") for _ in range(2))
    for flow in flows:
        one.start(*flow)
    with pytest.raises(
        netloom.ScenarioError, match=r"flows\[3999\].dst: expected a host from 0 to 15, found 16"
    ):
        many.start_many([*flows[:-1], (0, 16, 1, None)])
    for wrong, message in [
        ((0, 1, 1), r"flows\[1\]: expected \(src, dst, size, tag\)"),
        ((0, 1, 1.5, None), r"flows\[1\].size: expected a whole number"),
    ]:
        with pytest.raises(TypeError, match=message):
            many.start_many([(0, 1, 1, None), wrong])
    assert many.next_completion() is None, "none of them has started"
    many.start_many(flows)
    assert completions(one) == completions(many)


def test_what_flows_of_a_list_may_say():
    sim = netloom.Simulation(TREE)
    sim.start_many(iter([(0, 1, "1KiB", "a"), (2, 3, 1, "b", "3us"), [4, 5, 1, "c", None, 0]]))
    starts = {done.tag: (done.size, done.start_ps) for done in completions(sim)}
    assert starts == {"a": (1024, 0), "b": (1, 3_000_000), "c": (1, 0)}


@pytest.mark.parametrize("reaction", [0, "10ns"])
def test_flows_of_no_bytes_and_to_oneself(reaction):
    sim = netloom.Simulation(TREE, reaction=reaction)
    sim.start_many([(3, 3, "1GiB", "self", "2us"), (3, 9, 0, "empty"), (3, 9, 1, "byte", "50us")])
    found = {done.tag: done for done in completions(sim)}
    assert found["self"].fct_ps == 0 and found["self"].time_ps == 2_000_000
    assert found["empty"].size == 0 and found["empty"].fct_ps == found["byte"].fct_ps
    assert sim.finish().flows["bytes"].tolist() == [1, 1]


def test_a_program_with_timers_hears_of_nothing_that_completes_later():
    sim = netloom.Simulation(TREE, reaction="10us")
    sim.start_many([(0, 9, 10_000, "a"), (1, 8, 10_000, "b", "1ns")])
    first = sim.next_completion()
    assert sim.next_completion(first.time_ps + 1) is None and sim.now_ps == first.time_ps + 1
    second = sim.next_completion(first.time_ps + 10_000_000)
    assert first.time_ps + 1 < second.time_ps < first.time_ps + 1_000_000
    # As the run was to go no further.
    assert sim.earliest_start_ps == first.time_ps + 10_000_000


def test_a_scheduler_handles_ten_thousand_completions_per_second():
    """Ten times as many on a busy machine, so that only a loop that has become much slower fails."""
    path = EXAMPLES / "scheduler.py"
    spec = importlib.util.spec_from_file_location("scheduler", path)
    scheduler = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(scheduler)
    tasks = 5000
    loop = scheduler.schedule(tasks)
    assert len(loop.times_ps) == tasks
    # A task computes for 5 us at least, and two messages of a packet take over 1 us each.
    assert min(loop.times_ps) > 7_000_000
    assert scheduler.schedule(tasks).times_ps == loop.times_ps
    assert loop.completions_per_second > 10_000


@pytest.mark.parametrize("example", ["serving.py", "training.py"])
def test_the_examples_run_and_spraying_is_faster(example):
    begin = time.monotonic()
    run = subprocess.run([sys.executable, EXAMPLES / example], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    assert time.monotonic() - begin < 20
    ecmp, spray = run.stdout.splitlines()
    assert ecmp.startswith("ecmp: ") and spray.startswith("spray: ")
    last = [float(line.split(" ms")[-2].split()[-1]) for line in (ecmp, spray)]
    assert 0 < last[1] < last[0], run.stdout
