"""Traces in OTF2 become GOAL schedules by adapters/mpi/otf2_to_goal.py, and run."""

import json
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

import netloom

CONVERTER = Path(__file__).parent.parent / "adapters/mpi/otf2_to_goal.py"

# Writes a trace whose clock ticks every 10 ns from JSON: {"comms": {name: ranks}, "inter": {name: [ranks, ranks]}, "ranks": [[[call, event…]…]…]}. Each call takes 0.5 us, 10 us after the one
# before. An event is the name of a method of OTF2's writer and its arguments, in which "comm:NAME" is a communicator "op:NAME" a collective operation and "win:" a window.
WRITER = """
import json, sys
import otf2
from otf2.definitions import InterComm
from otf2.enums import CollectiveOp, GroupType, Paradigm

InterComm._fields = InterComm._fields[:1] + InterComm._fields[-4:]  # as in the converter
said = json.load(sys.stdin)
with otf2.writer.open(sys.argv[1], timer_resolution=10**8) as trace:
    made = trace.definitions
    machine = made.system_tree_node("machine")
    locations = [made.location("main", group=made.location_group(f"{rank}", system_tree_parent=machine)) for rank in range(len(said["ranks"]))]
    threads = [made.location("thread", group=location.group) for location in locations]
    names = {call[0] for calls in said["ranks"] for call in calls}
    regions = {name: made.region(name, paradigm=Paradigm.MPI) for name in sorted(names)}
    made.group(name="all", group_type=GroupType.COMM_LOCATIONS, paradigm=Paradigm.MPI, members=locations)
    group = lambda ranks: made.group(name="", group_type=GroupType.COMM_GROUP, paradigm=Paradigm.MPI, members=ranks)
    comms = {name: made.comm(name, group=group(ranks)) for name, ranks in said["comms"].items()}
    alone = made.group(name="", group_type=GroupType.COMM_SELF, paradigm=Paradigm.MPI, members=[])
    comms["self"] = made.comm("MPI_COMM_SELF", group=alone)
    for name, (one, other) in said.get("inter", {}).items():
        comms[name] = made.inter_comm(name, group(one), group(other))
    window = made.rma_win("window", comm=comms["world"])

    def meant(argument):
        kind, _, name = str(argument).partition(":")
        return {"comm": comms.get, "op": lambda name: getattr(CollectiveOp, name), "win": lambda _: window}.get(kind, lambda _: argument)(name)

    for rank, calls in enumerate(said["ranks"]):
        at = 100 + rank
        for region, *recorded in calls:
            writer = trace.event_writer_from_location((threads if region.endswith("thread") else locations)[rank])
            writer.enter(at, regions[region])
            for method, *arguments in recorded:
                getattr(writer, method)(at + 30, *map(meant, arguments))
            writer.leave(at + 50, regions[region])
            at += 1050
"""

NO_ROOT = 2**32 - 1


@pytest.fixture(scope="module")
def python():
    """An interpreter that has OTF2's package: PyPI has it for Python 3.10 and 3.11 on Linux on x86-64, apt for Debian's own Python (python3-otf2)."""
    for candidate in (sys.executable, "/usr/bin/python3"):
        try:
            subprocess.run([candidate, "-c", "import otf2"], check=True, capture_output=True)
        except (OSError, subprocess.CalledProcessError):
            continue
        return candidate
    return pytest.skip("no Python with the package otf2 (apt-get install python3-otf2)")


@pytest.fixture
def convert(python, tmp_path):
    """Writes a trace and converts it."""

    def converted(ranks, comms=None, inter=None):
        shutil.rmtree(tmp_path / "trace", ignore_errors=True)
        said = {"comms": comms or {"world": list(range(len(ranks)))}, "inter": inter or {}, "ranks": ranks}
        subprocess.run(
            [python, "-c", WRITER, tmp_path / "trace"], input=json.dumps(said), text=True, check=True
        )
        return subprocess.run(
            [python, CONVERTER, tmp_path / "trace/traces.otf2"], capture_output=True, text=True, check=False
        )

    return converted


def run(made, tmp_path, hosts):
    """The flows of a schedule, [(src, dst, bytes)], and when its last operation ended."""
    assert made.returncode == 0, made.stderr
    (tmp_path / "program.goal").write_text(made.stdout)
    outcome = netloom.run(
        {
            "topology": {"kind": "crossbar", "hosts": hosts, "rate": "400Gbps", "latency": "10ns"},
            "workload": {"kind": "goal", "file": str(tmp_path / "program.goal")},
        }
    )
    flows = zip(*(outcome.flows[name].tolist() for name in ("src", "dst", "bytes")), strict=True)
    return Counter(flows), outcome.summary["totals"]["makespan_ps"]


def collective(name, comm="world", root=NO_ROOT, sent=0, received=0):
    """A blocking collective operation of a rank."""
    return [
        f"MPI_{name.title()}",
        ["mpi_collective_begin"],
        ["mpi_collective_end", f"op:{name}", f"comm:{comm}", root, sent, received],
    ]


def start(request):
    """A nonblocking collective operation of a rank begins."""
    return ["MPI_Istart", ["non_blocking_collective_request", request]]


def complete(name, request, comm="world", root=NO_ROOT, sent=0, received=0):
    """It has ended, within a wait."""
    return [
        "non_blocking_collective_complete",
        f"op:{name}",
        f"comm:{comm}",
        root,
        sent,
        received,
        request,
    ]


def test_a_trace_runs_as_a_schedule(convert, tmp_path):
    # MPI_Isend and MPI_Irecv of 8 KiB around a ring, MPI_Waitall, an MPI_Allreduce of 4 KiB, an MPI_Bcast of 1,000 bytes from rank 2 and an MPI_Barrier. Bytes of collectives are those that
    # Score-P writes. MPI_Init creates the communicators, as it does with current Score-P.
    made = convert(
        [
            [
                [
                    "MPI_Init",
                    ["mpi_collective_begin"],
                    ["comm_create", "comm:world"],
                    ["comm_create", "comm:self"],
                    ["mpi_collective_end", "op:CREATE_HANDLE", "comm:world", NO_ROOT, 0, 0],
                ],
                ["MPI_Irecv", ["mpi_irecv_request", 1]],
                ["MPI_Isend", ["mpi_isend", (rank + 1) % 4, "comm:world", 5, 8192, 2]],
                [
                    "MPI_Waitall",
                    ["mpi_irecv", (rank - 1) % 4, "comm:world", 5, 8192, 1],
                    ["mpi_isend_complete", 2],
                ],
                collective("ALLREDUCE", sent=4 * 4096, received=4 * 4096),
                collective("BCAST", root=2, sent=4000 if rank == 2 else 0, received=1000),
                collective("BARRIER"),
            ]
            for rank in range(4)
        ]
    )
    flows, makespan = run(made, tmp_path, 4)
    ring = [(rank, (rank + 1) % 4, 8192) for rank in range(4)]
    reduced = [(rank, rank ^ bit, 4096) for rank in range(4) for bit in (1, 2)]
    sent = [(2, 0, 1000), (2, 3, 1000), (0, 1, 1000)]
    barrier = [(rank, (rank + step) % 4, 1) for rank in range(4) for step in (1, 2)]
    assert flows == Counter(ring + reduced + sent + 2 * barrier)
    # Six times 10 us between calls, and ten messages one after the other, none of which takes longer than the 0.5 us of 8 KiB, headers and ACK.
    assert 60e6 < makespan < 65e6


# What Score-P writes for five ranks (scorep_mpi_coll.inc.c): the bytes that each rank sends and receives, by operation, and the messages that follow.
FIVE = range(5)
BLOCKS = [100, 200, 0, 400, 500]
PAIRS = [(src, dst) for src in FIVE for dst in FIVE if src != dst]
ROOTED = [rank for rank in FIVE if rank != 3]
COLLECTIVES = {
    "BCAST": (3, lambda rank: (5 * 700 if rank == 3 else 0, 700), [(3, 4), (3, 0), (3, 2), (0, 1)], 700),
    "REDUCE": (3, lambda rank: (700, 5 * 700 if rank == 3 else 0), [(4, 3), (0, 3), (2, 3), (1, 0)], 700),
    "ALLREDUCE": (
        NO_ROOT,
        lambda _: (5 * 700, 5 * 700),
        [(1, 0), (2, 0), (3, 2), (4, 0), (0, 1), (0, 2), (2, 3), (0, 4)],
        700,
    ),
    "GATHER": (3, lambda rank: (700, 3500 if rank == 3 else 0), [(rank, 3) for rank in ROOTED], 700),
    "GATHERV": (
        3,
        lambda rank: (BLOCKS[rank], 1200 if rank == 3 else 0),
        [(rank, 3) for rank in ROOTED],
        lambda src, _: BLOCKS[src],
    ),
    "SCATTER": (3, lambda rank: (3500 if rank == 3 else 0, 700), [(3, rank) for rank in ROOTED], 700),
    "SCATTERV": (
        3,
        lambda rank: (1200 if rank == 3 else 0, BLOCKS[rank]),
        [(3, rank) for rank in ROOTED],
        lambda _, dst: BLOCKS[dst],
    ),
    "ALLGATHER": (NO_ROOT, lambda _: (3500, 3500), 4 * [(rank, (rank + 1) % 5) for rank in FIVE], 700),
    "ALLTOALL": (NO_ROOT, lambda _: (3500, 3500), PAIRS, 700),
    "REDUCE_SCATTER": (
        NO_ROOT,
        lambda rank: (sum(BLOCKS), 5 * BLOCKS[rank]),
        PAIRS,
        lambda _, dst: BLOCKS[dst],
    ),
    "REDUCE_SCATTER_BLOCK": (NO_ROOT, lambda _: (3500, 3500), PAIRS, 700),
    "SCAN": (
        NO_ROOT,
        lambda rank: ((5 - rank) * 700, (rank + 1) * 700),
        [(rank, rank + 1) for rank in range(4)],
        700,
    ),
    "EXSCAN": (
        NO_ROOT,
        lambda rank: ((4 - rank) * 700, rank * 700),
        [(rank, rank + 1) for rank in range(4)],
        700,
    ),
}


@pytest.mark.parametrize("blocking", [True, False])
@pytest.mark.parametrize("name", COLLECTIVES)
def test_each_collective_operation_has_the_bytes_of_the_trace(convert, tmp_path, name, blocking):
    # On a communicator of ranks 5, 3, 1, 6 and 0 of eight, whose places differ from their ranks.
    members = [5, 3, 1, 6, 0]
    root, written, messages, size = COLLECTIVES[name]
    ranks = [[["MPI_Init"]] for _ in range(8)]
    for place, rank in enumerate(members):
        sent, received = written(place)
        if blocking:
            ranks[rank].append(collective(name, "some", root, sent, received))
        else:
            ended = complete(name, 9, "some", root, sent, received)
            ranks[rank] += [start(9), ["MPI_Wait", ended]]
    made = convert(ranks, {"world": list(range(8)), "some": members})
    flows, _ = run(made, tmp_path, 8)
    bytes_of = size if callable(size) else lambda *_: size
    expected = [
        (members[src], members[dst], bytes_of(src, dst)) for src, dst in messages if bytes_of(src, dst)
    ]
    assert flows == Counter(expected)
    assert made.stderr == ""


def test_an_all_gather_of_different_sizes_passes_each_block_on(convert, tmp_path):
    made = convert(
        [
            [["MPI_Init"], collective("ALLGATHERV", sent=5 * BLOCKS[rank], received=sum(BLOCKS))]
            for rank in FIVE
        ]
    )
    flows, _ = run(made, tmp_path, 5)
    # A block goes around the ring, all the way to the rank before its own.
    assert flows == Counter(
        ((owner + step) % 5, (owner + step + 1) % 5, BLOCKS[owner])
        for owner in FIVE
        for step in range(4)
        if BLOCKS[owner]
    )


@pytest.mark.parametrize("name", ["ALLTOALLV", "ALLTOALLW"])
def test_an_all_to_all_of_different_sizes_has_the_sums_of_both_ends(convert, tmp_path, name):
    sends, receives = [1000, 2000, 3000], [3000, 0, 3000]
    made = convert(
        [[["MPI_Init"], collective(name, sent=sends[rank], received=receives[rank])] for rank in range(3)]
    )
    flows, _ = run(made, tmp_path, 3)
    # Half of what each rank sends goes to rank 0 and half to rank 2; a rank's own part is no message.
    assert flows == Counter([(1, 0, 1000), (2, 0, 1500), (0, 2, 500), (1, 2, 1000)])
    assert made.stderr == (
        f"note: the blocks of 1 operations {name} are estimated: a trace has what each rank sends and receives in all\n"
    )
    made = convert([[["MPI_Init"], collective(name, sent=8, received=8 * rank)] for rank in range(2)])
    assert made.returncode == 1 and made.stderr == (
        f"expected as many bytes sent as received, found 16 and 8: an operation {name} of world\n"
    )


def test_computation_goes_on_beside_a_nonblocking_collective(convert, tmp_path):
    # Two operations begin, and end in another order on rank 1. Rank 1 comes 10 us later to both: what rank 0 computes meanwhile is hidden.
    first = ("ALLREDUCE", 1, "world", NO_ROOT, 2 * 10**6, 2 * 10**6)
    second = ("BCAST", 2, "world", 0)
    waits = [
        [complete(*first), complete(*second, sent=1000, received=500)],
        [complete(*second, received=500), complete(*first)],
    ]
    ranks = [
        [
            ["MPI_Init"],
            start(1),
            start(2),
            ["MPI_Comm_rank"],
            ["MPI_Comm_rank"],
            ["MPI_Waitall", *waits[rank]],
        ]
        for rank in range(2)
    ]
    flows, hidden = run(convert(ranks), tmp_path, 2)
    assert flows == Counter([(0, 1, 10**6), (1, 0, 10**6), (0, 1, 500)])
    # Five times 10 us between calls: the operations, which begin in the second and third call, are done before the wait.
    assert 50e6 <= hidden < 51e6
    blocking = [
        [
            ["MPI_Init"],
            collective("ALLREDUCE", sent=2 * 10**6, received=2 * 10**6),
            ["MPI_Comm_rank"],
            ["MPI_Comm_rank"],
            ["MPI_Comm_rank"],
            ["MPI_Comm_rank"],
        ]
        for _ in range(2)
    ]
    _, exposed = run(convert(blocking), tmp_path, 2)
    # A megabyte takes 20 us at least.
    assert exposed - hidden > 20e6


def test_groups_of_all_kinds_and_cancelled_requests(convert, tmp_path):
    # Ranks 0 and 1 are joined with 2 and 3 by an inter-communicator: rank 1 sends to the first of the others. Each rank has its own MPI_COMM_SELF. A send and a receive are cancelled.
    ranks = [
        [["MPI_Init"], collective("BARRIER", "self"), collective("CREATE_HANDLE", "joined")] for _ in range(4)
    ]
    ranks[1] += [
        ["MPI_Send", ["mpi_send", 0, "comm:joined", 1, 300]],
        ["MPI_Isend", ["mpi_isend", 1, "comm:joined", 1, 77, 5]],
        ["MPI_Wait", ["mpi_request_cancelled", 5]],
    ]
    ranks[2] += [
        ["MPI_Irecv", ["mpi_irecv_request", 6]],
        ["MPI_Test", ["mpi_request_test", 6]],
        ["MPI_Recv", ["mpi_recv", 1, "comm:joined", 1, 300]],
        ["MPI_Wait", ["mpi_request_cancelled", 6]],
    ]
    made = convert(ranks, inter={"joined": [[0, 1], [2, 3]]})
    flows, _ = run(made, tmp_path, 4)
    barrier = [(rank, (rank + step) % 4, 1) for rank in range(4) for step in (1, 2)]
    assert flows == Counter([*barrier, (1, 2, 300)])


@pytest.mark.parametrize(
    ("calls", "message"),
    [
        (
            [["MPI_Put", ["rma_put", "win:", 0, 8, 1]]],
            "rank 0: expected messages and collective operations, found RmaPut\n",
        ),
        (
            [["MPI_Neighbor_alltoall", ["mpi_collective_end", "op:ALLTOALL", "comm:world", NO_ROOT, 8, 8]]],
            "rank 0: expected messages and collective operations among all, found MPI_Neighbor_alltoall\n",
        ),
        (
            [collective("BARRIER", "joined")],
            "rank 0: expected a collective operation of one group, found BARRIER over the inter-communicator joined\n",
        ),
        (
            [collective("ALLOCATE")],
            "rank 0: expected a collective operation of messages, found ALLOCATE\n",
        ),
        (
            [start(7)],
            "rank 0: expected the end of a nonblocking collective operation, found none: request 7\n",
        ),
        (
            [["MPI_Send on a thread", ["mpi_send", 0, "comm:world", 1, 300]]],
            "expected calls of MPI by one thread of each rank, found Enter of thread\n",
        ),
    ],
)
def test_what_has_no_messages_in_the_trace_is_refused(convert, calls, message):
    made = convert([[["MPI_Init"], *calls], [["MPI_Init"]]], inter={"joined": [[0], [1]]})
    assert made.returncode == 1 and made.stderr == message


def test_ranks_that_disagree_are_refused(convert):
    made = convert(
        [[["MPI_Init"], collective("BARRIER"), collective(name)] for name in ("BARRIER", "ALLREDUCE")]
    )
    assert made.returncode == 1 and made.stderr == (
        "rank 1: expected BARRIER as other ranks have it, found ALLREDUCE: collective operation 2 of world\n"
    )


def test_what_is_no_trace_of_mpi_is_refused(python, tmp_path):
    empty = "import sys, otf2\nwith otf2.writer.open(sys.argv[1], timer_resolution=1): pass"
    subprocess.run([python, "-c", empty, tmp_path / "trace"], check=True)
    made = subprocess.run(
        [python, CONVERTER, tmp_path / "trace/traces.otf2"], capture_output=True, text=True, check=False
    )
    assert made.returncode == 1 and made.stderr == (
        "expected a trace of an MPI program, found no group of MPI's locations\n"
    )
