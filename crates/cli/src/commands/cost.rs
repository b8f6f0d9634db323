//! `netloom cost`: what schemes need in switches and on the wire.

use std::io::Write;
use std::str::FromStr;

use netloom_paths::columns::{Column, ReportTable, Values};

use netloom_scenario::Problem;
use netloom_study::cost::{Fleet, OVERHEADS};
use netloom_units::{Bytes, Rate, Time};

use crate::args::{CostArgs, CostOf, FlowcutCostArgs};
use crate::failure::Failure;
use crate::{parquet_file, show};

/// Computes and prints what a scheme costs.
pub(crate) fn cost(args: &CostArgs) -> Result<(), Failure> {
    match &args.of {
        CostOf::Flowcut(args) => flowcut(args),
    }
}

/// The memory of flowcuts over a grid of networks, and what the schemes of the paper's table add per flow and packet.
fn flowcut(args: &FlowcutCostArgs) -> Result<(), Failure> {
    let packets: Vec<Bytes> = list("--packet", &args.packet)?;
    let fleets = fleets(args, &packets)?;
    let memory = memory(&fleets);
    let mut out = crate::show::out();
    let shown = show::table(memory.cells());
    writeln!(out, "Memory for flowcuts (Flowcut Switching, equation 1)\n{shown}")?;
    let shown = show::table(overheads(&packets).cells());
    writeln!(out, "\nPer flow and per packet (Table III)\n{shown}")?;
    if let Some(path) = &args.out {
        parquet_file::write(path, &memory)?;
        writeln!(out, "written to {}", path.display())?;
    }
    Ok(())
}

/// Every combination of what was given.
fn fleets(args: &FlowcutCostArgs, packets: &[Bytes]) -> Result<Vec<Fleet>, Failure> {
    let hosts: Vec<u64> = list("--hosts", &args.hosts)?;
    let rates: Vec<Rate> = list("--rate", &args.rate)?;
    let rtts: Vec<Time> = list("--rtt", &args.rtt)?;
    let flows: Vec<Option<u64>> = match &args.flows_per_host {
        Some(text) => list("--flows-per-host", text)?.into_iter().map(Some).collect(),
        None => vec![None],
    };
    let mut fleets = Vec::new();
    for &hosts in &hosts {
        for &rate in &rates {
            for &rtt in &rtts {
                for &packet in packets {
                    for &flows_per_host in &flows {
                        let hosts_per_switch = args.hosts_per_switch;
                        let fleet = Fleet { hosts, hosts_per_switch, flows_per_host, rate, rtt, packet };
                        fleet.check().map_err(|invalid| {
                            let option = format!("--{}", invalid.field.replace('_', "-"));
                            Problem::new(option, invalid.reason())
                        })?;
                        fleets.push(fleet);
                    }
                }
            }
        }
    }
    Ok(fleets)
}

/// Values between commas.
fn list<T: FromStr>(option: &str, text: &str) -> Result<Vec<T>, Failure>
where
    T::Err: std::fmt::Display,
{
    let parse =
        |part: &str| part.trim().parse().map_err(|error| Problem::new(option, format!("{error}")).into());
    text.split(',').map(parse).collect()
}

fn memory(fleets: &[Fleet]) -> ReportTable {
    let count = |of: fn(&Fleet) -> u64| Values::Count(fleets.iter().map(of).collect());
    let float = |of: &dyn Fn(&Fleet) -> f64| Values::Float(fleets.iter().map(of).collect());
    let flows = |fleet: &Fleet| fleet.flows_per_host.map_or(f64::NAN, |flows| flows as f64);
    ReportTable {
        name: "flowcut_memory",
        columns: vec![
            Column::new("hosts", count(|fleet| fleet.hosts)),
            Column::new("rate_gbps", float(&|fleet| fleet.rate.0 as f64 / 1e9)),
            Column::new("rtt_us", float(&|fleet| fleet.rtt.as_secs_f64() * 1e6)),
            Column::new("packet_bytes", count(|fleet| fleet.packet.0)),
            Column::new("flows_per_host", float(&flows)),
            Column::new("active_per_host", float(&Fleet::active_flows_per_host)),
            Column::new("every_switch_bytes", float(&Fleet::at_every_switch)),
            Column::new("ingress_bytes", float(&Fleet::at_ingress)),
            Column::new("nic_bytes", float(&Fleet::at_nic)),
        ],
    }
}

fn overheads(packets: &[Bytes]) -> ReportTable {
    let rows = || packets.iter().flat_map(|&packet| OVERHEADS.map(|overhead| (packet, overhead)));
    ReportTable {
        name: "overhead",
        columns: vec![
            Column::new("scheme", Values::Text(rows().map(|(_, o)| o.scheme.to_owned()).collect())),
            Column::new("flow_bytes", Values::Count(rows().map(|(_, o)| o.per_flow).collect())),
            Column::new("ack_bytes", Values::Count(rows().map(|(_, o)| o.per_packet).collect())),
            Column::new("header_bytes", Values::Count(rows().map(|(_, o)| o.in_packet).collect())),
            Column::new("packet_bytes", Values::Count(rows().map(|(packet, _)| packet.0).collect())),
            Column::new(
                "wire_percent",
                Values::Float(rows().map(|(packet, o)| 100.0 * o.wire_share(packet)).collect()),
            ),
        ],
    }
}
