//! What a flow has to send, cut into packets.

use netloom_units::recurrence::Walk;

use crate::stream::Stream;

/// The bytes of a flow as numbered packets: a known number of bytes, or a stream that is extended while it is open.
#[derive(Clone, Debug)]
pub(crate) struct Content {
    /// 1 if packet 0 is a SYN, without payload.
    syn: u32,
    /// Length of a flow that is no stream.
    bytes: u64,
    /// Number of packets, as far as it is known.
    pub(crate) count: u32,
    /// What a stream's packets hold.
    stream: Option<Box<Stream>>,
}

impl Content {
    /// [Recurs](netloom_units::recurrence) as what a flow has to send, of which `next` is next: until the last packet, which may be short, and says that it is the last.
    pub(crate) fn recur(&mut self, flow: u64, next: u32, walk: &mut Walk) {
        let Content { syn, bytes, count, stream } = self;
        walk.exact(*syn);
        walk.exact(*bytes);
        walk.ends(flow, next, *count);
        if next < *syn {
            walk.pass_over();
        }
        if stream.is_some() {
            walk.refuse("a stream of frames");
        }
    }

    /// That many bytes, in full packets and one of what remains.
    #[expect(
        clippy::cast_possible_truncation,
        reason = "Transport::largest_message, by which workloads and Driven::start are checked"
    )]
    pub(crate) fn new(bytes: u64, mtu: u64) -> Self {
        Content { syn: 0, bytes, count: bytes.div_ceil(mtu) as u32, stream: None }
    }

    /// The same behind a SYN.
    pub(crate) fn with_syn(self) -> Self {
        Content { syn: 1, count: self.count + 1, ..self }
    }

    /// That many full packets have been sent and have arrived without having been numbered: there is so much less to send. No packet behind the next one may be the last.
    pub(crate) fn shorten(&mut self, packets: u32, mtu: u64) {
        self.bytes -= u64::from(packets) * mtu;
        self.count -= packets;
    }

    /// A stream without anything yet.
    pub(crate) fn open() -> Self {
        Content { syn: 0, bytes: 0, count: 0, stream: Some(Box::new(Stream::open())) }
    }

    /// Appends bytes to an open stream; packets below `oldest` are wanted no more. Returns whether there are any new ones.
    ///
    /// # Panics
    /// If the stream has more packets than 32 bits can number.
    #[inline]
    pub(crate) fn extend(&mut self, bytes: u64, mtu: u64, oldest: u32) -> bool {
        let Some(stream) = self.stream.as_mut().filter(|stream| stream.is_open && bytes > 0) else {
            return false;
        };
        let more = stream.extend(bytes, mtu, self.count, oldest);
        self.count = self.count.checked_add(more).expect("a stream of fewer than 2³² packets");
        true
    }

    /// The content of a subflow: after what it has sent there is one packet more, if any of its flow's bytes are `unsent`.
    #[inline]
    pub(crate) fn offer(&mut self, next: u32, unsent: u64, mtu: u64) {
        self.bytes = u64::from(next) * mtu + unsent;
        self.count = next + u32::from(unsent > 0);
    }

    /// Ends a stream: what it holds now is all.
    pub(crate) fn close(&mut self) {
        if let Some(stream) = &mut self.stream {
            stream.is_open = false;
        }
    }

    /// Whether more may be appended.
    #[inline]
    pub(crate) fn is_open(&self) -> bool {
        self.stream.as_ref().is_some_and(|stream| stream.is_open)
    }

    /// Payload of a packet that leaves, for the first time or `again`; and whether it is the last one.
    #[inline(always)]
    pub(crate) fn depart(&mut self, seq: u32, mtu: u64, again: bool) -> (u64, bool) {
        let last = seq + 1 == self.count;
        match &mut self.stream {
            _ if seq < self.syn => (0, false),
            None if last => ((self.bytes - u64::from(seq - self.syn) * mtu).min(mtu), true),
            None => (mtu, false),
            Some(stream) => {
                let payload = stream.payload(seq, mtu);
                stream.unsent -= if again { 0 } else { payload };
                (payload, last && !stream.is_open)
            }
        }
    }

    /// Whether a packet of a stream is the last one of what was appended at a time.
    pub(crate) fn ends_message(&self, seq: u32) -> bool {
        self.stream.as_ref().is_some_and(|stream| stream.ends_message(seq))
    }

    /// Bytes never sent, if `next` is the next packet.
    #[inline]
    pub(crate) fn unsent(&self, next: u32, mtu: u64) -> u64 {
        let sent = u64::from(next.saturating_sub(self.syn)) * mtu;
        self.stream.as_ref().map_or(self.bytes.saturating_sub(sent), |stream| stream.unsent)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MTU: u64 = 1000;

    fn payloads(content: &mut Content) -> Vec<(u64, bool)> {
        (0..content.count).map(|seq| content.depart(seq, MTU, false)).collect()
    }

    #[test]
    fn a_flow_is_full_packets_and_what_remains() {
        let mut content = Content::new(2500, MTU);
        assert_eq!(payloads(&mut content), [(1000, false), (1000, false), (500, true)]);
        assert_eq!([0, 1, 2, 3].map(|next| content.unsent(next, MTU)), [2500, 1500, 500, 0]);
        assert_eq!(payloads(&mut Content::new(2000, MTU)), [(1000, false), (1000, true)]);
        assert!(!content.is_open() && !content.ends_message(2));
    }

    #[test]
    fn what_has_been_skipped_is_not_sent() {
        let mut content = Content::new(12_500, MTU).with_syn();
        content.shorten(10, MTU);
        assert_eq!(payloads(&mut content), [(0, false), (1000, false), (1000, false), (500, true)]);
        assert_eq!(content.unsent(1, MTU), 2500);
    }

    #[test]
    fn behind_a_syn_all_is_one_number_later() {
        let mut content = Content::new(2500, MTU).with_syn();
        assert_eq!(payloads(&mut content), [(0, false), (1000, false), (1000, false), (500, true)]);
        assert_eq!([0, 1, 2, 3, 4].map(|next| content.unsent(next, MTU)), [2500, 2500, 1500, 500, 0]);
    }

    #[test]
    fn a_subflow_has_one_packet_more_while_its_flow_has_bytes() {
        let mut content = Content::new(0, MTU);
        content.offer(3, 1500, MTU);
        assert_eq!((content.count, content.unsent(3, MTU)), (4, 1500));
        assert_eq!(content.depart(3, MTU, false), (1000, true));
        content.offer(4, 0, MTU);
        assert_eq!((content.count, content.unsent(4, MTU)), (4, 0));
    }

    #[test]
    fn a_stream_ends_with_its_last_extension() {
        let mut content = Content::open();
        assert!(!content.extend(0, MTU, 0) && content.extend(1500, MTU, 0) && content.extend(300, MTU, 0));
        assert_eq!((content.count, content.unsent(0, MTU)), (3, 1800));
        assert_eq!([0, 1, 2].map(|seq| content.ends_message(seq)), [false, true, true]);
        assert_eq!(content.depart(0, MTU, false), (1000, false));
        assert_eq!(content.depart(0, MTU, true), (1000, false), "again: it is sent already");
        assert_eq!(content.unsent(1, MTU), 800);
        content.close();
        assert!(!content.is_open() && !content.extend(10, MTU, 0));
        assert_eq!(
            [content.depart(1, MTU, false), content.depart(2, MTU, false)],
            [(500, false), (300, true)]
        );
    }
}
