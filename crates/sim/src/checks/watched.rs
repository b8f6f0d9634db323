//! The model with an observer that sees every message before it is handled, and may keep it from being handled.

use netloom_engine::{Due, Model, NodeIndex, Scheduler, reference};
use netloom_record::Records;
use netloom_units::Time;

use crate::message::Message;
use crate::node::Node;
use crate::run::collect::collect_all;
use crate::run::error::RunError;
use crate::run::final_state::FinalState;
use crate::world::World;

/// The model, with `lets_pass` asked of every message: the node, its number, the instant, the source and the message.
struct Watched<'a, F> {
    world: &'a World,
    lets_pass: F,
}

impl<F: Fn(&Node, NodeIndex, Time, u32, &Message) -> bool + Send + Sync> Model for Watched<'_, F> {
    type Node = Node;
    type Payload = Message;
    type Hint = ();

    fn start(&self, node: &mut Node, id: NodeIndex, out: &mut impl Scheduler<Message>) {
        self.world.start(node, id, out);
    }

    fn handle(
        &self,
        node: &mut Node,
        id: NodeIndex,
        Due { at, source }: Due,
        message: &mut Message,
        out: &mut impl Scheduler<Message>,
    ) {
        if (self.lets_pass)(node, id, at, source, message) {
            self.world.handle(node, id, Due { at, source }, message, out);
        }
    }

    fn advance(
        &self,
        node: &mut Node,
        id: NodeIndex,
        until: Time,
        out: &mut impl Scheduler<Message>,
    ) -> Option<Time> {
        self.world.advance(node, id, until, out)
    }
}

/// Runs to the end under the textbook executor.
pub(crate) fn run(
    world: &World,
    nodes: Vec<Node>,
    groups: Vec<String>,
    lets_pass: impl Fn(&Node, NodeIndex, Time, u32, &Message) -> bool + Send + Sync,
) -> Result<Records, RunError> {
    let (nodes, _) = reference::run(&Watched { world, lets_pass }, nodes);
    collect_all(world, FinalState::at_the_end(nodes, groups))
}
