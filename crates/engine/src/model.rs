//! What a simulation must say of itself to be run.

use netloom_units::Time;

/// A node's index in the order in which nodes were given to the engine.
pub type NodeIndex = u32;

/// The source under which a node sees its own timers: after every message of the same instant, as the sources of messages are smaller.
pub const TIMER: u32 = (1 << 30) - 1;

/// A simulation: what its nodes do with messages.
///
/// The model itself is shared, read-only, by all worker threads; everything that changes is in the nodes.
pub trait Model: Sync {
    /// The state of one node.
    type Node: Send;
    /// What messages and timers carry. Plain data; it is copied once per message. The default one fills places that no message has yet.
    type Payload: Copy + Default + Send;

    /// A node's turn comes soon: what leads to what it will touch may be fetched. Affects speed only, as does [`Self::expect`].
    #[inline(always)]
    fn approach(&self, node: &Self::Node) {
        let _ = node;
    }

    /// A node's turn is the next one of its thread: what it will touch may be fetched, where [`Self::approach`] has made that quick to find. `is_long` says
    /// that more than a few messages wait for it.
    #[inline(always)]
    fn expect(&self, node: &Self::Node, is_long: bool) {
        let _ = (node, is_long);
    }

    /// Calls `each` with every node that ever sends messages to one; returns whether it knows them. Affects speed only.
    fn senders(&self, id: NodeIndex, each: impl FnMut(NodeIndex)) -> bool {
        let _ = (id, each);
        false
    }

    /// Called once per node before time starts. May set timers and send messages, as of time zero.
    fn start(&self, node: &mut Self::Node, id: NodeIndex, out: &mut impl Scheduler<Self::Payload>);

    /// A message or, with source [`TIMER`], one of the node's own timers is due at `at`.
    ///
    /// The payload is the node's to change: what it forwards it can alter in place and copy once.
    fn handle(
        &self,
        node: &mut Self::Node,
        id: NodeIndex,
        at: Time,
        source: u32,
        payload: &mut Self::Payload,
        out: &mut impl Scheduler<Self::Payload>,
    );

    /// Handles a node's events of one turn. A model whose nodes are of several kinds tells them apart here once, not for each event.
    #[inline(always)]
    fn take_turn(&self, node: &mut Self::Node, id: NodeIndex, turn: impl Turn<Self::Payload>) {
        turn.run(&mut Each { model: self, node, id });
    }

    /// Does everything that happens inside the node strictly before `until` and needs no message to happen. Returns
    /// the next instant at which something will, if it is known.
    ///
    /// It stops at a timer of its own that is due before `until`, such as what it does may set ([`Scheduler::next_timer`]), having done
    /// everything before that instant and nothing of it: the timer comes first, then `advance` is called again.
    ///
    /// The results may not depend on how often, or with which steps of `until`, this is called: the engine calls it at
    /// the end of each of the node's turns.
    fn advance(
        &self,
        node: &mut Self::Node,
        id: NodeIndex,
        until: Time,
        out: &mut impl Scheduler<Self::Payload>,
    ) -> Option<Time>;
}

/// The events of one node that its executor hands over at once, in order.
pub trait Turn<P> {
    /// Calls the handler for each of them.
    fn run<H: Handler<P>>(self, handler: &mut H);
}

/// What one node does with its events: [`Model::handle`] with the model and the node put in.
pub trait Handler<P> {
    /// Whether handling one message may set a timer that is due before the next one of the same turn.
    const SETS_TIMERS: bool = true;

    /// Looks at all the messages of a turn before the first one is handled: what depends on nothing else is quicker to settle for one after the other. It may alter
    /// them, but nothing may depend on how many of them come together.
    #[inline(always)]
    fn foresee(&mut self, messages: impl Messages<P>) {
        let _ = messages;
    }

    /// See [`Model::handle`]. `foreseen` is what [`Self::foresee`] has said of the message; without meaning if it has said nothing, and
    /// [`UNFORESEEN`] if it has not been asked.
    fn handle(&mut self, at: Time, source: u32, payload: &mut P, foreseen: u32, out: &mut impl Scheduler<P>);

    /// All that was handed over together has been handled, the last of it at `last`. Nothing may depend on how much that was. Timers that are set for the same turn and
    /// come behind it are not followed by this.
    #[inline(always)]
    fn finish(&mut self, last: Time) {
        let _ = last;
    }
}

/// What a handler is told has been foreseen of a message at which nobody has looked before.
pub const UNFORESEEN: u32 = u32::MAX;

/// The messages and timers of a turn, before they are handled.
pub trait Messages<P> {
    /// Looks at each of them, in any order. What is said of one is handed over with it.
    fn look(self, look: impl FnMut(&mut P) -> u32);
}

/// The handler that asks the model about each event.
struct Each<'a, M: Model + ?Sized> {
    model: &'a M,
    node: &'a mut M::Node,
    id: NodeIndex,
}

impl<M: Model + ?Sized> Handler<M::Payload> for Each<'_, M> {
    #[inline(always)]
    fn handle(
        &mut self,
        at: Time,
        source: u32,
        payload: &mut M::Payload,
        _: u32,
        out: &mut impl Scheduler<M::Payload>,
    ) {
        self.model.handle(self.node, self.id, at, source, payload, out);
    }
}

/// Where a node puts the messages it sends and the timers it sets.
pub trait Scheduler<P> {
    /// Sends a message that reaches node `to` at `at`.
    ///
    /// `source`, smaller than [`TIMER`], orders messages that arrive at one node in the same instant; one source's messages keep the order
    /// in which they were sent. All messages of one source must come from one node.
    ///
    /// `at` must be at least one lookahead after whatever caused the message. The engine panics if it is not, as soon as that could
    /// make a difference.
    fn send(&mut self, to: NodeIndex, source: u32, at: Time, payload: P) {
        self.send_made(to, source, at, || payload);
    }

    /// [`Self::send`] of a payload that is made in the place where it is kept, so that it is written once only.
    fn send_made(&mut self, to: NodeIndex, source: u32, at: Time, make: impl FnOnce() -> P);

    /// Calls the node back at `at`: in [`Model::handle`] any instant from the one being handled on, in [`Model::advance`] any instant
    /// after the one that the node has come to. The engine panics at a timer whose instant has passed.
    fn timer(&mut self, at: Time, payload: P);

    /// When the next of the node's timers is due that fires in the running turn; `Time::MAX` if there is none. Nothing that happens
    /// inside the node at that instant or later may be done before the timer was handled.
    fn next_timer(&self) -> Time;

    /// Takes out the next timer that fires in the running turn, if it is due strictly before `before`.
    ///
    /// A node that, on a message, first catches up with what happened inside it since it was last looked at may set timers that are due
    /// before that message; it takes them out by this, and handles them, on its way.
    fn due_timer(&mut self, before: Time) -> Option<(Time, P)>;

    /// Adds to the run's progress count (finished flows, say), which [`Progress`](crate::Progress) reports.
    fn tally(&mut self, amount: u64);
}
