//! The frames of a stream: a flow whose length is not known in advance.

use std::collections::VecDeque;

/// Which packets a stream's extensions were cut into.
///
/// Each extension is cut into full packets and one of what remains, so packets never hold bytes of two extensions. Equal extensions
/// in a row cost no memory beyond the first, and those whose packets are all acknowledged none at all.
#[derive(Clone, Debug)]
pub(crate) struct Stream {
    /// Whether more may come.
    pub(crate) is_open: bool,
    /// Bytes never sent.
    pub(crate) unsent: u64,
    /// Equal extensions in a row, by ascending first packet.
    runs: VecDeque<Run>,
}

#[derive(Clone, Copy, Debug)]
struct Run {
    /// Number of the first packet.
    first: u32,
    /// Packets per extension.
    packets: u32,
    /// Bytes per extension.
    bytes: u64,
}

impl Stream {
    pub(crate) fn open() -> Self {
        Stream { is_open: true, unsent: 0, runs: VecDeque::new() }
    }

    /// Adds an extension whose packets are numbered from `first`; those below `oldest` are wanted no more. Returns how many packets
    /// it makes.
    #[expect(
        clippy::cast_possible_truncation,
        reason = "Transport::largest_message, by which frames are checked"
    )]
    pub(crate) fn extend(&mut self, bytes: u64, mtu: u64, first: u32, oldest: u32) -> u32 {
        self.unsent += bytes;
        if let Some(run) = self.runs.back().filter(|run| run.bytes == bytes) {
            return run.packets;
        }
        while self.runs.get(1).is_some_and(|run| run.first <= oldest) {
            self.runs.pop_front();
        }
        let packets = bytes.div_ceil(mtu) as u32;
        self.runs.push_back(Run { first, packets, bytes });
        packets
    }

    /// Whether a packet that has been added is the last one of its extension.
    pub(crate) fn ends_message(&self, seq: u32) -> bool {
        let next = self.runs.partition_point(|run| run.first <= seq);
        let run = self.runs[next - 1];
        (seq - run.first) % run.packets == run.packets - 1
    }

    /// Payload of a packet that has been added.
    #[inline]
    pub(crate) fn payload(&self, seq: u32, mtu: u64) -> u64 {
        let next = self.runs.partition_point(|run| run.first <= seq);
        let run = self.runs[next - 1];
        if run.packets == 1 {
            return run.bytes;
        }
        let index = (seq - run.first) % run.packets;
        (run.bytes - u64::from(index) * mtu).min(mtu)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn packets_are_the_extensions_cut_at_the_mtu(extensions in prop::collection::vec(1..40u64, 1..200)) {
            const MTU: u64 = 10;
            let mut stream = Stream::open();
            let mut packets: Vec<u64> = vec![];
            for &bytes in &extensions {
                let before = packets.len();
                let count = stream.extend(bytes, MTU, before as u32, 0);
                packets.extend((0..bytes).step_by(MTU as usize).map(|at| MTU.min(bytes - at)));
                prop_assert_eq!(packets.len() - before, count as usize);
            }
            prop_assert_eq!(stream.unsent, extensions.iter().sum::<u64>());
            for (seq, &payload) in packets.iter().enumerate() {
                prop_assert_eq!(stream.payload(seq as u32, MTU), payload);
            }
            let mut last = 0;
            for &bytes in &extensions {
                let packets = bytes.div_ceil(MTU) as u32;
                for seq in last..last + packets {
                    prop_assert_eq!(stream.ends_message(seq), seq + 1 == last + packets);
                }
                last += packets;
            }
        }
    }

    #[test]
    fn what_is_acknowledged_is_forgotten() {
        let mut stream = Stream::open();
        let mut next = 0;
        for extension in 0..1000 {
            next += stream.extend(25 + extension % 3, 10, next, next);
            assert_eq!(stream.payload(next - 1, 10), 5 + extension % 3);
        }
        assert!(stream.runs.len() <= 2);
    }

    #[test]
    fn equal_extensions_are_remembered_once() {
        let mut stream = Stream::open();
        (0..1000).for_each(|seq| assert_eq!(stream.extend(1500, 1500, seq, 0), 1));
        assert_eq!(stream.runs.len(), 1);
    }
}
