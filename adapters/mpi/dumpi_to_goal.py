"""Makes a GOAL schedule of a DUMPI trace of an MPI program: dumpi_to_goal.py RANK-0.txt RANK-1.txt … > program.goal

Reads the text that dumpi2ascii of sst-dumpi writes, one file for each rank in their order: dumpi2ascii -SX dumpi-….0000.bin > RANK-0.txt (-X writes the sizes of datatypes). The format is
that of dumpi2ascii-callbacks.c and dumpi2ascii-defs.h of sst-dumpi a4c8bf5.

Messages, with requests of all kinds, are those of the trace, and so are all sizes of collective operations, which become messages of the algorithms in `schedule.py`. Time between two
MPI calls is computation, and time in MPI-IO counts as such; time within other calls is not used, as the network decides about it. Time before a rank's first MPI call has returned, which
is mostly MPI_Init, is left out. Making or freeing a communicator is a barrier.

Errors: one-sided communication, inter-communicators and processes started by the program, communicators of MPI_Cart_sub, MPI_Graph_create and of groups by ranges, calls of MPI by several
threads of a rank, receives from any source (or with any tag) without a status.
"""

import re
import sys
from collections import Counter, defaultdict

import schedule

# constants.h of sst-dumpi.
COMM_NULL, COMM_WORLD, COMM_SELF = 1, 2, 3
REQUEST_NULL = 1
ANY = -1

CALL = re.compile(
    r"(MPI_\w+) (entering|returning) at walltime (\d+)\.(\d+), cputime \S+ seconds in thread (\d+)\."
)
PARAMETER = re.compile(r"(?:int|int64_t|MPIO?_\w+) ([\w.]+)(?:\[-?\d+\])?=(.*)")
STATUS = re.compile(r"\{bytes=(-?\d+), cancelled=(-?\d+), source=(-?\d+), tag=(-?\d+), error=-?\d+\}")
SIZE = re.compile(r"Datatype (\d+) \(.*\) has size (\d+)")

# What has messages that the trace does not describe.
REFUSED = re.compile(
    r"MPI_(Win_(?!.*(keyval|attr|name|errhandler|get_group))|Put|Get|Accumulate|Comm_(spawn|accept|connect|join)|Intercomm_(create|merge)|Cart_sub|Graph_create|Abort|Grequest_start)"
)


class Call:
    """A call of MPI: its name, when it began and ended [ns], and its arguments by name."""

    def __init__(self, where, name, begin):
        """It has begun."""
        self.where, self.name, self.begin, self.end = where, name, begin, begin
        self.arguments = {}

    def fail(self, expected, found):
        """Ends the program."""
        sys.exit(f"{self.where}: {self.name}: expected {expected}, found {found}")

    def __getitem__(self, name):
        """An argument that is needed: a number, or a list."""
        if self.arguments.get(name) is None:
            self.fail(f"`{name}`", "none" if name not in self.arguments else "<IGNORED>")
        return self.arguments[name]

    def statuses(self):
        """Those of the call, [(cancelled, source, tag)], or None."""
        return self.arguments.get("statuses", self.arguments.get("status"))


def value(text):
    """That of an argument: a number, a list of numbers, or of statuses."""
    if text.startswith("<IGNORED>"):
        return None
    if "{" in text:
        return [(int(cancelled), int(source), int(tag)) for _, cancelled, source, tag in STATUS.findall(text)]
    numbers = [int(number) for number in re.findall(r"-?\d+", text.partition("(")[0])]
    return numbers if text.startswith("[") else next(iter(numbers), None)


def read(path):
    """The calls of a rank in their order, and the sizes of datatypes."""
    calls, sizes, call, threads = [], {}, None, set()
    with open(path) as lines:
        for number, line in enumerate(lines, 1):
            if found := CALL.match(line):
                name, verb, seconds, nanoseconds, thread = found.groups()
                time = int(seconds) * 10**9 + int(nanoseconds)
                threads.add(thread)
                if verb == "entering":
                    call = Call(f"{path}:{number}", name, time)
                elif call is None or call.name != name:
                    sys.exit(f"{path}:{number}: expected the beginning of {name} before its end")
                else:
                    call.end = time
                    calls.append(call)
                    call = None
            elif call and (found := PARAMETER.match(line)):
                call.arguments[found[1]] = value(found[2])
            elif found := SIZE.match(line):
                sizes[int(found[1])] = int(found[2])
    if not calls:
        sys.exit(f"{path}: expected calls of MPI as dumpi2ascii writes them, found none")
    if len(threads) > 1:
        sys.exit(f"{path}: expected calls of MPI by one thread, found {len(threads)}")
    return calls, sizes


class NotYetKnown(Exception):
    """The members of a communicator follow from what other ranks say."""


class Communicator:
    """A rank's view of a communicator: of these ranks, or made by the collective operation of this number on its parent."""

    def __init__(self, ranks=(), call=None, parent=None, number=0, colour=None):
        """`colour`: a function, the same for all members and no other rank."""
        self.fixed, self.call, self.parent, self.number, self.colour = ranks, call, parent, number, colour
        self.made = None

    @property
    def ranks(self):
        """The members, in order."""
        if self.fixed:
            return self.fixed
        if self.made is None:
            raise NotYetKnown
        return self.made.members(self.colour())

    @property
    def identity(self):
        """The same for all members, and for no other communicator."""
        return self.made, self.ranks


class Made:
    """The making of communicators by all members of one: a colour and a key of each, both functions, as they may need the members of others."""

    def __init__(self, parent):
        """Nothing has been said yet."""
        self.parent, self.said, self.known = parent, {}, {}

    def members(self, colour):
        """Those of one colour by their keys; equal keys in the order of the parent."""
        if colour not in self.known:
            parent = self.parent.ranks
            if len(self.said) < len(parent):
                raise NotYetKnown
            keys = {rank: key() for rank, (of, key) in self.said.items() if of() == colour}
            order = lambda rank: (keys[rank], parent.index(rank))
            self.known[colour] = tuple(sorted(keys, key=order))
        return self.known[colour]


class Receive:
    """A posted receive, whose source and tag may become known when it ends."""

    def __init__(self, call, source, tag, size, communicator):
        """As posted."""
        self.call, self.source, self.tag, self.size, self.communicator = call, source, tag, size, communicator
        self.cancelled = False

    def end(self, status):
        """What came, if its status is known."""
        if status:
            self.cancelled, source, tag = status
            self.source = source if self.source == ANY else self.source
            self.tag = tag if self.tag == ANY else self.tag
            # That of a receive from nobody (MPI_PROC_NULL is -1 in MPICH).
            self.cancelled |= source < 0

    def settle(self):
        """Fails if nobody knows what came."""
        if self.source == ANY or self.tag == ANY:
            wild = "source" if self.source == ANY else "tag"
            self.call.fail(
                f"a status that says which {wild} a message came from or with", "any and no status"
            )


# How collective operations are done, by call, and what a rank says of sizes.
ONE_SIZE = {
    "MPI_Bcast": schedule.broadcast,
    "MPI_Reduce": schedule.reduce,
    "MPI_Allreduce": schedule.allreduce,
    "MPI_Scan": schedule.scan,
    "MPI_Exscan": schedule.scan,
}
COLLECTIVES = ONE_SIZE | {
    "MPI_Barrier": schedule.barrier,
    "MPI_Gather": schedule.gather,
    "MPI_Gatherv": schedule.gather,
    "MPI_Scatter": schedule.scatter,
    "MPI_Scatterv": schedule.scatter,
    "MPI_Allgather": schedule.allgather,
    "MPI_Allgatherv": schedule.allgather,
    "MPI_Alltoall": schedule.all_to_all,
    "MPI_Alltoallv": schedule.all_to_all,
    "MPI_Alltoallw": schedule.all_to_all,
    "MPI_Reduce_scatter": schedule.reduce_scatter,
    "MPI_Comm_dup": schedule.barrier,
    "MPI_Comm_split": schedule.barrier,
    "MPI_Comm_create": schedule.barrier,
    "MPI_Cart_create": schedule.barrier,
    "MPI_Comm_free": schedule.barrier,
    "MPI_Comm_disconnect": schedule.barrier,
}
SENDS = {f"MPI_{kind}send" for kind in ("B", "S", "R")} | {"MPI_Send"}
STARTED_SENDS = {f"MPI_I{kind}send" for kind in ("b", "s", "r")} | {"MPI_Isend"}
PERSISTENT_SENDS = {f"MPI_{kind}_init" for kind in ("Send", "Bsend", "Ssend", "Rsend")}
# By call: the arguments with which an operation on groups is done.
GROUPS = {
    "MPI_Group_incl": lambda one, ranks: [one[place] for place in ranks],
    "MPI_Group_excl": lambda one, ranks: [rank for place, rank in enumerate(one) if place not in ranks],
    "MPI_Group_union": lambda one, other: one + [rank for rank in other if rank not in one],
    "MPI_Group_intersection": lambda one, other: [rank for rank in one if rank in other],
    "MPI_Group_difference": lambda one, other: [rank for rank in one if rank not in other],
}


class Trace:
    """The steps of all ranks."""

    def __init__(self, paths):
        """Reads the files."""
        self.n = len(paths)
        self.world = Communicator(ranks=tuple(range(self.n)))
        self.tags = {}
        self.ranks = [RankTrace(self, number, path) for number, path in enumerate(paths)]

    def tag(self, *key):
        """A number for a communicator's tag, or for a collective operation."""
        return self.tags.setdefault(key, len(self.tags))

    def find_members(self):
        """Brings together what ranks say of the making of communicators."""
        made = {}
        pending = [(rank, one, key) for rank in self.ranks for one, key in rank.made]
        while pending:
            waiting = []
            for rank, one, key in pending:
                try:
                    parent = one.parent.identity
                except NotYetKnown:
                    waiting.append((rank, one, key))
                    continue
                one.made = made.setdefault((parent, one.number), Made(one.parent))
                one.made.said[rank.number] = one.colour, key
            if len(waiting) == len(pending):
                one = waiting[0][1]
                one.call.fail(
                    "that all ranks of its communicator take part, as they do on their other ones", "some"
                )
            pending = waiting

    def schedule(self):
        """The operations of all ranks."""
        operations = {}
        self.find_members()
        for rank in self.ranks:
            rank.number_collectives(operations)
        for key, members in operations.items():
            if None in members:
                one = next(filter(None, members))
                absent = one.communicator.ranks[members.index(None)]
                one.call.fail("all ranks of the communicator to take part", f"none of rank {absent}")
            settle(members, self.tag(key))
        return [rank.operations() for rank in self.ranks]


class Member:
    """What a rank said in a collective operation."""

    def __init__(self, call, communicator, sizes):
        """The call."""
        self.call, self.communicator, self.sizes = call, communicator, sizes
        self.whole = None

    def bytes(self, count, datatype, index=None):
        """The bytes of so many of a datatype."""
        count, datatype = self.call[count], self.call[datatype]
        if isinstance(count, list):
            count = count[index]
        return count and count * size_of(
            self.call, self.sizes, datatype[index] if isinstance(datatype, list) else datatype
        )


def size_of(call, sizes, datatype):
    """The bytes of one of a datatype."""
    if not sizes.get(datatype):
        call.fail(f"the size of datatype {datatype} in the trace (dumpi2ascii -SX)", "none")
    return sizes[datatype]


def settle(members, tag):
    """Tells the sizes of an operation from what its members, in their order, said."""
    name = members[0].call.name
    n, root = len(members), members[0].call.arguments.get("root")
    whole = schedule.Collective(members[0].communicator.ranks, root, tag)
    others = [place for place in range(n) if place != root]
    if name in ONE_SIZE:
        whole.size = max(member.bytes("count", "datatype") for member in members)
    elif name in ("MPI_Gather", "MPI_Gatherv"):
        whole.blocks = {place: members[place].bytes("sendcount", "sendtype") for place in others}
    elif name in ("MPI_Scatter", "MPI_Scatterv"):
        whole.blocks = {place: members[place].bytes("recvcount", "recvtype") for place in others}
    # Those of what is received, which count with MPI_IN_PLACE as well.
    elif name == "MPI_Allgather":
        whole.blocks = [member.bytes("recvcount", "recvtype") for member in members]
    elif name == "MPI_Allgatherv":
        whole.blocks = [member.bytes("recvcounts", "recvtype", place) for place, member in enumerate(members)]
    elif name == "MPI_Reduce_scatter":
        whole.blocks = [member.bytes("recvcounts", "datatype", place) for place, member in enumerate(members)]
    elif name == "MPI_Alltoall":
        whole.between = lambda _, dst: members[dst].bytes("recvcount", "recvtype")
    elif name == "MPI_Alltoallv":
        whole.between = lambda src, dst: members[dst].bytes("recvcounts", "recvtype", src)
    elif name == "MPI_Alltoallw":
        whole.between = lambda src, dst: members[dst].bytes("recvcounts", "recvtypes", src)
    for member in members:
        member.whole = whole


class RankTrace:
    """The steps of a rank: [(what, …)] in order of time."""

    def __init__(self, trace, number, path):
        """Reads its file."""
        self.trace, self.number = trace, number
        calls, self.sizes = read(path)
        self.steps = []
        self.communicators = {COMM_WORLD: trace.world, COMM_SELF: Communicator(ranks=(number,))}
        self.groups = {}
        # Communicators that its calls made, and its keys in them.
        self.made = []
        # Active requests, and how those of persistent operations start.
        self.requests, self.persistent = {}, {}
        self.counts = Counter()
        left = None
        for call in calls:
            # A file is no network: as if the rank computed.
            if call.name.startswith("MPI_File_"):
                continue
            if left is not None and call.begin > left:
                self.steps.append(("calc", call.begin - left))
            left = call.end
            self.step(call)

    def communicator(self, call, name="comm"):
        """One of the rank's communicators."""
        known = self.communicators.get(call[name])
        return known or call.fail(
            "a communicator that the trace says how it was made", f"{name}={call[name]}"
        )

    def bytes(self, call, count="count", datatype="datatype"):
        """The bytes of a message."""
        return call[count] and call[count] * size_of(call, self.sizes, call[datatype])

    def step(self, call):
        """Adds what a call does."""
        name = call.name
        if REFUSED.match(name):
            call.fail("messages and collective operations within the program", name)
        elif name in SENDS:
            self.steps.append(("exchange", [self.send(call)], []))
        elif name == "MPI_Recv":
            self.steps.append(("exchange", [], [self.received(call)]))
        elif name in ("MPI_Sendrecv", "MPI_Sendrecv_replace"):
            sizes = [("count", "datatype")] * 2
            if name == "MPI_Sendrecv":
                sizes = [("sendcount", "sendtype"), ("recvcount", "recvtype")]
            send = self.send(call, *sizes[0], "sendtag")
            self.steps.append(("exchange", [send], [self.received(call, *sizes[1], "recvtag")]))
        elif name in STARTED_SENDS:
            self.start(call["request"][0], self.send(call))
        elif name == "MPI_Irecv":
            self.start(call["request"][0], self.receive(call))
        elif name in PERSISTENT_SENDS:
            self.persistent[call["request"][0]] = lambda: self.send(call)
        elif name == "MPI_Recv_init":
            self.persistent[call["request"][0]] = lambda: self.receive(call)
        elif name in ("MPI_Start", "MPI_Startall"):
            for request in call["request" if name == "MPI_Start" else "requests"]:
                if request not in self.persistent:
                    call.fail("a persistent request", f"{request}")
                self.start(request, self.persistent[request]())
        elif name == "MPI_Request_free":
            self.requests.pop(call["request"][0], None)
            self.persistent.pop(call["request"][0], None)
        elif name == "MPI_Cancel":
            self.cancel(call)
        elif name.startswith(("MPI_Wait", "MPI_Test")) and name != "MPI_Test_cancelled":
            self.complete(call)
        elif name in COLLECTIVES:
            self.collective(call)
        elif name == "MPI_Comm_group":
            communicator = self.communicator(call)
            self.groups[call["group"]] = lambda: list(communicator.ranks)
        elif name in GROUPS:
            names = ["group", "ranks"] if "group" in call.arguments else ["group1", "group2"]
            parts = [self.group(call, part) if part != "ranks" else lambda: call["ranks"] for part in names]
            self.groups[call["newgroup"]] = lambda: GROUPS[name](*(part() for part in parts))
        elif name in ("MPI_Group_range_incl", "MPI_Group_range_excl"):
            self.groups.pop(call["newgroup"], None)
        elif name == "MPI_Comm_rank" and call["comm"] == COMM_WORLD and call["rank"] != self.number:
            call.fail(f"rank {self.number}, as it is the file of that number", f"rank {call['rank']}")
        elif name == "MPI_Comm_size" and call["comm"] == COMM_WORLD and call["size"] != self.trace.n:
            call.fail(f"{self.trace.n} ranks, as there are so many files", f"{call['size']}")

    def group(self, call, name):
        """A function of the ranks of a group."""
        known = self.groups.get(call[name])
        return known or call.fail("a group that the trace says the ranks of", f"{name}={call[name]}")

    def send(self, call, count="count", datatype="datatype", tag="tag"):
        """A message, or none to MPI_PROC_NULL."""
        if call["dest"] < 0:
            return None
        return self.communicator(call), call["dest"], self.bytes(call, count, datatype), call[tag]

    def receive(self, call, count="count", datatype="datatype", tag="tag"):
        """A posted receive, or none from MPI_PROC_NULL (-2 in Open MPI; -1 in MPICH, where only the status says so)."""
        if call["source"] < ANY:
            return None
        size = self.bytes(call, count, datatype)
        return Receive(call, call["source"], call[tag], size, self.communicator(call))

    def received(self, call, *names):
        """A receive that has ended."""
        receive = self.receive(call, *names)
        if receive:
            receive.end(next(iter(call.statuses() or []), None))
        return receive

    def start(self, request, what):
        """A request begins."""
        step = ["start", what, False]
        self.requests[request] = step
        self.steps.append(step)

    def cancel(self, call):
        """A request is to be cancelled: whether it was says the status at its end."""
        step = self.requests.get(call["request"][0])
        if step:
            step.append(call)

    def complete(self, call):
        """Requests end."""
        arguments, name = call.arguments, call.name
        requests = call["request"] if "request" in arguments else call["requests"]
        statuses = call.statuses()
        if name.endswith("some"):
            ended = zip(arguments.get("indices") or [], statuses or [None] * len(requests), strict=False)
        elif name.endswith("any"):
            ended = [(call["index"], statuses and statuses[0])]
        else:
            ended = zip(range(len(requests)), statuses or [None] * len(requests), strict=False)
        if name.startswith("MPI_Test") and not name.endswith("some") and not call["flag"]:
            return
        waits = []
        for index, status in ended:
            step = self.requests.pop(requests[index], None) if 0 <= index < len(requests) else None
            if step is None:
                continue
            if len(step) > 3:
                if status is None:
                    step[3].fail("a status that says whether the request was cancelled", "none")
                step[2] = bool(status[0])
            if isinstance(step[1], Receive):
                step[1].end(status)
            waits.append(step)
        if waits:
            self.steps.append(("wait", waits))

    def collective(self, call):
        """A collective operation; of those that make communicators, what they make."""
        old = "oldcomm" if "oldcomm" in call.arguments else "comm"
        communicator = self.communicator(call, old)
        self.steps.append(("collective", Member(call, communicator, self.sizes)))
        self.counts[communicator] += 1
        if call.name in ("MPI_Comm_free", "MPI_Comm_disconnect"):
            self.communicators.pop(call[old], None)
        if "newcomm" not in call.arguments:
            return
        colour, key = lambda: 0, lambda: 0
        if call["newcomm"] == COMM_NULL:
            colour = lambda: None
        elif call.name == "MPI_Comm_split":
            colour, key = lambda: call["color"], lambda: call["key"]
        elif call.name == "MPI_Comm_create":
            group = self.group(call, "group")
            colour, key = lambda: tuple(group()), lambda: group().index(self.number)
        made = Communicator((), call, communicator, self.counts[communicator], colour)
        self.made.append((made, key))
        if call["newcomm"] != COMM_NULL:
            self.communicators[call["newcomm"]] = made

    def number_collectives(self, operations):
        """Finds out which collective operations of ranks are the same one: ranks call those of a communicator in the same order."""
        counts = Counter()
        for step in self.steps:
            if step[0] == "collective":
                member = step[1]
                identity = member.communicator.identity
                counts[identity] += 1
                ranks = member.communicator.ranks
                if self.number not in ranks:
                    member.call.fail("a communicator that the rank is in", f"one of ranks {list(ranks)}")
                members = operations.setdefault((identity, counts[identity]), [None] * len(ranks))
                other = next(filter(None, members), member)
                if other.call.name != member.call.name:
                    member.call.fail(f"{other.call.name} as {other.call.where} has it", member.call.name)
                members[ranks.index(self.number)] = member

    def message(self, verb, communicator, place, size, tag):
        """An operation of GOAL, as its verb, peer, bytes and tag."""
        ranks = communicator.ranks
        return ranks[place], size, self.trace.tag(communicator.identity, tag)

    def operations(self):
        """The operations of the rank."""
        rank, labels = schedule.Rank(), defaultdict(list)
        send = lambda what: self.message("send", *what)
        receive = lambda what: self.message("recv", what.communicator, what.source, what.size, what.tag)
        for step in self.steps:
            match step:
                case ("calc", duration):
                    rank.block(f"calc {duration}")
                case ("exchange", sends, receives):
                    kept = self.kept(receives)
                    rank.exchange([send(what) for what in sends if what], [receive(what) for what in kept])
                case ["start", what, cancelled, *_]:
                    receives = self.kept([what]) if isinstance(what, Receive) else []
                    sends = [send(what)] if what and not isinstance(what, Receive) and not cancelled else []
                    perform = lambda sends=sends, kept=receives: rank.exchange(
                        sends, [receive(what) for what in kept]
                    )
                    if sends or receives:
                        labels[id(step)] = rank.aside(perform)
                case ("wait", waits):
                    for started in waits:
                        rank.after += labels[id(started)]
                case ("collective", member):
                    me = member.whole.ranks.index(self.number)
                    member.whole.perform(COLLECTIVES[member.call.name], rank, me)
        return rank

    def kept(self, receives):
        """Those of receives in which something came."""
        kept = [receive for receive in receives if receive and not receive.cancelled]
        for receive in kept:
            receive.settle()
        return kept


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    schedule.write(Trace(sys.argv[1:]).schedule())
