"""Makes a GOAL schedule of an OTF2 trace of an MPI program: otf2_to_goal.py DIR/traces.otf2 > program.goal

Needs the Python package of OTF2 (Debian and Ubuntu: python3-otf2). DUMPI traces become OTF2 by dumpi2otf2 of sst-dumpi.

Messages are those of the trace. Time between two MPI calls is computation; time within them is not used, as the network decides about
it. Time before a rank's first MPI call has returned, which is mostly MPI_Init, is left out. Collective operations become messages of the
algorithms in `COLLECTIVES`; Score-P and dumpi2otf2 write the bytes that a rank would exchange with each other rank directly, itself included,
from which the size of a block follows.

Errors: one-sided communication, nonblocking collective operations, traces without MPI.
"""

import sys
from collections import Counter, defaultdict

try:
    import otf2
    from otf2 import events
    from otf2.enums import CollectiveOp, GroupType, Paradigm
except ImportError:
    sys.exit(
        "error: this needs the Python package of OTF2; on Debian and Ubuntu: apt-get install python3-otf2"
    )

REFUSED = ("Rma", "NonBlockingCollective", "CommCreate")


class Rank:
    """The operations of a rank, in lines of GOAL."""

    def __init__(self):
        """Has none yet."""
        self.lines = []
        self.operations = 0
        # What the next operation waits for.
        self.after = []

    def add(self, operation, after):
        """Adds an operation that waits for others; returns its label."""
        label = f"o{self.operations}"
        self.operations += 1
        self.lines.append(f"{label}: {operation}")
        self.lines.extend(f"{label} requires {other}" for other in dict.fromkeys(after))
        return label

    def block(self, operation):
        """Adds an operation for which all later ones wait."""
        self.after = [self.add(operation, self.after)]

    def point(self):
        """One operation for which all that the next one would wait for has ended."""
        if len(self.after) > 1:
            self.block("calc 0")
        return list(self.after)

    def exchange(self, sends, receives):
        """Sends and receives, [(peer, bytes, tag)], that begin together; later operations wait for all of them."""
        begin = self.point()
        ended = [self.add(f"send {size}b to {peer} tag {tag}", begin) for peer, size, tag in sends]
        ended += [self.add(f"recv {size}b from {peer} tag {tag}", begin) for peer, size, tag in receives]
        self.after = ended or begin


class Group:
    """A rank's part in one collective operation: its place `me` among `n` members, and messages to others by their places."""

    def __init__(self, rank, ranks, me, tag):
        """`ranks`: all members, in the order of the communicator."""
        self.rank, self.ranks, self.me, self.n, self.tag = rank, ranks, me, len(ranks), tag

    def exchange(self, sends, receives):
        """Messages [(place, bytes)] that begin together."""
        numbered = (
            [(self.ranks[place], size, self.tag) for place, size in part] for part in (sends, receives)
        )
        self.rank.exchange(*numbered)


def barrier(group, _):
    """Dissemination."""
    distance = 1
    while distance < group.n:
        group.exchange([((group.me + distance) % group.n, 1)], [((group.me - distance) % group.n, 1)])
        distance *= 2


def broadcast(group, what, root=None):
    """Binomial tree."""
    root = what.root if root is None else root
    place = (group.me - root) % group.n
    others = lambda place: (place + root) % group.n
    bit = 1
    while bit < group.n and not place & bit:
        bit *= 2
    if place:
        group.exchange([], [(others(place - bit), what.size)])
    children = [place + below for below in powers_below(bit) if place + below < group.n]
    for child in children:
        group.exchange([(others(child), what.size)], [])


def reduce(group, what, root=None):
    """Binomial tree, the other way round."""
    root = what.root if root is None else root
    place = (group.me - root) % group.n
    others = lambda place: (place + root) % group.n
    bit = 1
    while bit < group.n:
        if place & bit:
            return group.exchange([(others(place - bit), what.size)], [])
        if place + bit < group.n:
            group.exchange([], [(others(place + bit), what.size)])
        bit *= 2


def allreduce(group, what):
    """Recursive doubling; of a number of ranks that is not a power of two, a reduction and a broadcast."""
    if group.n & (group.n - 1):
        reduce(group, what, 0)
        return broadcast(group, what, 0)
    bit = 1
    while bit < group.n:
        group.exchange([(group.me ^ bit, what.size)], [(group.me ^ bit, what.size)])
        bit *= 2


def allgather(group, what):
    """Ring."""
    after, before = (group.me + 1) % group.n, (group.me - 1) % group.n
    for step in range(group.n - 1):
        sent, received = (group.me - step) % group.n, (group.me - step - 1) % group.n
        group.exchange([(after, what.blocks[sent])], [(before, what.blocks[received])])


def gather(group, what):
    """All to the root at once."""
    others = [place for place in range(group.n) if place != what.root]
    if group.me == what.root:
        group.exchange([], [(place, what.blocks[place]) for place in others])
    else:
        group.exchange([(what.root, what.blocks[group.me])], [])


def scatter(group, what):
    """From the root to all at once."""
    others = [place for place in range(group.n) if place != what.root]
    if group.me == what.root:
        group.exchange([(place, what.blocks[place]) for place in others], [])
    else:
        group.exchange([], [(what.root, what.blocks[group.me])])


def all_to_all(group, what):
    """Each to each at once, blocks of the sender's size: of MPI_Alltoallv their mean."""
    others = [(group.me + step) % group.n for step in range(1, group.n)]
    group.exchange(
        [(place, what.blocks[group.me]) for place in others],
        [(place, what.blocks[place]) for place in others],
    )


def reduce_scatter(group, what):
    """Each to each at once, blocks of the receiver's size."""
    others = [(group.me + step) % group.n for step in range(1, group.n)]
    group.exchange(
        [(place, what.blocks[place]) for place in others],
        [(place, what.blocks[group.me]) for place in others],
    )


def scan(group, what):
    """From rank to rank."""
    if group.me > 0:
        group.exchange([], [(group.me - 1, what.size)])
    if group.me + 1 < group.n:
        group.exchange([(group.me + 1, what.size)], [])


def powers_below(bit):
    """Powers of two below one, the largest first."""
    while bit > 1:
        bit //= 2
        yield bit


# How an operation is done, and what says how large a block is: the bytes that a rank sends or receives; "of all": to or from all ranks together.
COLLECTIVES = {
    CollectiveOp.BARRIER: (barrier, None),
    CollectiveOp.BCAST: (broadcast, None),
    CollectiveOp.REDUCE: (reduce, None),
    CollectiveOp.ALLREDUCE: (allreduce, "received of all"),
    CollectiveOp.ALLGATHER: (allgather, "sent of all"),
    CollectiveOp.ALLGATHERV: (allgather, "sent of all"),
    CollectiveOp.GATHER: (gather, "sent"),
    CollectiveOp.GATHERV: (gather, "sent"),
    CollectiveOp.SCATTER: (scatter, "received"),
    CollectiveOp.SCATTERV: (scatter, "received"),
    CollectiveOp.ALLTOALL: (all_to_all, "sent of all"),
    CollectiveOp.ALLTOALLV: (all_to_all, "sent of all"),
    CollectiveOp.ALLTOALLW: (all_to_all, "sent of all"),
    CollectiveOp.REDUCE_SCATTER: (reduce_scatter, "received of all"),
    CollectiveOp.REDUCE_SCATTER_BLOCK: (reduce_scatter, "received of all"),
    CollectiveOp.SCAN: (scan, None),
    CollectiveOp.EXSCAN: (scan, None),
}


class Collective:
    """One collective operation: what its members said of it."""

    def __init__(self, operation, ranks, root, tag):
        """Nothing has been said yet."""
        self.operation, self.ranks, self.root, self.tag = operation, ranks, root, tag
        self.sent, self.received = {}, {}

    def settle(self):
        """Tells sizes from what all members said."""
        n, root = len(self.ranks), self.root
        of = lambda bytes, place: bytes.get(place, 0)
        _, rule = COLLECTIVES.get(self.operation, (barrier, None))
        words = (rule or "").split()
        said = self.sent if words[:1] == ["sent"] else self.received
        self.blocks = [of(said, place) // (n if words[1:] else 1) for place in range(n)]
        others = [place for place in range(n) if place != root]
        match self.operation:
            # dumpi2otf2 writes bytes at the root only.
            case CollectiveOp.BCAST:
                self.size = max((of(self.received, place) for place in others), default=0) or of(
                    self.sent, root
                )
            case CollectiveOp.REDUCE:
                self.size = max((of(self.sent, place) for place in others), default=0)
            # The first rank sends to all, itself included, and the last one receives from all.
            case CollectiveOp.SCAN | CollectiveOp.EXSCAN:
                self.size = of(self.received, n - 1) // n
            case _:
                self.size = max(self.blocks)


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
        self.collectives = {}
        self.counts = defaultdict(Counter)
        self.tags = {}
        # By rank: how many MPI calls it is in, and when it left the last one.
        self.depth, self.left = Counter(), {}

    def tag(self, *key):
        """A number for a communicator's tag, or for a collective operation."""
        return self.tags.setdefault(key, len(self.tags))

    def peers(self, communicator):
        """The ranks of a communicator, in its order."""
        return [self.rank_of[location] for location in communicator.group.members]

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
            rank = self.rank_of.get(location)
            if rank is None:
                continue
            name = type(event).__name__
            if name.startswith(REFUSED):
                sys.exit(f"rank {rank}: expected messages and blocking collective operations, found {name}")
            is_call = isinstance(event, events.Enter | events.Leave) and event.region.paradigm == Paradigm.MPI
            if is_call and isinstance(event, events.Enter):
                if self.depth[rank] == 0:
                    self.compute(rank, event.time)
                self.depth[rank] += 1
            elif is_call:
                self.depth[rank] -= 1
                self.left[rank] = event.time
            elif name.startswith("Mpi"):
                if self.depth[rank] == 0:
                    self.compute(rank, event.time)
                self.message(rank, event)

    def message(self, rank, event):
        """An event of MPI."""
        steps = self.steps[rank]
        match event:
            case events.MpiSend() | events.MpiIsend():
                peer = self.peers(event.communicator)[event.receiver]
                request = getattr(event, "request_id", None)
                tag = self.tag(event.communicator, event.msg_tag)
                steps.append(("send", f"send {event.msg_length}b to {peer} tag {tag}", request))
            case events.MpiIsendComplete():
                steps.append(("sent", event.request_id))
            case events.MpiIrecvRequest():
                steps.append(("post", event.request_id))
            case events.MpiRecv() | events.MpiIrecv():
                peer = self.peers(event.communicator)[event.sender]
                request = getattr(event, "request_id", None)
                tag = self.tag(event.communicator, event.msg_tag)
                steps.append(("recv", f"recv {event.msg_length}b from {peer} tag {tag}", request))
            case events.MpiCollectiveEnd():
                ranks = self.peers(event.communicator)
                number = self.counts[rank][event.communicator]
                self.counts[rank][event.communicator] += 1
                key = ("collective", event.communicator, number)
                whole = self.collectives.setdefault(
                    key, Collective(event.collective_op, ranks, event.root, self.tag(*key))
                )
                if whole.operation != event.collective_op:
                    sys.exit(
                        f"rank {rank}: expected {whole.operation.name} as other ranks have it, found {event.collective_op.name}: collective operation {number + 1} of {event.communicator.name}"
                    )
                me = ranks.index(rank)
                whole.sent[me], whole.received[me] = event.size_sent, event.size_received
                steps.append(("collective", whole, me))

    def schedule(self):
        """The operations of all ranks."""
        for whole in self.collectives.values():
            whole.settle()
        return [self.operations(steps) for steps in self.steps]

    def operations(self, steps):
        """The operations of a rank."""
        rank, requests, posted = Rank(), {}, {}
        for step in steps:
            match step:
                case ("calc", duration):
                    rank.block(f"calc {duration}")
                case ("send" | "recv", operation, None):
                    rank.block(operation)
                case ("send", operation, request):
                    requests[request] = rank.add(operation, rank.point())
                case ("sent", request):
                    rank.after += [label for label in [requests.pop(request, None)] if label]
                case ("post", request):
                    posted[request] = rank.point()
                case ("recv", operation, request):
                    rank.after.append(rank.add(operation, posted.pop(request, rank.after)))
                case ("collective", whole, me):
                    perform, _ = COLLECTIVES.get(whole.operation, (barrier, None))
                    perform(Group(rank, whole.ranks, me, whole.tag), whole)
        return rank


def main(path):
    """Prints the schedule."""
    with otf2.reader.open(path) as trace:
        reader = Reader(trace)
        reader.read()
    ranks = reader.schedule()
    print(f"num_ranks {len(ranks)}")
    for number, rank in enumerate(ranks):
        print(f"rank {number} {{", *rank.lines, "}", sep="\n")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(sys.argv[1])
