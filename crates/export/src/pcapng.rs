//! A trace of packets as a capture that Wireshark and tshark open.
//!
//! Every channel is an interface, every packet an Ethernet frame with IPv4 and UDP: host n has the address 10.x.y.z of its number, a flow
//! the UDP port of its number, the traffic class is in the DSCP field, an ECN mark is CE. The payload says the rest, in network byte order:
//! the letters `nl`, the packet's kind as an index into `KINDS` and its hop count (8 bits each), the numbers of its flow and of the packet
//! (32 bits each), and the time at which it left its NIC, in picoseconds (64 bits). PAUSE frames are those of IEEE 802.1Qbb.

use netloom_units::narrow;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::time::Duration;

use netloom_record::TraceRecord;
use pcap_file::pcapng::PcapNgWriter;
use pcap_file::pcapng::blocks::enhanced_packet::EnhancedPacketBlock;
use pcap_file::pcapng::blocks::interface_description::{
    InterfaceDescriptionBlock, InterfaceDescriptionOption,
};
use pcap_file::{DataLink, Endianness, PcapError};

/// A trace that cannot be written as a capture.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub struct PcapngError(#[from] PcapError);

/// The whole file, for packets in order of time; `names` are those of channels.
///
/// # Errors
/// What the format has no room for, such as more than 2³² interfaces.
pub fn pcapng(trace: &[TraceRecord], names: &BTreeMap<u32, String>) -> Result<Vec<u8>, PcapngError> {
    let mut writer = PcapNgWriter::with_endianness(Vec::new(), Endianness::Little)?;
    let mut interfaces: BTreeMap<u32, u32> = BTreeMap::new();
    for record in trace {
        if !interfaces.contains_key(&record.channel) {
            let name = names.get(&record.channel).map_or("", String::as_str);
            writer.write_pcapng_block(InterfaceDescriptionBlock {
                linktype: DataLink::ETHERNET,
                snaplen: 0,
                // Picoseconds.
                options: vec![
                    InterfaceDescriptionOption::IfName(Cow::Borrowed(name)),
                    InterfaceDescriptionOption::IfTsResol(12),
                ],
            })?;
            interfaces.insert(record.channel, narrow::<u32>(interfaces.len()));
        }
        let mut data = frame(record);
        data.truncate(record.size as usize);
        writer.write_pcapng_block(EnhancedPacketBlock {
            interface_id: interfaces[&record.channel],
            // The library writes a duration's nanoseconds as that many ticks, whatever a tick is.
            timestamp: Duration::from_nanos(record.time.0),
            original_len: record.size,
            data: Cow::Owned(data),
            options: Vec::new(),
        })?;
    }
    Ok(writer.into_inner())
}

/// What a packet may be, in the order of the payload's numbers.
const KINDS: [&str; 17] = [
    "data",
    "header",
    "returned",
    "ack",
    "nack",
    "cnm",
    "flow-ack",
    "xoff",
    "xon",
    "cnp",
    "word",
    "pull",
    "unreachable",
    "unreachable-ack",
    "unreachable-nack",
    "unreachable-pull",
    "unreachable-cnp",
];

/// A packet's headers, and what netloom knows of it.
#[expect(
    clippy::cast_possible_truncation,
    reason = "cut to the 16 bits that the header has; ports are below 2¹⁶"
)]
fn frame(record: &TraceRecord) -> Vec<u8> {
    if record.kind == "pause" {
        return pause(record.seq);
    }
    let kind = KINDS.iter().position(|kind| *kind == record.kind).map_or(u8::MAX, |kind| narrow::<u8>(kind));
    let mut bytes = Vec::new();
    for host in [record.dst, record.src] {
        // Locally administered.
        bytes.extend([2, 0]);
        bytes.extend(host.to_be_bytes());
    }
    bytes.extend(0x0800u16.to_be_bytes());
    bytes.extend(ipv4(record));
    // The discard service, so that no dissector interprets the payload.
    const DISCARD: u16 = 9;
    let port = 0xc000 | (record.flow & 0x3fff) as u16;
    let (from, to) =
        if matches!(record.kind.as_str(), "data" | "header") { (port, DISCARD) } else { (DISCARD, port) };
    let length = record.size.saturating_sub(34).min(u32::from(u16::MAX)) as u16;
    for field in [from, to, length, 0] {
        bytes.extend(field.to_be_bytes());
    }
    // The letters come first because Wireshark would take a payload that begins with small numbers for a STUN binding request.
    // A byte is what the format has for them.
    bytes.extend([b'n', b'l', kind, u8::try_from(record.hops).unwrap_or(u8::MAX)]);
    bytes.extend(record.flow.to_be_bytes());
    bytes.extend(record.seq.to_be_bytes());
    bytes.extend(record.sent.0.to_be_bytes());
    bytes
}

/// The header of RFC 791 for UDP.
#[expect(
    clippy::cast_possible_truncation,
    reason = "cut to 16 bits, or wraps around as identifications do; a folded sum has 16"
)]
fn ipv4(record: &TraceRecord) -> [u8; 20] {
    let mut header = [0; 20];
    header[0] = 0x45;
    let ecn = if record.marked { 3 } else { 2 };
    header[1] = record.class << 5 | ecn;
    header[2..4]
        .copy_from_slice(&(record.size.saturating_sub(14).min(u32::from(u16::MAX)) as u16).to_be_bytes());
    header[4..6].copy_from_slice(&(record.seq as u16).to_be_bytes());
    header[8] = u8::try_from(64_u32.saturating_sub(record.hops)).unwrap_or(0);
    header[9] = 17;
    for (at, host) in [(12, record.src), (16, record.dst)] {
        header[at..at + 4].copy_from_slice(&(0x0a00_0000 | host & 0x00ff_ffff).to_be_bytes());
    }
    let sum: u32 = header.chunks(2).map(|pair| u32::from(u16::from_be_bytes([pair[0], pair[1]]))).sum();
    let folded = (sum & 0xffff) + (sum >> 16);
    let checksum = !((folded & 0xffff) + (folded >> 16)) as u16;
    header[10..12].copy_from_slice(&checksum.to_be_bytes());
    header
}

/// A priority-based flow control frame: these queues wait, the others go on.
fn pause(queues: u32) -> Vec<u8> {
    let mut bytes = vec![0x01, 0x80, 0xc2, 0, 0, 1, 2, 0, 0, 0, 0, 0];
    for field in [0x8808u16, 0x0101, 0x00ff] {
        bytes.extend(field.to_be_bytes());
    }
    for queue in 0..8 {
        let time = if queues >> queue & 1 == 1 { u16::MAX } else { 0 };
        bytes.extend(time.to_be_bytes());
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use netloom_units::Time;
    use pcap_file::pcapng::{Block, PcapNgReader};

    #[test]
    fn a_capture_reads_back() {
        let data = TraceRecord {
            time: Time(1_234_567_890_123),
            channel: 7,
            kind: "data".to_owned(),
            src: 0x0001_0203,
            dst: 9,
            flow: 5,
            seq: 70_000,
            size: 4160,
            sent: Time(99),
            hops: 2,
            class: 1,
            marked: true,
        };
        let pause = TraceRecord { kind: "pause".to_owned(), channel: 8, seq: 0b10, size: 64, ..data.clone() };
        let ack = TraceRecord { kind: "ack".to_owned(), size: 64, ..data.clone() };
        let lost = TraceRecord { kind: "unreachable-ack".to_owned(), ..ack.clone() };
        let names = [(7, "h0 > s0".to_owned()), (8, "s0 > h0".to_owned())].into();
        let bytes = pcapng(&[data, pause, ack, lost], &names).unwrap();
        let mut reader = PcapNgReader::new(&bytes[..]).unwrap();
        let (mut interfaces, mut packets) = (Vec::new(), Vec::new());
        while let Some(block) = reader.next_block() {
            match block.unwrap().into_owned() {
                Block::InterfaceDescription(block) => interfaces.push(block.options),
                Block::EnhancedPacket(block) => packets.push(block),
                other => panic!("{other:?}"),
            }
        }
        assert_eq!(interfaces.len(), 2);
        assert_eq!(interfaces[0][0], InterfaceDescriptionOption::IfName("h0 > s0".into()));
        let heads: Vec<_> = packets.iter().map(|p| (p.interface_id, p.original_len, p.data.len())).collect();
        assert_eq!(heads, [(0, 4160, 62), (1, 64, 34), (0, 64, 62), (0, 64, 62)]);
        let kinds = [0, 2, 3].map(|i: usize| &packets[i].data[42..46]);
        assert_eq!(kinds, [&b"nl\x00\x02"[..], b"nl\x03\x02", b"nl\x0d\x02"]);
        assert_eq!(packets[0].timestamp.as_nanos(), 1_234_567_890_123);
        let ip = &packets[0].data[14..34];
        assert_eq!((&ip[12..16], &ip[16..20]), (&[10, 1, 2, 3][..], &[10, 0, 0, 9][..]));
        assert_eq!((ip[1], u16::from_be_bytes([ip[2], ip[3]])), (1 << 5 | 3, 4146));
        // The ones' complement sum over a header with its checksum is all ones.
        let sum: u32 = ip.chunks(2).map(|pair| u32::from(u16::from_be_bytes([pair[0], pair[1]]))).sum();
        assert_eq!((sum & 0xffff) + (sum >> 16), 0xffff);
        assert_eq!(&packets[1].data[12..22], &[0x88, 0x08, 1, 1, 0, 0xff, 0, 0, 0xff, 0xff]);
        // An answer goes to the port that the data came from.
        assert_eq!(packets[0].data[34..36], packets[2].data[36..38]);
    }
}
