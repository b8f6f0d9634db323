//! `netloom fct`: the finished flows of an outcome in the columns of HPCC's and ConWeave's `fct.txt`, for scripts that read such files.

use std::fmt::Write as _;
use std::io::Write;
use std::path::Path;

use netloom_record::{FlowRecord, Outcome};
use netloom_scenario::build_network;
use netloom_topology::Network;
use netloom_units::Bytes;

use crate::args::{FctArgs, FctColumns};
use crate::convert::standalone::{self, Way};
use crate::failure::Failure;
use crate::files::write_file;
use crate::input::{Loaded, scenario_of};

/// Writes the flows of an outcome.
pub(crate) fn fct(args: &FctArgs) -> Result<(), Failure> {
    let outcome = Outcome::read(&args.dir)?;
    let Loaded { scenario, document } = scenario_of(&args.dir, &outcome)?;
    if scenario.servers.is_some() {
        let message = format!(
            "{}: expected hosts with one NIC each, found `servers`: an fct.txt has no place for several",
            args.dir.display()
        );
        return Err(Failure::Output(message));
    }
    let network = build_network(&scenario, &document)?;
    let options = &scenario.transport.options;
    let text = lines(&network, &outcome.flows()?, args.columns, options.mtu, options.header);
    let out = args.out.clone().unwrap_or_else(|| default_file(&args.dir));
    write_file(&out, text.as_bytes())?;
    writeln!(std::io::stdout(), "{} flows in {}", text.lines().count(), out.display())?;
    Ok(())
}

fn default_file(dir: &Path) -> std::path::PathBuf {
    dir.join("fct.txt")
}

/// A line for every flow whose last byte has been acknowledged, in the order in which flows ended at their senders.
fn lines(
    network: &Network,
    flows: &[FlowRecord],
    columns: FctColumns,
    payload: Bytes,
    header: Bytes,
) -> String {
    let ended = |flow: &FlowRecord| flow.sender_fct.map(|fct| flow.start.0 + fct.0);
    let mut done: Vec<(u64, usize)> =
        (0..).zip(flows).filter_map(|(at, flow)| Some((ended(flow)?, at))).collect();
    // Ways are looked for source by source.
    done.sort_by_key(|&(_, at)| flows[at].src);
    let mut rows = Vec::with_capacity(done.len());
    let mut known: Option<(u32, Vec<Option<Way>>)> = None;
    for (end, at) in done {
        let flow = &flows[at];
        if known.as_ref().is_none_or(|(src, _)| *src != flow.src) {
            known = Some((flow.src, standalone::ways(network, flow.src, payload)));
        }
        let way = known.as_ref().and_then(|(_, ways)| ways[flow.dst as usize]);
        let alone = way.map_or(0, |way| way.standalone_fct(Bytes(flow.bytes), payload, header));
        rows.push((end, at, alone));
    }
    rows.sort_unstable();
    let mut text = String::new();
    for (_, at, alone) in rows {
        let flow = &flows[at];
        let (src, dst) = (address(network, flow.src, columns), address(network, flow.dst, columns));
        // Flows of a host are numbered as they start; a port has 16 bits.
        let port = 10_000 + flow.flow % (1 << 15);
        let (start, fct) = (flow.start.0 / 1000, flow.sender_fct.unwrap_or_default().0 / 1000);
        writeln!(text, "{src} {dst} {port} 100 {} {start} {fct} {alone}", flow.bytes)
            .expect("writing to a string");
    }
    text
}

/// A host by its id: that of the network's file where this is a number, otherwise its own.
fn address(network: &Network, host: u32, columns: FctColumns) -> String {
    let id = network.node_name(host).parse().unwrap_or(host);
    match columns {
        FctColumns::Conweave => id.to_string(),
        FctColumns::Hpcc => {
            format!("{:08x}", 0x0b00_0001u32.wrapping_add((id / 256) << 16).wrapping_add((id % 256) << 8))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use netloom_topology::{BuildContext, LeafSpine, Topology};
    use netloom_units::{Rate, Time};

    /// A lone flow of 100 kB between racks of ConWeave's network takes 16,565 ns at the sender, as its simulator writes, and 8320 ns and 104,800 bytes
    /// at 100 Gb/s alone by its rules.
    #[test]
    fn rows_are_those_of_the_simulators() {
        let topology = Topology::LeafSpine(LeafSpine {
            leaves: 2,
            spines: 2,
            hosts_per_leaf: 300,
            rate: Rate::from_gbps(100),
            latency: Time::from_us(1),
            ..Default::default()
        });
        let network = topology.build(&BuildContext { seed: 1, base_dir: Path::new("") }).unwrap();
        let flow = |src, dst, flow, start, sender_fct| FlowRecord {
            src,
            dst,
            flow,
            bytes: 100_000,
            start: Time::from_ns(start),
            sender_fct,
            ..FlowRecord::default()
        };
        let flows = [
            flow(0, 599, 2, 50_000, Some(Time(16_565_999))),
            flow(1, 2, 0, 0, None),
            flow(300, 0, 0, 40_000, Some(Time(12_345_678))),
        ];
        let text = |columns| lines(&network, &flows, columns, Bytes(1000), Bytes(48));
        assert_eq!(
            text(FctColumns::Conweave),
            "300 0 10000 100 100000 40000 12345 16704\n0 599 10002 100 100000 50000 16565 16704\n"
        );
        assert!(text(FctColumns::Hpcc).starts_with("0b012c01 0b000001 10000 100 100000"));
        assert!(text(FctColumns::Hpcc).ends_with("0b000001 0b025701 10002 100 100000 50000 16565 16704\n"));
    }
}
