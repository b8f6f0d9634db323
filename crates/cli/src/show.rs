//! Tables and numbers for people.

use netloom_record::{Performance, Statistics, Status, Summary};
use netloom_scenario::study::significant;
use tabled::builder::Builder;
use tabled::settings::object::Columns;
use tabled::settings::{Alignment, Style};

/// Rows as a table whose first row is the header; all columns but the first are numbers.
pub(crate) fn table(rows: Vec<Vec<String>>) -> String {
    let mut table = Builder::from_iter(rows).build();
    table.with(Style::rounded()).modify(Columns::new(1..), Alignment::right());
    table.to_string()
}

/// Rows of words as a table whose first row is the header.
pub(crate) fn text_table(rows: Vec<Vec<String>>) -> String {
    Builder::from_iter(rows).build().with(Style::rounded()).to_string()
}

/// Seconds in the unit that suits them.
pub(crate) fn time(seconds: f64) -> String {
    let units = [(1.0, "s"), (1e-3, "ms"), (1e-6, "us"), (1e-9, "ns")];
    let (scale, unit) = units.into_iter().find(|(scale, _)| seconds >= *scale).unwrap_or((1e-9, "ns"));
    format!("{} {unit}", significant(seconds / scale))
}

/// A large number with k, M or G.
pub(crate) fn count(number: f64) -> String {
    let units = [(1e9, "G"), (1e6, "M"), (1e3, "k")];
    match units.into_iter().find(|(scale, _)| number >= *scale) {
        Some((scale, unit)) => format!("{}{unit}", significant(number / scale)),
        None => significant(number),
    }
}

fn bytes(bytes: u64) -> String {
    let units = [(1u64 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")];
    match units.into_iter().find(|(scale, _)| bytes >= *scale) {
        Some((scale, unit)) => format!("{} {unit}", significant(bytes as f64 / scale as f64)),
        None => format!("{bytes} B"),
    }
}

/// Bits per second in the unit that suits them.
pub(crate) fn rate(bps: f64) -> String {
    let units = [(1e12, "Tbit/s"), (1e9, "Gbit/s"), (1e6, "Mbit/s")];
    match units.into_iter().find(|(scale, _)| bps >= *scale) {
        Some((scale, unit)) => format!("{} {unit}", significant(bps / scale)),
        None => format!("{} bit/s", significant(bps)),
    }
}

fn percent(share: f64) -> String {
    format!("{} %", significant(share * 100.0))
}

fn row<const N: usize>(cells: [&str; N]) -> Vec<String> {
    cells.map(str::to_owned).to_vec()
}

/// The result of a run.
pub(crate) fn summary(summary: &Summary, performance: &Performance) -> String {
    let mut text = String::new();
    let mut rows = vec![row(["", "mean", "p50", "p99", "p99.9", "max"])];
    let mut add = |name: &str, statistics: &Option<Statistics>, show: &dyn Fn(f64) -> String| {
        if let Some(s) = statistics {
            let numbers = [s.mean, s.p50, s.p99, s.p99_9, s.max].map(show);
            rows.push(std::iter::once(name.to_owned()).chain(numbers).collect());
        }
    };
    add("FCT", &summary.fct_ps, &|ps| time(ps * 1e-12));
    add("slowdown", &summary.slowdown, &significant);
    if rows.len() > 1 {
        text += &table(rows);
        text.push('\n');
    }

    let flows = &summary.flows;
    let unfinished = match flows.unfinished {
        0 => String::new(),
        n => format!(", {n} unfinished"),
    };
    let goodput = summary.goodput_bps.map(|bps| format!(", {} in all", rate(bps))).unwrap_or_default();
    text += &format!(
        "flows      {} completed{unfinished}, {}{goodput}\n",
        flows.completed,
        bytes(flows.completed_bytes)
    );
    let packets = &summary.packets;
    text += &format!(
        "packets    {} sent, {} out of order (largest distance {}), {} retransmitted, {} marked\n",
        count(packets.sent as f64),
        percent(packets.ooo_share),
        packets.max_ood,
        packets.retransmissions,
        packets.ecn_marks
    );
    for (selector, decisions) in &summary.totals.decisions {
        let share = match decisions.taken {
            0 => String::new(),
            taken => format!(", {} off the default", percent(decisions.deviated as f64 / taken as f64)),
        };
        text += &format!("decisions  {} by {selector}{share}\n", count(decisions.taken as f64));
    }
    let drains = &summary.draining;
    if drains.drains > 0 {
        let share =
            drains.time_share.map(|share| format!(", {} of the time", percent(share))).unwrap_or_default();
        text += &format!("draining   {} drains in {} flows{share}\n", drains.drains, drains.flows);
    }
    for tier in &summary.tiers {
        text += &format!(
            "{:<10} {} mean use, {} at most; queue at most {}; {} drops\n",
            tier.tier,
            percent(tier.mean_utilisation),
            percent(tier.max_utilisation),
            bytes(tier.max_queue_bytes),
            tier.drops
        );
    }
    let speed =
        performance.packet_hops_per_s.map(|speed| format!(", {}/s", count(speed))).unwrap_or_default();
    let memory =
        performance.peak_memory_bytes.map(|peak| format!(", {} of memory", bytes(peak))).unwrap_or_default();
    text += &format!(
        "run        {} simulated in {}, {} packet-hops{speed}{memory}\n",
        time(summary.totals.simulated.as_secs_f64()),
        time(performance.wall_s),
        count(performance.packet_hops as f64)
    );
    if summary.status == Status::Interrupted {
        text += "INTERRUPTED: these numbers cover only what had happened until then.\n";
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_get_the_unit_that_suits_them() {
        assert_eq!([time(3.4567e-4), time(12.0), time(0.0)], ["345.7 us", "12 s", "0 ns"]);
        assert_eq!([count(16_300_000.0), count(999.0)], ["16.3M", "999"]);
        assert_eq!([bytes(8 << 20), bytes(12)], ["8 MiB", "12 B"]);
    }
}
