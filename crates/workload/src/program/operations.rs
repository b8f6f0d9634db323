//! What became of each operation of a rank, and what let it start: what a critical path is made of. Kept where that is asked for.

use netloom_topology::HostId;
use netloom_units::{Bytes, Time, narrow};

use super::{ANY, Op, OpKind};

/// One operation in one repetition, from the instant from which it ran.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OperationLog {
    /// The repetition.
    pub round: u32,
    /// Which operation of the rank, in the program's order.
    pub op: u32,
    /// What it does.
    pub kind: OperationKind,
    /// A calculation: when its CPU took it up; a send: when it was ready, or its CPU took it up; a receive: when it was posted.
    pub from: Time,
    /// A send: when the transport was done with the message; otherwise when it had finished. `None` if the run ended before.
    pub until: Option<Time>,
    /// The operation of this rank that let it begin: by its own end or beginning, or by leaving the CPU. Of a receive that a message to oneself ended: the send. `None`: it
    /// began with the repetition.
    pub after: Option<u32>,
    /// Of a send its own message, of a receive the one whose arrival ended it; `None` if that had arrived before. A sender, and the number there.
    pub message: Option<(HostId, u32)>,
    /// The collective operation that it is a part of: a place in [`JobPlan::collectives`](crate::JobPlan::collectives).
    pub collective: Option<u32>,
    /// Of a send: its payload.
    pub bytes: Bytes,
}

/// What an operation does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OperationKind {
    /// Computes.
    Computation,
    /// Sends a message.
    Send,
    /// Waits for a message.
    Receive,
    /// Stands for communication that is not simulated, as that of an ideal scale-up network: it lasts a time that is known.
    IdealCommunication,
}

impl OperationKind {
    /// Every kind, in the order of its number.
    pub const ALL: [Self; 4] = [Self::Computation, Self::Send, Self::Receive, Self::IdealCommunication];

    /// Its name in tables.
    pub fn name(self) -> &'static str {
        match self {
            OperationKind::Computation => "computation",
            OperationKind::Send => "send",
            OperationKind::Receive => "receive",
            OperationKind::IdealCommunication => "ideal-communication",
        }
    }

    fn of(op: &Op) -> Self {
        match op.kind {
            OpKind::Send => OperationKind::Send,
            OpKind::Recv => OperationKind::Receive,
            OpKind::Calc if op.computes() => OperationKind::Computation,
            OpKind::Calc => OperationKind::IdealCommunication,
        }
    }
}

/// Takes the notes of one rank.
#[derive(Clone, Debug)]
pub(super) struct Operations {
    log: Vec<OperationLog>,
    round: u32,
    /// By operation: the one whose end or beginning made it ready in this round, and the place of its note; [`ANY`] where there is none.
    of_op: Box<[(u32, u32)]>,
}

impl Operations {
    /// For a rank with this many operations, before its first round.
    pub(super) fn new(ops: usize) -> Self {
        Operations { log: Vec::new(), round: ANY, of_op: vec![(ANY, ANY); ops].into() }
    }

    pub(super) fn begin_round(&mut self) {
        self.round = self.round.wrapping_add(1);
        self.of_op.fill((ANY, ANY));
    }

    /// `later` became ready because of `op`.
    pub(super) fn ready(&mut self, later: u32, op: u32) {
        self.of_op[later as usize].0 = op;
    }

    /// An operation runs. `freed_by` has left the CPU for which it had waited.
    pub(super) fn begin(
        &mut self,
        number: u32,
        op: &Op,
        collective: Option<u32>,
        freed_by: Option<u32>,
        now: Time,
    ) {
        let (ready_after, place) = &mut self.of_op[number as usize];
        *place = narrow::<u32>(self.log.len());
        self.log.push(OperationLog {
            round: self.round,
            op: number,
            kind: OperationKind::of(op),
            from: now,
            until: None,
            after: freed_by.or(Some(*ready_after).filter(|&after| after != ANY)),
            message: None,
            collective,
            bytes: if op.kind == OpKind::Send { Bytes(op.value.max(1)) } else { Bytes(0) },
        });
    }

    /// The message of a send, or the one whose arrival ends a receive.
    pub(super) fn message(&mut self, op: u32, message: (HostId, u32)) {
        self.note(op).message = Some(message);
    }

    /// A message to oneself ends a receive.
    pub(super) fn sent_to_oneself(&mut self, receive: u32, send: u32) {
        self.note(receive).after = Some(send);
    }

    pub(super) fn end(&mut self, op: u32, now: Time) {
        self.note(op).until = Some(now);
    }

    pub(super) fn take(&mut self) -> Vec<OperationLog> {
        std::mem::take(&mut self.log)
    }

    fn note(&mut self, op: u32) -> &mut OperationLog {
        let (_, place) = self.of_op[op as usize];
        &mut self.log[place as usize]
    }
}
