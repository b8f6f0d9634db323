"""Traces in DUMPI's text, as dumpi2ascii writes it, become GOAL schedules by adapters/mpi/dumpi_to_goal.py, and run."""

import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

import netloom

CONVERTER = Path(__file__).parent.parent / "adapters/mpi/dumpi_to_goal.py"

SIZES = "Datatype 5 (MPI_BYTE) has size 1\nDatatype 9 (MPI_INT) has size 4\nDatatype 28 (user-defined-datatype) has size 24\n"
BYTE, INT, VECTOR = "MPI_Datatype {}=5 (MPI_BYTE)", "MPI_Datatype {}=9 (MPI_INT)", "MPI_Datatype {}=28 (user)"
WORLD = "MPI_Comm comm=2 (MPI_COMM_WORLD)"
INIT = ("MPI_Init", "int argc=1", 'string argv[1]=["./mpi"]')


def text(calls):
    """A rank's trace as dumpi2ascii writes it: each call takes 0.5 us, 10 us after the one before."""
    lines = ["version=1.0.0", "hostname=somewhere", "meshsize=[]"]
    at = 999_990_000
    for name, *arguments in calls:
        for verb, time in (("entering", at), ("returning", at + 500)):
            clock = f"{1296777956 + time // 10**9}.{time % 10**9:09}"
            lines.append(f"{name} {verb} at walltime {clock}, cputime 0.007712000 seconds in thread 0.")
            lines += arguments if verb == "entering" else []
        at += 10_500
    return "\n".join([*lines, "MPI_Send called 0 times and ignored 0 times", SIZES])


@pytest.fixture
def convert(tmp_path):
    """Writes traces and converts them."""

    def converted(ranks):
        files = []
        for number, calls in enumerate(ranks):
            files.append(tmp_path / f"{number}.txt")
            files[-1].write_text(text(calls))
        command = [sys.executable, CONVERTER, *files]
        return subprocess.run(command, capture_output=True, text=True, check=False)

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


def message(name, peer, size, *more, datatype=BYTE, tag=7, comm=WORLD):
    """A call that sends or receives."""
    side = "source" if "ecv" in name else "dest"
    return (
        name,
        f"int count={size}",
        datatype.format("datatype"),
        f"int {side}={peer}",
        f"int tag={tag}",
        comm,
        *more,
    )


def status(source, tag=7, cancelled=0):
    """One status."""
    return f"{{bytes=64, cancelled={cancelled}, source={source}, tag={tag}, error=0}}"


def test_a_trace_runs_as_a_schedule(convert, tmp_path):
    # MPI_Isend and MPI_Irecv of 8 KiB around a ring, MPI_Waitall, an MPI_Allreduce of 4 KiB. The second of the clock changes.
    made = convert(
        [
            [
                INIT,
                ("MPI_Comm_rank", WORLD, f"int rank={rank}"),
                message("MPI_Irecv", (rank - 1) % 4, 2048, "MPI_Request request=[2]", datatype=INT),
                message("MPI_Isend", (rank + 1) % 4, 2048, "MPI_Request request=[3]", datatype=INT),
                (
                    "MPI_Waitall",
                    "int count=2",
                    "MPI_Request requests[2]=[2, 3]",
                    "MPI_Status statuses[2]=<IGNORED>",
                ),
                (
                    "MPI_Allreduce",
                    "int count=1024",
                    INT.format("datatype"),
                    "MPI_Op op=3 (MPI_SUM)",
                    WORLD,
                ),
                ("MPI_Finalize",),
            ]
            for rank in range(4)
        ]
    )
    flows, makespan = run(made, tmp_path, 4)
    ring = [(rank, (rank + 1) % 4, 8192) for rank in range(4)]
    reduced = [(rank, rank ^ bit, 4096) for rank in range(4) for bit in (1, 2)]
    assert flows == Counter(ring + reduced)
    # Six times 10 us between calls; the ring is hidden behind the second of them, and the two messages of the all-reduce take less than 0.5 us each.
    assert 60e6 < makespan < 61.5e6


# Of five ranks: what each says of an operation, and the messages that follow.
FIVE = range(5)
BLOCKS = [100, 200, 0, 400, 500]
PAIRS = [(src, dst) for src in FIVE for dst in FIVE if src != dst]
ROOTED = [rank for rank in FIVE if rank != 3]
ROOT = "int root=3"
COUNT = ["int count=700", BYTE.format("datatype")]
SENT, RECEIVED = BYTE.format("sendtype"), BYTE.format("recvtype")
# As many bytes from one rank to another as this, in units of the datatype of 24 bytes.
UNITS = [[7 * src + dst if (src + dst) % 3 else 0 for dst in FIVE] for src in FIVE]


def counts(name, numbers):
    """An array of numbers."""
    return f"int {name}[{len(numbers)}]=[{', '.join(map(str, numbers))}]"


def types(name):
    """Five times the datatype of 24 bytes."""
    return f"MPI_Datatype {name}[5]=[28, 28, 28, 28, 28]"


COLLECTIVES = {
    "MPI_Bcast": (lambda _: [*COUNT, ROOT], [(3, 4), (3, 0), (3, 2), (0, 1)], 700),
    "MPI_Reduce": (lambda _: [*COUNT, ROOT], [(4, 3), (0, 3), (2, 3), (1, 0)], 700),
    "MPI_Allreduce": (
        lambda _: COUNT,
        [(1, 0), (2, 0), (3, 2), (4, 0), (0, 1), (0, 2), (2, 3), (0, 4)],
        700,
    ),
    "MPI_Scan": (lambda _: COUNT, [(rank, rank + 1) for rank in range(4)], 700),
    "MPI_Exscan": (lambda _: COUNT, [(rank, rank + 1) for rank in range(4)], 700),
    "MPI_Gather": (
        lambda rank: [ROOT, f"int sendcount={0 if rank == 3 else 700}", SENT],
        [(rank, 3) for rank in ROOTED],
        700,
    ),
    "MPI_Gatherv": (
        lambda rank: [ROOT, f"int sendcount={BLOCKS[rank]}", SENT, "int recvcounts[5]=<IGNORED>"],
        [(rank, 3) for rank in ROOTED],
        lambda src, _: BLOCKS[src],
    ),
    "MPI_Scatter": (
        lambda rank: [ROOT, f"int recvcount={0 if rank == 3 else 700}", RECEIVED],
        [(3, rank) for rank in ROOTED],
        700,
    ),
    "MPI_Scatterv": (
        lambda rank: [ROOT, f"int recvcount={BLOCKS[rank]}", RECEIVED],
        [(3, rank) for rank in ROOTED],
        lambda _, dst: BLOCKS[dst],
    ),
    "MPI_Allgather": (
        lambda _: ["int sendcount=0", SENT, "int recvcount=700", RECEIVED],
        4 * [(rank, (rank + 1) % 5) for rank in FIVE],
        700,
    ),
    "MPI_Allgatherv": (
        lambda _: [counts("recvcounts", [30] * 5), VECTOR.format("recvtype")],
        4 * [(rank, (rank + 1) % 5) for rank in FIVE],
        720,
    ),
    "MPI_Alltoall": (
        lambda _: ["int sendcount=0", SENT, "int recvcount=700", RECEIVED],
        PAIRS,
        700,
    ),
    "MPI_Alltoallv": (
        lambda rank: [counts("recvcounts", [UNITS[src][rank] for src in FIVE]), VECTOR.format("recvtype")],
        PAIRS,
        lambda src, dst: 24 * UNITS[src][dst],
    ),
    "MPI_Alltoallw": (
        lambda rank: [counts("recvcounts", [UNITS[src][rank] for src in FIVE]), types("recvtypes")],
        PAIRS,
        lambda src, dst: 24 * UNITS[src][dst],
    ),
    "MPI_Reduce_scatter": (
        lambda _: [counts("recvcounts", BLOCKS), BYTE.format("datatype")],
        PAIRS,
        lambda _, dst: BLOCKS[dst],
    ),
}


@pytest.mark.parametrize("name", COLLECTIVES)
def test_each_collective_operation_has_the_bytes_of_the_trace(convert, tmp_path, name):
    # On a communicator of ranks 3, 5, 1, 6 and 0 of eight: those of colour 4 by their keys, equal ones in the order of ranks. Its handle is another number on each rank.
    keys = {3: -1, 5: -1, 1: 0, 6: 0, 0: 1}
    members = list(keys)
    said, messages, size = COLLECTIVES[name]
    ranks = []
    for rank in range(8):
        handle = 4 + rank if rank in keys else 1
        split = (
            "MPI_Comm_split",
            "MPI_Comm oldcomm=2 (MPI_COMM_WORLD)",
            f"int color={4 if rank in keys else -32766}",
            f"int key={keys.get(rank, 0)}",
            f"MPI_Comm newcomm={handle} (user-defined-comm)",
        )
        ranks.append([INIT, split])
        if rank in keys:
            comm = f"MPI_Comm comm={handle} (user-defined-comm)"
            ranks[rank].append((name, *said(members.index(rank)), comm))
    flows, _ = run(convert(ranks), tmp_path, 8)
    bytes_of = size if callable(size) else lambda *_: size
    expected = [
        (members[src], members[dst], bytes_of(src, dst)) for src, dst in messages if bytes_of(src, dst)
    ]
    barrier = [(rank, (rank + step) % 8, 1) for rank in range(8) for step in (1, 2, 4)]
    assert flows == Counter(barrier + expected)


def test_communicators_are_those_of_their_groups(convert, tmp_path):
    # MPI_COMM_WORLD's group without rank 0 and backwards makes one of ranks 3, 2 and 1; a copy of that is split, for a message from its first to its last rank: from 3 to 1. Messages of the same
    # tag on two communicators do not meet: those of MPI_COMM_WORLD come second, but are sent first.
    world, here = "MPI_Comm {}=2 (MPI_COMM_WORLD)", "MPI_Comm {}={} (user-defined-comm)"
    made = [
        ("MPI_Comm_group", world.format("comm"), "MPI_Group group=5 (user)"),
        ("MPI_Group_excl", "MPI_Group group=5 (user)", counts("ranks", [0]), "MPI_Group newgroup=6 (user)"),
        (
            "MPI_Group_incl",
            "MPI_Group group=6 (user)",
            counts("ranks", [2, 1, 0]),
            "MPI_Group newgroup=7 (user)",
        ),
    ]
    ranks = []
    for rank in range(4):
        handle = 4 if rank else 1
        ranks.append(
            [
                INIT,
                *made,
                (
                    "MPI_Comm_create",
                    world.format("oldcomm"),
                    "MPI_Group group=7 (user)",
                    here.format("newcomm", handle),
                ),
            ]
        )
        if rank:
            ranks[rank] += [
                ("MPI_Comm_dup", here.format("oldcomm", 4), here.format("newcomm", 5)),
                (
                    "MPI_Comm_split",
                    here.format("oldcomm", 5),
                    "int color=1",
                    "int key=0",
                    here.format("newcomm", 6),
                ),
                ("MPI_Comm_free", here.format("comm", 5)),
            ]
    comm = here.format("comm", 6)
    ranks[3] += [message("MPI_Send", 1, 50), message("MPI_Send", 2, 80, comm=comm)]
    ranks[1] += [message("MPI_Recv", 0, 80, comm=comm), message("MPI_Recv", 3, 50)]
    flows, _ = run(convert(ranks), tmp_path, 4)
    barriers = [(rank, (rank + step) % 4, 1) for rank in range(4) for step in (1, 2)]
    barriers += 3 * [(rank, 1 + (rank - 1 - step) % 3, 1) for rank in (1, 2, 3) for step in (1, 2)]
    assert flows == Counter([*barriers, (3, 1, 50), (3, 1, 80)])


def test_requests_of_all_kinds(convert, tmp_path):
    # Persistent requests twice; a receive from any source and with any tag, whose status says which; MPI_PROC_NULL of both libraries; cancelled receives; waits for some.
    one = "MPI_Request request=[{}]"
    ranks = [[INIT], [INIT]]
    ranks[0] += [
        message("MPI_Send_init", 1, 10, one.format(2)),
        ("MPI_Start", one.format(2)),
        ("MPI_Wait", one.format(2), "MPI_Status status=<IGNORED>"),
        ("MPI_Startall", "int count=1", "MPI_Request requests[1]=[2]"),
        (
            "MPI_Testall",
            "int count=1",
            "MPI_Request requests[1]=[2]",
            "int flag=0",
            "MPI_Status statuses[1]=<IGNORED>",
        ),
        ("MPI_Wait", one.format(2), "MPI_Status status=<IGNORED>"),
        ("MPI_Request_free", one.format(2)),
        message("MPI_Ssend", 1, 30, tag=9),
        message("MPI_Send", -1, 99),
        message("MPI_Recv", -2, 99, "MPI_Status status=<IGNORED>"),
        message("MPI_Recv", -1, 99, f"MPI_Status status=[{status(-1)}]"),
        message("MPI_Irecv", 1, 99, one.format(8)),
        ("MPI_Cancel", one.format(8)),
        ("MPI_Wait", one.format(8), f"MPI_Status status=[{status(1, cancelled=1)}]"),
        (
            "MPI_Sendrecv",
            "int sendcount=3",
            VECTOR.format("sendtype"),
            "int dest=1",
            "int sendtag=1",
            "int recvcount=4",
            INT.format("recvtype"),
            "int source=1",
            "int recvtag=2",
            WORLD,
            "MPI_Status status=<IGNORED>",
        ),
    ]
    ranks[1] += [
        message("MPI_Irecv", 0, 10, one.format(5)),
        message("MPI_Irecv", 0, 10, one.format(6)),
        message("MPI_Irecv", -1, 64, one.format(7), tag=-1),
        (
            "MPI_Waitany",
            "int count=3",
            "MPI_Request requests[3]=[5, 6, 7]",
            "int index=1",
            "MPI_Status status=<IGNORED>",
        ),
        (
            "MPI_Waitsome",
            "int count=3",
            "MPI_Request requests[3]=[5, 1, 7]",
            "int outcount=2",
            "int indices[2]=[2, 0]",
            f"MPI_Status statuses[2]=[{status(0, tag=9)}, {status(0)}]",
        ),
        (
            "MPI_Sendrecv_replace",
            "int count=72",
            BYTE.format("datatype"),
            "int dest=0",
            "int sendtag=2",
            "int source=0",
            "int recvtag=1",
            WORLD,
            "MPI_Status status=<IGNORED>",
        ),
    ]
    flows, _ = run(convert(ranks), tmp_path, 2)
    assert flows == Counter([(0, 1, 10), (0, 1, 10), (0, 1, 30), (0, 1, 72), (1, 0, 72)])


def test_time_in_files_is_computation(convert, tmp_path):
    file = ("MPI_File_write", "MPI_File file=3 (user-file)", "int count=1", BYTE.format("datatype"))
    _, with_file = run(convert([[INIT, file, ("MPI_Barrier", WORLD)]] * 2), tmp_path, 2)
    _, without = run(convert([[INIT, ("MPI_Wtime",), ("MPI_Barrier", WORLD)]] * 2), tmp_path, 2)
    assert with_file - without == 500_000


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (
            ("MPI_Put",),
            "MPI_Put: expected messages and collective operations within the program, found MPI_Put",
        ),
        (
            ("MPI_Win_fence",),
            "MPI_Win_fence: expected messages and collective operations within the program, found MPI_Win_fence",
        ),
        (
            message("MPI_Recv", -1, 64, "MPI_Status status=<IGNORED>"),
            "MPI_Recv: expected a status that says which source a message came from or with, found any and no status",
        ),
        (
            message("MPI_Send", 1, 64, datatype="MPI_Datatype {}=29 (user)"),
            "MPI_Send: expected the size of datatype 29 in the trace (dumpi2ascii -SX), found none",
        ),
        (
            message("MPI_Send", 1, 64, comm="MPI_Comm comm=8 (user)"),
            "MPI_Send: expected a communicator that the trace says how it was made, found comm=8",
        ),
        (
            ("MPI_Comm_rank", WORLD, "int rank=1"),
            "MPI_Comm_rank: expected rank 0, as it is the file of that number, found rank 1",
        ),
        (
            ("MPI_Comm_size", WORLD, "int size=3"),
            "MPI_Comm_size: expected 2 ranks, as there are so many files, found 3",
        ),
        (
            (
                "MPI_Comm_split",
                "MPI_Comm oldcomm=2 (MPI_COMM_WORLD)",
                "int color=1",
                "int key=0",
                "MPI_Comm newcomm=4",
            ),
            "MPI_Comm_split: expected all ranks of the communicator to take part, found none of rank 1",
        ),
        (
            ("MPI_Barrier", WORLD),
            "MPI_Barrier: expected all ranks of the communicator to take part, found none of rank 1",
        ),
        (
            ("MPI_Alltoallv", "int recvcounts[2]=<IGNORED>", RECEIVED, WORLD),
            "MPI_Alltoallv: expected all ranks of the communicator to take part, found none of rank 1",
        ),
    ],
)
def test_what_the_trace_does_not_say_is_refused(convert, tmp_path, call, error):
    made = convert([[INIT, call], [INIT]])
    # The file and the line at which the call begins: behind the header and MPI_Init.
    assert made.returncode == 1 and made.stderr == f"{tmp_path / '0.txt'}:8: {error}\n"


def test_ranks_that_disagree_are_refused(convert, tmp_path):
    made = convert([[INIT, ("MPI_Barrier", WORLD)], [INIT, ("MPI_Allreduce", *COUNT, WORLD)]])
    assert made.returncode == 1 and made.stderr == (
        f"{tmp_path / '1.txt'}:8: MPI_Allreduce: expected MPI_Barrier as {tmp_path / '0.txt'}:8 has it, found MPI_Allreduce\n"
    )
    (tmp_path / "empty.txt").write_text("nothing\n")
    made = subprocess.run(
        [sys.executable, CONVERTER, tmp_path / "empty.txt"], capture_output=True, text=True, check=False
    )
    assert made.returncode == 1 and made.stderr == (
        f"{tmp_path / 'empty.txt'}: expected calls of MPI as dumpi2ascii writes them, found none\n"
    )
