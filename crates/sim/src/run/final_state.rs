//! What a run leaves behind.

use netloom_units::Time;

use crate::background::Background;
use crate::message::Message;
use crate::node::Node;

/// What a run leaves behind.
pub(crate) struct FinalState {
    pub(crate) nodes: Vec<Node>,
    /// What is on channels.
    pub(crate) pending: Vec<Message>,
    pub(crate) groups: Vec<String>,
    /// When the run was to end; `Time::MAX` for when all is done.
    pub(crate) until: Time,
    /// Where it was stopped before that, if it was: everything earlier has been run.
    pub(crate) stopped_at: Option<Time>,
    /// Whether time itself came to its end before all was done.
    pub(crate) is_out_of_time: bool,
    /// What was run beside it without packets.
    pub(crate) background: Option<Box<Background>>,
}

impl FinalState {
    /// Those of a run that went on until nothing was left to happen.
    pub(crate) fn at_the_end(nodes: Vec<Node>, groups: Vec<String>) -> Self {
        let (until, pending) = (Time::MAX, Vec::new());
        FinalState {
            nodes,
            pending,
            groups,
            until,
            stopped_at: None,
            is_out_of_time: false,
            background: None,
        }
    }
}
