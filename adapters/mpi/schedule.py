"""What converters of MPI traces share: GOAL's operations of a rank, and collective operations as messages."""


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

    def aside(self, perform):
        """Operations that begin here and for which later ones do not wait; returns the labels at their end."""
        begin = self.point()
        perform()
        ended, self.after = self.after, begin
        return ended


class Collective:
    """A collective operation among `ranks`, which are in the order of the communicator: its sizes in bytes, and the tag of its messages.

    `size` is that of what each rank has, `blocks` are those of the parts by place, and `between` is that of the part from one place for another.
    """

    def __init__(self, ranks, root=None, tag=0, size=0, blocks=None, between=None):
        """What an algorithm does not ask for may be left out."""
        self.ranks, self.root, self.tag = ranks, root, tag
        self.size, self.blocks, self.between = size, blocks, between

    def perform(self, algorithm, rank, me):
        """Adds the part of the member at place `me` to a rank's operations."""
        algorithm(Member(rank, self, me), self)


class Member:
    """A rank's part in one collective operation: its place `me` among `n` members, and messages to others by their places."""

    def __init__(self, rank, whole, me):
        """`whole`: the operation."""
        self.rank, self.whole, self.me, self.n = rank, whole, me, len(whole.ranks)

    def exchange(self, sends, receives):
        """Messages [(place, bytes)] that begin together. What is empty is not sent."""
        numbered = (
            [(self.whole.ranks[place], size, self.whole.tag) for place, size in part if size]
            for part in (sends, receives)
        )
        self.rank.exchange(*numbered)

    def others(self):
        """The places of the others, beginning behind its own."""
        return [(self.me + step) % self.n for step in range(1, self.n)]


def barrier(member, _):
    """Dissemination."""
    distance = 1
    while distance < member.n:
        member.exchange([((member.me + distance) % member.n, 1)], [((member.me - distance) % member.n, 1)])
        distance *= 2


def broadcast(member, what, root=None):
    """Binomial tree."""
    root = what.root if root is None else root
    place = (member.me - root) % member.n
    others = lambda place: (place + root) % member.n
    bit = 1
    while bit < member.n and not place & bit:
        bit *= 2
    if place:
        member.exchange([], [(others(place - bit), what.size)])
    children = [place + below for below in powers_below(bit) if place + below < member.n]
    for child in children:
        member.exchange([(others(child), what.size)], [])


def reduce(member, what, root=None):
    """Binomial tree, the other way round."""
    root = what.root if root is None else root
    place = (member.me - root) % member.n
    others = lambda place: (place + root) % member.n
    bit = 1
    while bit < member.n:
        if place & bit:
            return member.exchange([(others(place - bit), what.size)], [])
        if place + bit < member.n:
            member.exchange([], [(others(place + bit), what.size)])
        bit *= 2


def allreduce(member, what):
    """Recursive doubling; of a number of ranks that is not a power of two, a reduction and a broadcast."""
    if member.n & (member.n - 1):
        reduce(member, what, 0)
        return broadcast(member, what, 0)
    bit = 1
    while bit < member.n:
        member.exchange([(member.me ^ bit, what.size)], [(member.me ^ bit, what.size)])
        bit *= 2


def allgather(member, what):
    """Ring."""
    after, before = (member.me + 1) % member.n, (member.me - 1) % member.n
    for step in range(member.n - 1):
        sent, received = (member.me - step) % member.n, (member.me - step - 1) % member.n
        member.exchange([(after, what.blocks[sent])], [(before, what.blocks[received])])


def gather(member, what):
    """All to the root at once."""
    if member.me == what.root:
        member.exchange([], [(place, what.blocks[place]) for place in sorted(member.others())])
    else:
        member.exchange([(what.root, what.blocks[member.me])], [])


def scatter(member, what):
    """From the root to all at once."""
    if member.me == what.root:
        member.exchange([(place, what.blocks[place]) for place in sorted(member.others())], [])
    else:
        member.exchange([], [(what.root, what.blocks[member.me])])


def all_to_all(member, what):
    """Each to each at once."""
    member.exchange(
        [(place, what.between(member.me, place)) for place in member.others()],
        [(place, what.between(place, member.me)) for place in member.others()],
    )


def reduce_scatter(member, what):
    """Each to each at once, blocks of the receiver's size."""
    member.exchange(
        [(place, what.blocks[place]) for place in member.others()],
        [(place, what.blocks[member.me]) for place in member.others()],
    )


def scan(member, what):
    """From rank to rank."""
    if member.me > 0:
        member.exchange([], [(member.me - 1, what.size)])
    if member.me + 1 < member.n:
        member.exchange([(member.me + 1, what.size)], [])


def powers_below(bit):
    """Powers of two below one, the largest first."""
    while bit > 1:
        bit //= 2
        yield bit


def write(ranks):
    """Prints a schedule."""
    print(f"num_ranks {len(ranks)}")
    for number, rank in enumerate(ranks):
        print(f"rank {number} {{", *rank.lines, "}", sep="\n")
