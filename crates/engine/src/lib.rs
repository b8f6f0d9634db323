//! A deterministic parallel discrete-event engine: conservative and synchronous, in windows of a lookahead, node by node.
//!
//! The engine moves typed messages between nodes (the logical processes) and knows nothing of networks. A [`Model`] says what a node does
//! when a message reaches it; the engine decides only *when* and *on which thread*.
//!
//! # The contract
//!
//! * **Messages take time.** A message sent at `t` arrives no earlier than `t + lookahead`. A node never reads another
//!   node's state, so all nodes are independent of each other for one lookahead: an *epoch*.
//! * **Windows.** An epoch is cut into windows of equal length, best a single one. Within a window the engine takes one node after the other and
//!   hands it all its messages in time order, its *batch*: the larger batches are, the less each event costs. There is no global event list, and a
//!   node's state stays in the cache while its batch is run.
//! * **Partitions.** Each thread runs the nodes of one partition, with a timing wheel of its own. Events for other partitions wait in outboxes, which
//!   threads exchange at a barrier, once per epoch: a *sync round*.
//! * **Lazy nodes.** A node need not have an event for everything that happens inside it. At the end of its batch it
//!   is called to [`advance`](Model::advance) to the window's end, sends what follows from what happened until then, and returns
//!   when something happens next. What it does there may set timers, too, even such that fire in the same window.
//! * **Checked.** A message that arrives within the epoch of its cause, a timer whose instant has passed and a node that left something
//!   undone are bugs of the model; they end the run with a panic, in release builds too. Time ends at [`END_OF_TIME`].
//! * **Determinism.** A node sees its messages in the order (time, source, order of sending by that source), and its timers
//!   after the messages of the same instant. Nothing depends on the number of threads, so neither do the results.
//!
//! ```
//! use netloom_engine::{Due, Engine, Model, Scheduler, Setup};
//! use netloom_units::Time;
//! use std::sync::Arc;
//!
//! /// Two nodes pass a ball to and fro.
//! struct Rally;
//! impl Model for Rally {
//!     type Node = u32;
//!     type Payload = u32;
//!     type Hint = ();
//!     fn start(&self, _: &mut u32, id: u32, out: &mut impl Scheduler<u32>) {
//!         if id == 0 {
//!             out.timer(Time::ZERO, 0);
//!         }
//!     }
//!     fn handle(&self, hits: &mut u32, id: u32, Due { at, .. }: Due, ball: &mut u32, out: &mut impl Scheduler<u32>) {
//!         *hits += 1;
//!         if *ball < 9 {
//!             out.send(1 - id, id, at + Time::from_us(1), *ball + 1);
//!         }
//!     }
//!     fn advance(&self, _: &mut u32, _: u32, _until: Time, _: &mut impl Scheduler<u32>) -> Option<Time> {
//!         None
//!     }
//! }
//!
//! let run = Engine::new(Arc::new(Rally), vec![0, 0], Setup::new(Time::from_us(1))).unwrap().run();
//! assert_eq!(run.nodes, [5, 5]);
//! ```

#![cfg_attr(
    not(test),
    warn(clippy::cast_possible_truncation, clippy::cast_possible_wrap, clippy::cast_sign_loss)
)]

mod barrier;
mod batch;
mod batch_order;
mod engine;
mod exchange;
mod local;
mod model;
mod partition;
mod pending;
mod rank_set;
pub mod reference;
mod session;
mod setup;
mod sort;
mod sync;
mod team;
mod wheel;
mod window_plan;
mod windows;
mod worker;

pub use engine::{Division, END_OF_TIME, Engine, Progress, Run};
pub use model::{
    AnyScheduler, Batch, DRIVER, Due, DynScheduler, FIRST_TIMER, Handler, Hint, Model, NodeIndex, Scheduler,
    TIMER, Unhandled, source_in_order,
};
pub use partition::{contiguous, deferred_nodes};
pub use session::{Pending, Session};
pub use setup::{Bipartition, EngineError, Setup};
pub use team::Rebalance;
