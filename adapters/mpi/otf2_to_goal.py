"""Makes a GOAL schedule of an OTF2 trace of an MPI program: otf2_to_goal.py DIR/traces.otf2 > program.goal

Needs the Python package of OTF2: pip install otf2, or apt-get install python3-otf2 on Debian and Ubuntu.

Messages are those of the trace. Time between two MPI calls is computation; time within them is not used, as the network decides about
it. Time before a rank's first MPI call has returned, which is mostly MPI_Init, is left out. Collective operations, blocking or not, become
messages of the algorithms in `COLLECTIVES`. Score-P writes the bytes that a rank would exchange with each other rank directly, itself included
(scorep_mpi_coll.inc.c of Score-P 9), from which the size of a block follows. Of MPI_Alltoallv and MPI_Alltoallw these are sums: blocks are estimated
from those of both ends.

Errors: one-sided communication, neighbourhood collectives (Score-P writes them as if they were among all), collective operations over
inter-communicators, calls of MPI by several threads of a rank, traces without MPI.
"""

import sys
from collections import Counter, defaultdict, deque

import schedule

try:
    import otf2
    from otf2 import events
    from otf2.definitions import InterComm
    from otf2.enums import CollectiveOp, GroupType, Paradigm
except ImportError:
    sys.exit(
        "error: this needs the Python package of OTF2: pip install otf2, or on Debian and Ubuntu apt-get install python3-otf2"
    )

# OTF2 3.2 and earlier: the class has the fields of `Comm` before its own as well, so that its library can neither read nor write one.
InterComm._fields = InterComm._fields[:1] + InterComm._fields[-4:]

# How an operation is done, and what says how large a block is: the bytes that a rank sends or receives; "of all": to or from all ranks together.
COLLECTIVES = {
    CollectiveOp.BARRIER: (schedule.barrier, None),
    CollectiveOp.BCAST: (schedule.broadcast, None),
    CollectiveOp.REDUCE: (schedule.reduce, None),
    CollectiveOp.ALLREDUCE: (schedule.allreduce, "received of all"),
    CollectiveOp.ALLGATHER: (schedule.allgather, "sent of all"),
    CollectiveOp.ALLGATHERV: (schedule.allgather, "sent of all"),
    CollectiveOp.GATHER: (schedule.gather, "sent"),
    CollectiveOp.GATHERV: (schedule.gather, "sent"),
    CollectiveOp.SCATTER: (schedule.scatter, "received"),
    CollectiveOp.SCATTERV: (schedule.scatter, "received"),
    CollectiveOp.ALLTOALL: (schedule.all_to_all, None),
    CollectiveOp.ALLTOALLV: (schedule.all_to_all, None),
    CollectiveOp.ALLTOALLW: (schedule.all_to_all, None),
    CollectiveOp.REDUCE_SCATTER: (schedule.reduce_scatter, "received of all"),
    CollectiveOp.REDUCE_SCATTER_BLOCK: (schedule.reduce_scatter, "received of all"),
    CollectiveOp.SCAN: (schedule.scan, None),
    CollectiveOp.EXSCAN: (schedule.scan, None),
    CollectiveOp.CREATE_HANDLE: (schedule.barrier, None),
    CollectiveOp.DESTROY_HANDLE: (schedule.barrier, None),
}


def called(kind):
    """The name of a kind of collective operation."""
    return str(kind).removeprefix("CollectiveOp.")


class Operation:
    """One collective operation: what its members said of it."""

    def __init__(self, kind, communicator, ranks, root, tag):
        """Nothing has been said yet."""
        self.kind, self.communicator = kind, communicator
        self.whole = schedule.Collective(ranks, root, tag)
        self.sent, self.received = [0] * len(ranks), [0] * len(ranks)

    def settle(self):
        """Tells sizes from what all members said."""
        whole, sent, received = self.whole, self.sent, self.received
        n, root = len(whole.ranks), whole.root
        _, rule = COLLECTIVES[self.kind]
        if rule:
            said = sent if rule.startswith("sent") else received
            whole.blocks = [bytes // (n if rule.endswith("of all") else 1) for bytes in said]
            whole.size = max(whole.blocks)
        match self.kind:
            # All but the root receive it, and send it.
            case CollectiveOp.BCAST:
                whole.size = max(received)
            case CollectiveOp.REDUCE:
                whole.size = max(bytes for place, bytes in enumerate(sent) if place != root or n == 1)
            # The last rank receives from all, with an inclusive scan from itself as well.
            case CollectiveOp.SCAN:
                whole.size = received[-1] // n
            case CollectiveOp.EXSCAN:
                whole.size = received[-1] // max(n - 1, 1)
            case CollectiveOp.ALLTOALL:
                whole.between = lambda src, _: sent[src] // n
            # Both sums are as they are in the trace, but for less than a byte per message.
            case CollectiveOp.ALLTOALLV | CollectiveOp.ALLTOALLW:
                total = sum(received)
                if sum(sent) != total:
                    sys.exit(
                        f"expected as many bytes sent as received, found {sum(sent)} and {total}: an operation {called(self.kind)} of {self.communicator.name}"
                    )
                whole.between = lambda src, dst: sent[src] * received[dst] // max(total, 1)


class Reader:
    """Reads the events of all ranks."""

    def __init__(self, trace):
        """Finds out which locations are ranks."""
        self.trace = trace
        locations = [
            group.members
            for group in trace.definitions.groups
            if group.group_type == GroupType.COMM_LOCATIONS and group.paradigm == Paradigm.MPI
        ]
        if not locations:
            sys.exit("expected a trace of an MPI program, found no group of MPI's locations")
        self.rank_of = {location: rank for rank, location in enumerate(locations[0])}
        # By rank: [(what, …)] in order of time.
        self.steps = [[] for _ in self.rank_of]
        # By rank and request: what nonblocking collective operations were, which a trace says at their end.
        self.completed = defaultdict(deque)
        self.operations = {}
        self.tags = {}
        # By rank: how many MPI calls it is in, and when it left the last one.
        self.depth, self.left = Counter(), {}

    def tag(self, *key):
        """A number for a communicator's tag, or for a collective operation."""
        return self.tags.setdefault(key, len(self.tags))

    def peers(self, rank, communicator):
        """The ranks that a rank's messages over a communicator go to, in its order."""
        if isinstance(communicator, InterComm):
            groups = [self.members(group) for group in (communicator.groupA, communicator.groupB)]
            return groups[rank in groups[0]]
        if communicator.group.group_type == GroupType.COMM_SELF:
            return [rank]
        return self.members(communicator.group)

    def members(self, group):
        """The ranks of a group."""
        return [self.rank_of[location] for location in group.members]

    def nanoseconds(self, ticks):
        """A length of time."""
        return ticks * 10**9 // self.trace.timer_resolution

    def compute(self, rank, time):
        """A rank has come to an MPI call."""
        if rank in self.left and time > self.left[rank]:
            self.steps[rank].append(("calc", self.nanoseconds(time - self.left[rank])))
        self.left[rank] = time

    def read(self):
        """Reads all events."""
        for location, event in self.trace.events:
            name = type(event).__name__
            is_call = isinstance(event, events.Enter | events.Leave) and event.region.paradigm == Paradigm.MPI
            is_message = name.startswith(("Mpi", "NonBlockingCollective"))
            rank = self.rank_of.get(location)
            if rank is None and (is_call or is_message):
                sys.exit(f"expected calls of MPI by one thread of each rank, found {name} of {location.name}")
            if name.startswith("Rma"):
                sys.exit(f"rank {rank}: expected messages and collective operations, found {name}")
            if is_call and isinstance(event, events.Enter):
                self.refuse_neighbourhoods(rank, event.region.name)
                if self.depth[rank] == 0:
                    self.compute(rank, event.time)
                self.depth[rank] += 1
            elif is_call:
                self.depth[rank] -= 1
                self.left[rank] = event.time
            elif is_message:
                if self.depth[rank] == 0:
                    self.compute(rank, event.time)
                self.message(rank, event)
        self.number_collectives()

    def refuse_neighbourhoods(self, rank, call):
        """Score-P writes them like those among all, and the trace does not say who the neighbours are."""
        if call.lower().startswith(("mpi_neighbor_", "mpi_ineighbor_")):
            sys.exit(f"rank {rank}: expected messages and collective operations among all, found {call}")

    def message(self, rank, event):
        """An event of MPI."""
        steps = self.steps[rank]
        match event:
            case events.MpiSend() | events.MpiIsend():
                peer = self.peers(rank, event.communicator)[event.receiver]
                request = getattr(event, "request_id", None)
                tag = self.tag(event.communicator, event.msg_tag)
                steps.append(("send", f"send {event.msg_length}b to {peer} tag {tag}", request))
            case events.MpiIsendComplete():
                steps.append(("wait", event.request_id))
            case events.MpiIrecvRequest():
                steps.append(("post", event.request_id))
            case events.MpiRecv() | events.MpiIrecv():
                peer = self.peers(rank, event.communicator)[event.sender]
                request = getattr(event, "request_id", None)
                tag = self.tag(event.communicator, event.msg_tag)
                steps.append(("recv", f"recv {event.msg_length}b from {peer} tag {tag}", request))
            # A receive is only in the schedule once a message has come.
            case events.MpiRequestCancelled():
                sent = [step[0] == "send" and step[2] == event.request_id for step in steps]
                if any(sent):
                    del steps[len(sent) - 1 - sent[::-1].index(True)]
            case events.MpiCollectiveEnd():
                steps.append(("collective", event, None))
            case events.NonBlockingCollectiveRequest():
                steps.append(("collective", None, event.request_id))
            case events.NonBlockingCollectiveComplete():
                self.completed[rank, event.request_id].append(event)
                steps.append(("wait", event.request_id))

    def number_collectives(self):
        """Finds out which collective operations of ranks are the same one: ranks begin those of a communicator in the same order."""
        for rank, steps in enumerate(self.steps):
            counts = Counter()
            for index, step in enumerate(steps):
                match step:
                    case ("collective", event, request):
                        if event is None:
                            if not self.completed[rank, request]:
                                sys.exit(
                                    f"rank {rank}: expected the end of a nonblocking collective operation, found none: request {request}"
                                )
                            event = self.completed[rank, request].popleft()
                        steps[index] = ("collective", *self.part(rank, event, counts), request)

    def part(self, rank, event, counts):
        """The operation that an event of a rank is part of, and the rank's place in it."""
        kind, communicator = event.collective_op, event.communicator
        if kind not in COLLECTIVES:
            sys.exit(f"rank {rank}: expected a collective operation of messages, found {called(kind)}")
        if isinstance(communicator, InterComm):
            if kind not in (CollectiveOp.CREATE_HANDLE, CollectiveOp.DESTROY_HANDLE):
                sys.exit(
                    f"rank {rank}: expected a collective operation of one group, found {called(kind)} over the inter-communicator {communicator.name}"
                )
            ranks = sorted(self.members(communicator.groupA) + self.members(communicator.groupB))
        else:
            ranks = self.peers(rank, communicator)
        counts[communicator] += 1
        key = ("collective", communicator, min(ranks), counts[communicator])
        operation = self.operations.setdefault(
            key, Operation(kind, communicator, ranks, event.root, self.tag(*key))
        )
        if operation.kind != kind:
            sys.exit(
                f"rank {rank}: expected {called(operation.kind)} as other ranks have it, found {called(kind)}: collective operation {counts[communicator]} of {communicator.name}"
            )
        me = ranks.index(rank)
        operation.sent[me], operation.received[me] = event.size_sent, event.size_received
        return operation, me

    def schedule(self):
        """The operations of all ranks."""
        for operation in self.operations.values():
            operation.settle()
        estimated = Counter(called(operation.kind) for operation in self.operations.values())
        for name in ("ALLTOALLV", "ALLTOALLW"):
            if estimated[name]:
                print(
                    f"note: the blocks of {estimated[name]} operations {name} are estimated: a trace has what each rank sends and receives in all",
                    file=sys.stderr,
                )
        return [self.operations_of(steps) for steps in self.steps]

    def operations_of(self, steps):
        """The operations of a rank."""
        # By request: labels of operations that are waited for, or those after which a receive was posted.
        rank, requests, posted = schedule.Rank(), {}, {}
        for step in steps:
            match step:
                case ("calc", duration):
                    rank.block(f"calc {duration}")
                case ("send" | "recv", operation, None):
                    rank.block(operation)
                case ("send", operation, request):
                    requests[request] = [rank.add(operation, rank.point())]
                case ("wait", request):
                    rank.after += requests.pop(request, [])
                case ("post", request):
                    posted[request] = rank.point()
                case ("recv", operation, request):
                    rank.after.append(rank.add(operation, posted.pop(request, rank.after)))
                case ("collective", operation, me, request):
                    algorithm, _ = COLLECTIVES[operation.kind]
                    perform = lambda whole=operation.whole, do=algorithm, me=me: whole.perform(do, rank, me)
                    if request is None:
                        perform()
                    else:
                        requests[request] = rank.aside(perform)
        return rank


def main(path):
    """Prints the schedule."""
    with otf2.reader.open(path) as trace:
        reader = Reader(trace)
        reader.read()
    schedule.write(reader.schedule())


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(sys.argv[1])
