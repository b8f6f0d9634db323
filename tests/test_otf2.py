"""Traces in OTF2 become GOAL schedules by adapters/otf2, and run."""

import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

import netloom

CONVERTER = Path(__file__).parent.parent / "adapters/otf2/otf2_to_goal.py"

# Writes a trace of four ranks: MPI_Isend and MPI_Irecv of 8 KiB around a ring, MPI_Waitall, an MPI_Allreduce of 4 KiB, an MPI_Bcast of 1,000
# bytes from rank 2 and an MPI_Barrier, each 10 us after the one before. Its clock ticks every 10 ns. Bytes of collectives are those that Score-P writes.
WRITER = """
import sys
import otf2
from otf2.enums import CollectiveOp, GroupType, Paradigm

NAMES = ["MPI_Init", "MPI_Irecv", "MPI_Isend", "MPI_Waitall", "MPI_Allreduce", "MPI_Bcast", "MPI_Barrier"]
with otf2.writer.open(sys.argv[1], timer_resolution=10**8) as trace:
    made = trace.definitions
    machine = made.system_tree_node("machine")
    locations = [made.location("main", group=made.location_group(f"{rank}", system_tree_parent=machine)) for rank in range(4)]
    regions = {name: made.region(name, paradigm=Paradigm.MPI) for name in NAMES}
    made.group(name="all", group_type=GroupType.COMM_LOCATIONS, paradigm=Paradigm.MPI, members=locations)
    world = made.group(name="world", group_type=GroupType.COMM_GROUP, paradigm=Paradigm.MPI, members=list(range(4)))
    world = made.comm("MPI_COMM_WORLD", group=world)
    for rank, location in enumerate(locations):
        writer = trace.event_writer_from_location(location)
        is_root = rank == 2
        calls = [
            [],
            [lambda at: writer.mpi_irecv_request(at, 1)],
            [lambda at: writer.mpi_isend(at, (rank + 1) % 4, world, 5, 8192, 2)],
            [
                lambda at: writer.mpi_irecv(at, (rank - 1) % 4, world, 5, 8192, 1),
                lambda at: writer.mpi_isend_complete(at, 2),
            ],
            [lambda at: writer.mpi_collective_end(at, CollectiveOp.ALLREDUCE, world, 2**32 - 1, 4 * 4096, 4 * 4096)],
            [lambda at: writer.mpi_collective_end(at, CollectiveOp.BCAST, world, 2, 4000 if is_root else 0, 1000)],
            [lambda at: writer.mpi_collective_end(at, CollectiveOp.BARRIER, world, 2**32 - 1, 0, 0)],
        ]
        at = 100 + rank
        for region, recorded in zip(regions.values(), calls, strict=True):
            writer.enter(at, region)
            for record in recorded:
                record(at + 30)
            writer.leave(at + 50, region)
            at += 1050
"""


@pytest.fixture(scope="module")
def python():
    """An interpreter that has OTF2's package, which is no package of PyPI: apt-get install python3-otf2."""
    for candidate in (sys.executable, "/usr/bin/python3"):
        try:
            subprocess.run([candidate, "-c", "import otf2"], check=True, capture_output=True)
        except (OSError, subprocess.CalledProcessError):
            continue
        return candidate
    return pytest.skip("no Python with the package otf2 (apt-get install python3-otf2)")


def test_a_trace_runs_as_a_schedule(python, tmp_path):
    trace, schedule = tmp_path / "trace", tmp_path / "program.goal"
    subprocess.run([python, "-c", WRITER, trace], check=True)
    made = subprocess.run(
        [python, CONVERTER, trace / "traces.otf2"], capture_output=True, text=True, check=False
    )
    assert made.returncode == 0, made.stderr
    schedule.write_text(made.stdout)
    outcome = netloom.run(
        {
            "topology": {"kind": "crossbar", "hosts": 4, "rate": "400Gbps", "latency": "10ns"},
            "workload": {"kind": "goal", "file": str(schedule)},
        }
    )
    flows = list(zip(*(outcome.flows[name].tolist() for name in ("src", "dst", "bytes")), strict=True))
    ring = [(rank, (rank + 1) % 4, 8192) for rank in range(4)]
    reduced = [(rank, rank ^ bit, 4096) for rank in range(4) for bit in (1, 2)]
    broadcast = [(2, 0, 1000), (2, 3, 1000), (0, 1, 1000)]
    barrier = [(rank, (rank + step) % 4, 1) for rank in range(4) for step in (1, 2)]
    assert Counter(flows) == Counter(ring + reduced + broadcast + barrier)
    # Six times 10 us between calls, and eight messages one after the other, none of which takes longer than the 0.5 us of 8 KiB, headers and ACK.
    assert 60e6 < outcome.summary["totals"]["makespan_ps"] < 64e6


def test_what_is_no_trace_of_mpi_is_refused(python, tmp_path):
    empty = "import sys, otf2\nwith otf2.writer.open(sys.argv[1], timer_resolution=1): pass"
    subprocess.run([python, "-c", empty, tmp_path / "trace"], check=True)
    made = subprocess.run(
        [python, CONVERTER, tmp_path / "trace/traces.otf2"], capture_output=True, text=True, check=False
    )
    assert made.returncode == 1 and made.stderr == (
        "expected a trace of an MPI program, found no group of MPI's locations\n"
    )
