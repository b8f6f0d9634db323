//! After the run: what senders and receivers have handed in of their flows comes together, flow by flow in order.

use std::iter::Peekable;

use netloom_record::{DecisionRow, PacketStatistics, ReceiverRecord, SenderRecord, WindowRow};
use netloom_routing::FlowKey;
use netloom_units::Time;

use crate::node::Node;
use crate::run::error::{ConservationError, RunError};
use crate::run::rows::rows;
use crate::world::World;

/// What is known of a flow besides what its sender knows.
#[derive(Default)]
pub(crate) struct Known {
    /// Of its receiver, if anything has come.
    pub(crate) received: Option<ReceiverRecord>,
    /// What was measured there in windows, and of packets.
    pub(crate) windows: Vec<WindowRow>,
    pub(crate) packets: Option<PacketStatistics>,
}

/// Goes through all flows that have been sent in a run that was over at `end`, with what switches have recorded of their decisions: `add` gets what is known of each at its two ends.
pub(crate) fn join(
    world: &World,
    nodes: &mut [Node],
    end: Time,
    mut add: impl FnMut(SenderRecord, Known) -> Result<(), RunError>,
) -> Result<(), RunError> {
    for (id, node) in (0..).zip(nodes.iter_mut()) {
        if let Node::Host(host) = node {
            host.hand_in(world, id);
            host.sent = Vec::new();
            host.receivers.hand_in_all(&world.recorder, end, id);
        }
    }
    let recorder = &world.recorder;
    let (sent, received) = (recorder.sent.finish()?, recorder.received.finish()?);
    let (in_windows, of_packets) = (recorder.in_windows.finish()?, recorder.of_packets.finish()?);
    let mut in_windows = rows(&in_windows)?.peekable();
    let mut of_packets = rows(&of_packets)?.peekable();
    let decided = recorder.decided.finish()?;
    let mut decided = rows(&decided)?.peekable();
    let mut received = Received { rows: rows(&received)?.peekable(), stray: None };
    for half in rows(&sent)? {
        let mut half = half?;
        let key = FlowKey { src: half.src, flow: half.flow };
        if let Node::Host(host) = &mut nodes[half.src as usize] {
            half.returned_to_sender += host.take_late_returns(half.flow);
        }
        while let Some(DecisionRow { decisions, non_default_decisions, .. }) =
            next_of(&mut decided, key, |row| (row.src, row.flow))?
        {
            half.decisions += decisions;
            half.non_default_decisions += non_default_decisions;
        }
        let received = match (received.take(key)?, &mut nodes[half.dst as usize]) {
            (None, Node::Host(host)) => host.receivers.take(key),
            (received, _) => received,
        };
        let mut known = Known { received, ..Known::default() };
        while let Some(row) = next_of(&mut in_windows, key, |row| (row.src, row.flow))? {
            known.windows.push(row);
        }
        while let Some(row) = next_of(&mut of_packets, key, |row| (row.src, row.flow))? {
            known.packets.get_or_insert_default().add_row(&row);
        }
        add(half, known)?;
    }
    received.take(FlowKey { src: u32::MAX, flow: u32::MAX })?;
    let left = (0..).zip(nodes).filter_map(|(src, node)| match node {
        Node::Host(host) => {
            let returned = host.first_stray().map(|flow| FlowKey { src, flow });
            host.receivers.first_left().into_iter().chain(returned).min()
        }
        _ => None,
    });
    match left.chain(received.stray).min() {
        Some(FlowKey { src, flow }) => Err(ConservationError::Stray { src, flow }.into()),
        None => Ok(()),
    }
}

/// The next row, if it is of a flow. Rows of flows that nobody has sent come with what else is known of these.
fn next_of<R>(
    rows: &mut Peekable<impl Iterator<Item = Result<R, RunError>>>,
    FlowKey { src, flow }: FlowKey,
    of: impl Fn(&R) -> (u32, u32),
) -> Result<Option<R>, RunError> {
    rows.next_if(|row| row.as_ref().map_or(true, |row| of(row) == (src, flow))).transpose()
}

/// What receivers have handed in, in order.
struct Received<I: Iterator> {
    rows: Peekable<I>,
    /// The first that nobody has sent.
    stray: Option<FlowKey>,
}

impl<I: Iterator<Item = Result<ReceiverRecord, RunError>>> Received<I> {
    /// What is known of a flow that comes after those asked for before.
    fn take(&mut self, key: FlowKey) -> Result<Option<ReceiverRecord>, RunError> {
        let mut found: Option<ReceiverRecord> = None;
        while let Some(row) = self.rows.next_if(|row| match row {
            Ok(row) => FlowKey { src: row.src, flow: row.flow } <= key,
            Err(_) => true,
        }) {
            let row = row?;
            let of = FlowKey { src: row.src, flow: row.flow };
            match &mut found {
                _ if of < key => _ = self.stray.get_or_insert(of),
                Some(found) => found.add(&row),
                None => found = Some(row),
            }
        }
        Ok(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(src: u32, flow: u32, packets: u64) -> ReceiverRecord {
        ReceiverRecord { src, flow, packets, ..ReceiverRecord::default() }
    }

    #[test]
    fn rows_of_a_flow_are_added_up_and_rows_that_nobody_sent_are_noted() {
        let rows = [row(0, 1, 2), row(0, 1, 1), row(0, 3, 1), row(1, 0, 7), row(1, 2, 1)];
        let mut received = Received { rows: rows.into_iter().map(Ok).peekable(), stray: None };
        let mut packets = |src, flow| {
            let half = received.take(FlowKey { src, flow }).unwrap();
            (half.map(|half| half.packets), received.stray.map(|key| (key.src, key.flow)))
        };
        assert_eq!(packets(0, 0), (None, None));
        assert_eq!(packets(0, 1), (Some(3), None));
        assert_eq!(packets(1, 0), (Some(7), Some((0, 3))));
        assert_eq!(packets(2, 0), (None, Some((0, 3))));
    }
}
