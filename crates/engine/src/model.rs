//! What a simulation must provide to be run: the model of a logical process and its interface to the executor.

use netloom_units::Time;

/// A node's index in the order in which nodes were given to the engine. A node is a logical process of the simulation.
pub type NodeIndex = u32;

/// The source under which a node sees its own timers: after every message of the same instant, as the sources of messages are smaller.
pub const TIMER: u32 = (1 << 30) - 1;

/// The source under which a node sees timers that were set [from outside](crate::Session::timer): after every message of the same instant, and before the timers of its own. When they were set
/// beside those depends on where the run paused, and is not to be seen.
pub const DRIVER: u32 = TIMER - 1;

/// The first source under which a node sees timers that were set [in an order](Scheduler::timer_in_order): after every message of the same instant, and before all other timers. Sources of messages are smaller.
pub const FIRST_TIMER: u32 = 3 << 28;

/// The source under which a node sees a timer with this place in that order. Timers beyond the last place, the 2²⁸th or so, share it.
#[inline]
pub fn source_in_order(place: u32) -> u32 {
    FIRST_TIMER + place.min(DRIVER - 1 - FIRST_TIMER)
}

/// Whether this is the source of a timer, and not of a message.
#[inline]
pub(crate) fn is_timer(source: u32) -> bool {
    source >= FIRST_TIMER
}

/// When something is due, and whence it comes: in the order in which it is handled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Due {
    /// The instant.
    pub at: Time,
    /// The number that the sender gave; for timers of the node's own [`TIMER`], or [`FIRST_TIMER`] and their place in the order; [`DRIVER`] for those set from outside.
    pub source: u32,
}

/// A simulation: what its nodes do with messages.
///
/// The model itself is shared, read-only, by all worker threads; everything that changes is in the nodes.
pub trait Model: Send + Sync {
    /// The state of one node.
    type Node: Send;
    /// What messages and timers carry. Plain data; it is copied once per message. The default value fills memory that holds no message yet.
    type Payload: Copy + Default + Send;
    /// What a node notes about an event before it handles the events of a batch ([`Handler::prepare`]). `()` for models that prepare nothing.
    type Hint: Hint;

    /// The node's batch is two batches ahead of its thread: the model may prefetch what leads to the node's state. Affects speed only, as does
    /// [`Self::prefetch_state`].
    #[inline(always)]
    fn prefetch_node(&self, node: &Self::Node) {
        let _ = node;
    }

    /// The node's batch is the next one of its thread: the model may prefetch the node's state, where [`Self::prefetch_node`] has made that quick to
    /// find. `is_long` says that more than a few events wait for it.
    #[inline(always)]
    fn prefetch_state(&self, node: &Self::Node, is_long: bool) {
        let _ = (node, is_long);
    }

    /// Calls `each` with every node that ever sends messages to one; returns whether the model knows them. Affects speed only.
    fn senders(&self, id: NodeIndex, each: impl FnMut(NodeIndex)) -> bool {
        let _ = (id, each);
        false
    }

    /// Called once per node before time starts. May set timers and send messages, as of time zero.
    fn start(&self, node: &mut Self::Node, id: NodeIndex, out: &mut impl Scheduler<Self::Payload>);

    /// A message or, with a source from [`FIRST_TIMER`] on, a timer is due.
    ///
    /// The payload is the node's to change: what it forwards it can alter in place and copy once.
    fn handle(
        &self,
        node: &mut Self::Node,
        id: NodeIndex,
        due: Due,
        payload: &mut Self::Payload,
        out: &mut impl Scheduler<Self::Payload>,
    );

    /// Handles a batch of a node's events. A model whose nodes are of several kinds dispatches on the kind here once, not for each event.
    #[inline(always)]
    fn run_batch(&self, node: &mut Self::Node, id: NodeIndex, batch: impl Batch<Self>) {
        batch.run(&mut HandleEach { model: self, node, id });
    }

    /// The first instant at which a node [may report](Scheduler::report) something because of the messages and timers that are to be handled next, which `pending` shows in any order; [`Time::MAX`] if it
    /// cannot. It may be too early, but not too late. [`Session`](crate::Session) cuts windows by it.
    #[inline(always)]
    fn first_report(
        &self,
        node: &Self::Node,
        pending: impl FnOnce(&mut dyn FnMut(Time, &Self::Payload)),
    ) -> Time {
        let _ = (node, pending);
        Time::ZERO
    }

    /// Does everything that happens inside the node strictly before `until` and needs no message to happen. Returns
    /// the next instant at which something will, if it is known.
    ///
    /// It stops at a timer of its own that is due before `until`, such as what it does may set ([`Scheduler::next_timer`]), having done
    /// everything before that instant and nothing of it: the timer comes first, then `advance` is called again.
    ///
    /// The results may not depend on how often, or with which steps of `until`, this is called: the engine calls it at
    /// the end of each of the node's batches.
    fn advance(
        &self,
        node: &mut Self::Node,
        id: NodeIndex,
        until: Time,
        out: &mut impl Scheduler<Self::Payload>,
    ) -> Option<Time>;
}

/// What [`Handler::prepare`] notes about an event and [`Handler::handle`] gets with it. It is kept in four bytes of the event itself, where its
/// destination was, so that it takes no memory of its own.
pub trait Hint: Copy {
    /// What an event carries that was not prepared.
    const NONE: Self;

    /// The hint in 32 bits.
    fn to_bits(self) -> u32;

    /// The hint of which these are the [bits](Self::to_bits).
    fn from_bits(bits: u32) -> Self;
}

impl Hint for () {
    const NONE: Self = ();

    #[inline(always)]
    fn to_bits(self) -> u32 {
        0
    }

    #[inline(always)]
    fn from_bits(_: u32) -> Self {}
}

/// Events of one node that the executor hands over at once, in order.
pub trait Batch<M: Model + ?Sized> {
    /// Calls the handler for each of them.
    fn run<H: Handler<M>>(self, handler: &mut H);
}

/// What one node does with its events: [`Model::handle`] with the model and the node put in.
pub trait Handler<M: Model + ?Sized> {
    /// Whether handling one message may set a timer that is due before the next message of the same batch.
    const SETS_TIMERS: bool = true;

    /// Whether [`Self::expect`] is to be called for the event that is handled next.
    #[inline(always)]
    fn looks_ahead(&self) -> bool {
        false
    }

    /// The event that is handled next `is_alone`: no event of the node that comes after it is due at the same instant, or one is. Timers that the handler sets itself may be due then.
    #[inline(always)]
    fn expect(&mut self, is_alone: bool) {
        let _ = is_alone;
    }

    /// Looks at all events of a batch before the first one is handled: what depends on the event alone is faster to compute for one event after the
    /// other. It may alter them and attach a [`Hint`] to each, but nothing may depend on how many of them come together. Events that come
    /// without this call carry [`Hint::NONE`]; if the call attaches nothing, their hints have no meaning.
    #[inline(always)]
    fn prepare(&mut self, events: impl Unhandled<M>) {
        let _ = events;
    }

    /// See [`Model::handle`]. `hint` is what [`Self::prepare`] has attached to the event.
    fn handle(
        &mut self,
        due: Due,
        payload: &mut M::Payload,
        hint: M::Hint,
        out: &mut impl Scheduler<M::Payload>,
    );

    /// All events of the batch have been handled, the last of them at `last`. Nothing may depend on how many there were. Timers that are set for the
    /// same window and come behind the batch are not followed by this.
    #[inline(always)]
    fn finish(&mut self, last: Time) {
        let _ = last;
    }
}

/// The messages and timers of a batch, before they are handled.
pub trait Unhandled<M: Model + ?Sized> {
    /// How many there are.
    fn count(&self) -> usize;

    /// Calls `hint` with each payload, in any order, and attaches what it returns to the event.
    fn annotate(self, hint: impl FnMut(&mut M::Payload) -> M::Hint);
}

/// The handler that calls [`Model::handle`] for each event.
struct HandleEach<'a, M: Model + ?Sized> {
    model: &'a M,
    node: &'a mut M::Node,
    id: NodeIndex,
}

impl<M: Model + ?Sized> Handler<M> for HandleEach<'_, M> {
    #[inline(always)]
    fn handle(
        &mut self,
        due: Due,
        payload: &mut M::Payload,
        _: M::Hint,
        out: &mut impl Scheduler<M::Payload>,
    ) {
        self.model.handle(self.node, self.id, due, payload, out);
    }
}

/// Where a node schedules events: the messages it sends and the timers it sets.
pub trait Scheduler<P> {
    /// Sends a message that reaches node `to` at `at`.
    ///
    /// `source`, smaller than [`FIRST_TIMER`], orders messages that arrive at one node in the same instant; one source's messages keep the order
    /// in which they were sent. All messages of one source must come from one node.
    ///
    /// `at` must be at least one lookahead after whatever caused the message. The engine panics if it is not, as soon as that could
    /// make a difference.
    fn send(&mut self, to: NodeIndex, source: u32, at: Time, payload: P) {
        self.send_with(to, source, at, || payload);
    }

    /// [`Self::send`] of a payload that is made in the place where it is kept, so that it is written once only.
    fn send_with(&mut self, to: NodeIndex, source: u32, at: Time, make: impl FnOnce() -> P);

    /// Calls the node back at `at`: in [`Model::handle`] any instant from the one being handled on, in [`Model::advance`] any instant
    /// after the one that the node has come to. The engine panics at a timer whose instant has passed.
    ///
    /// Timers of one instant come in the order in which they are set.
    fn timer(&mut self, at: Time, payload: P) {
        self.timer_from(TIMER, at, payload);
    }

    /// The same before all other timers of the instant, in the order of `place`, whenever each was set.
    fn timer_in_order(&mut self, place: u32, at: Time, payload: P) {
        self.timer_from(source_in_order(place), at, payload);
    }

    /// The same with the source under which the node is to see the timer.
    fn timer_from(&mut self, source: u32, at: Time, payload: P);

    /// When the next of the node's timers is due that fires in the running window; `Time::MAX` if there is none. Nothing that happens
    /// inside the node at that instant or later may be done before the timer was handled.
    fn next_timer(&self) -> Time;

    /// Takes out the next timer that fires in the running window, if it comes before what is due then: strictly before its instant, or in it with a smaller source.
    ///
    /// A node that, on a message or timer, first catches up with what happened inside it since its last event may set timers that come
    /// before that; it takes them out by this, and handles them, on its way.
    fn due_timer(&mut self, before: Due) -> Option<(Due, P)>;

    /// Adds to the run's progress count (finished flows, say), which [`Progress`](crate::Progress) reports.
    fn tally(&mut self, amount: u64);

    /// The node holds something for what drives the run from outside: [`Session::take_reports`](crate::Session::take_reports) names the node, and the session `pauses` or not.
    fn report(&mut self, pauses: bool);
}

/// A [`Scheduler`] as an object: its methods without generic arguments.
pub trait DynScheduler<P> {
    /// See [`Scheduler::send`].
    fn send(&mut self, to: NodeIndex, source: u32, at: Time, payload: P);
    /// See [`Scheduler::timer_from`].
    fn timer_from(&mut self, source: u32, at: Time, payload: P);
    /// See [`Scheduler::next_timer`].
    fn next_timer(&self) -> Time;
    /// See [`Scheduler::due_timer`].
    fn due_timer(&mut self, before: Due) -> Option<(Due, P)>;
    /// See [`Scheduler::tally`].
    fn tally(&mut self, amount: u64);
    /// See [`Scheduler::report`].
    fn report(&mut self, pauses: bool);
}

impl<P, S: Scheduler<P>> DynScheduler<P> for S {
    fn send(&mut self, to: NodeIndex, source: u32, at: Time, payload: P) {
        Scheduler::send(self, to, source, at, payload);
    }

    fn timer_from(&mut self, source: u32, at: Time, payload: P) {
        Scheduler::timer_from(self, source, at, payload);
    }

    fn next_timer(&self) -> Time {
        Scheduler::next_timer(self)
    }

    fn due_timer(&mut self, before: Due) -> Option<(Due, P)> {
        Scheduler::due_timer(self, before)
    }

    fn tally(&mut self, amount: u64) {
        Scheduler::tally(self, amount);
    }

    fn report(&mut self, pauses: bool) {
        Scheduler::report(self, pauses);
    }
}

/// Any scheduler behind a reference. A model is compiled once for all schedulers that it is given in this form, which take an indirect call for
/// each message and timer: a model of many thousand lines takes long to compile.
pub struct AnyScheduler<'a, P>(pub &'a mut dyn DynScheduler<P>);

impl<P> Scheduler<P> for AnyScheduler<'_, P> {
    fn send_with(&mut self, to: NodeIndex, source: u32, at: Time, make: impl FnOnce() -> P) {
        self.0.send(to, source, at, make());
    }

    fn timer_from(&mut self, source: u32, at: Time, payload: P) {
        self.0.timer_from(source, at, payload);
    }

    fn next_timer(&self) -> Time {
        self.0.next_timer()
    }

    fn due_timer(&mut self, before: Due) -> Option<(Due, P)> {
        self.0.due_timer(before)
    }

    fn tally(&mut self, amount: u64) {
        self.0.tally(amount);
    }

    fn report(&mut self, pauses: bool) {
        self.0.report(pauses);
    }
}
