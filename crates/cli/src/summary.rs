//! The result of a run, for people.
//!
//! What did not occur is not mentioned: no streams, drains, pauses or congestion notifications, one kind of traffic.

use netloom_record::{
    ChannelSummary, Performance, ReorderingCount, Skipped, Statistics, Status, SteadySkipped, Summary,
    TierSummary,
};
use netloom_study::significant;
use netloom_units::Time;

use crate::show::{self, bytes, count, percent, rate, table, time};

fn row<const N: usize>(cells: [&str; N]) -> Vec<String> {
    cells.map(str::to_owned).to_vec()
}

/// The result of a run.
pub(crate) fn show(summary: &Summary, performance: &Performance) -> String {
    // Of a job its time is what matters.
    let mut text = jobs(summary);
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
    let goodput = summary.goodput_bps.map(|bps| format!(", {} in all", rate(bps))).unwrap_or_default();
    let mut kinds = Vec::new();
    if flows.completed > 0 || flows.streams == 0 {
        kinds.push(format!("{} completed", flows.completed));
    }
    if flows.unfinished > 0 {
        kinds.push(format!("{} unfinished", flows.unfinished));
    }
    if flows.completed > 0 || flows.streams == 0 {
        kinds.push(format!("{}{goodput}", bytes(flows.completed_bytes)));
    }
    if flows.streams > 0 {
        kinds.push(format!("{} streams", flows.streams));
        kinds.extend(summary.throughput_bps.map(|bps| format!("{} delivered", rate(bps))));
    }
    text += &format!("flows      {}\n", kinds.join(", "));
    if !summary.flow_level {
        text += &packets(summary);
    }
    for (selector, decisions) in &summary.totals.decisions {
        let share = match decisions.taken {
            0 => String::new(),
            taken => {
                format!(", {} not the default path", percent(decisions.non_default as f64 / taken as f64))
            }
        };
        text += &format!("decisions  {} by {selector}{share}\n", count(decisions.taken as f64));
    }
    let drains = &summary.draining;
    if drains.drains > 0 {
        let share =
            drains.time_share.map(|share| format!(", {} of the time", percent(share))).unwrap_or_default();
        text += &format!("draining   {} drains in {} flows{share}\n", drains.drains, drains.flows);
    }
    if let Some(entries) = &summary.totals.flowcut_entries {
        text += &format!(
            "entries    at most {} flowcuts at a switch, {} on average at {} switches\n",
            entries.peak,
            count(entries.mean),
            entries.switches
        );
    }
    if let Some(conweave) = &summary.totals.conweave {
        text += &format!(
            "conweave   {} late replies, {} reroutes, {} flushes; at most {} held back at a switch\n",
            count(conweave.late_replies as f64),
            count(conweave.reroutes as f64),
            count(conweave.flushes as f64),
            bytes(conweave.held_bytes_peak)
        );
    }
    text += &reordering(&summary.totals.reordering);
    for tier in &summary.tiers {
        text += &show_tier(tier, summary.flow_level);
    }
    text += &groups(summary);
    text += &channels(summary);
    if summary.flow_level {
        text +=
            "detail     flow by flow at max-min fair rates: no queues, no losses, no congestion control\n";
    }
    if let Some(flows) = summary.background_flows {
        text += &format!("detail     a region packet by packet, {flows} flows beside it flow by flow\n");
    }
    let hops = match summary.flow_level {
        true => String::new(),
        false => format!(", {} packet-hops", count(performance.packet_hops as f64)),
    };
    let speed = performance.packet_hops_per_s.filter(|_| !summary.flow_level);
    let speed = speed.map(|speed| format!(", {}/s", count(speed))).unwrap_or_default();
    let memory =
        performance.peak_memory_bytes.map(|peak| format!(", {} of memory", bytes(peak))).unwrap_or_default();
    // Where nothing is computed last, it is the completion of the last flow.
    if let Some(makespan) =
        summary.totals.makespan.filter(|_| summary.totals.makespan > summary.flows.last_completion)
    {
        text += &format!("makespan   {}, with what is computed last\n", time(makespan.as_secs_f64()));
    }
    text += &format!(
        "run        {} simulated in {} on {}{hops}{speed}{memory}\n",
        time(summary.totals.simulated.as_secs_f64()),
        time(performance.wall_s),
        if performance.threads == 1 {
            "1 thread".to_owned()
        } else {
            format!("{} threads", performance.threads)
        }
    );
    if let Some(Skipped { jumps, time_ps, packet_hops, obstacle, components, repetitions }) =
        &performance.skipped
    {
        let what = match jumps {
            0 => "nothing".to_owned(),
            jumps => format!(
                "{} and {} packet-hops of these, in {}{}{}",
                time(Time(*time_ps).as_secs_f64()),
                count(*packet_hops as f64),
                jumped(*jumps),
                match components {
                    1 => String::new(),
                    _ => format!(" of {components} components that share no link"),
                },
                match repetitions {
                    0 => String::new(),
                    // In full: how many were not skipped is of interest, too.
                    _ => format!("; {repetitions} {} as a whole", noun("repetition", *repetitions)),
                }
            ),
        };
        let rest = if *jumps > 0 { "; nothing else" } else { "" };
        let because = obstacle.as_ref().map(|what| format!("{rest}, because of {what}")).unwrap_or_default();
        text += &format!("skipped    {what}{because}\n");
        text += &summary.steady.as_ref().map(show_steady).unwrap_or_default();
    }
    for warning in &summary.warnings {
        text += &format!("warning    {warning}\n");
    }
    if summary.status == Status::Interrupted {
        let components = performance.skipped.as_ref().map_or(1, |skipped| skipped.components);
        text += "INTERRUPTED: these numbers cover only what had happened until then";
        text += match components {
            1 => ".\n",
            _ => "; components are run one by one, and some may not have begun.\n",
        };
    }
    show::fit(&text)
}

/// A number of jumps.
fn jumped(jumps: u64) -> String {
    format!("{} {}", count(jumps as f64), noun("jump", jumps))
}

/// The noun for as many things.
fn noun(name: &str, things: u64) -> String {
    format!("{name}{}", if things == 1 { "" } else { "s" })
}

/// What was skipped because it was steady, and at which error.
fn show_steady(steady: &SteadySkipped) -> String {
    let SteadySkipped { stretches, jumps, audited, audited_flows, .. } = steady;
    let mut text = match jumps {
        0 => "steady     nothing of that".to_owned(),
        jumps => {
            format!("steady     {} of that, in {}", time(steady.time.as_secs_f64()), jumped(*jumps))
        }
    };
    if let (Some(mean), Some(p99), Some(max)) = (steady.error_mean, steady.error_p99, steady.error_max) {
        text += &format!(
            "; errors of {} flows in {audited} of {stretches} stretches: {} on average, p99 {}, at most {}",
            count(*audited_flows as f64),
            match steady.error_plus_minus {
                Some(half) => format!("{} ± {}", percent(mean), percent(half)),
                None => percent(mean),
            },
            percent(p99),
            percent(max)
        );
    }
    text + "\n"
}

/// What became of the data packets.
fn packets(summary: &Summary) -> String {
    let packets = &summary.packets;
    let notified = match packets.cnms + packets.cnps {
        0 => String::new(),
        notifications => format!(", {} congestion notifications", count(notifications as f64)),
    };
    let waited = match packets.max_resequencing {
        0 => String::new(),
        most => format!(", up to {most} waited for their order"),
    };
    let lost = match summary.totals.data.lost + summary.totals.control.lost {
        0 => String::new(),
        lost => format!(", {} lost to faults", count(lost as f64)),
    };
    format!(
        "packets    {} sent, {} out of order (largest distance {}), {} retransmitted{lost}, {} marked{notified}{waited}\n",
        count(packets.sent as f64),
        percent(packets.ooo_share),
        packets.max_ood,
        packets.retransmissions,
        packets.ecn_marks
    )
}

/// What reordering cost the hosts, if it cost anything.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a mean of bytes: from 0 on; saturates"
)]
fn reordering(cost: &ReorderingCount) -> String {
    let mut text = String::new();
    if cost.nacks + cost.duplicates + cost.refused > 0 {
        text += &format!(
            "receivers  {} NACKs, {} packets refused, {} that came twice\n",
            count(cost.nacks as f64),
            count(cost.refused as f64),
            count(cost.duplicates as f64)
        );
    }
    if cost.buffer_bytes_peak > 0 || cost.overflows > 0 {
        text += &format!(
            "reorder    at most {} held at a host, {} on average; {} overflows, {} timeouts\n",
            bytes(cost.buffer_bytes_peak),
            bytes(cost.buffer_bytes_mean as u64),
            count(cost.overflows as f64),
            count(cost.timeouts as f64)
        );
    }
    text
}

fn show_tier(tier: &TierSummary, flow_level: bool) -> String {
    let paused = match tier.pauses {
        0 => String::new(),
        pauses => {
            format!("; paused {} of the time, {} times", percent(tier.paused_share), count(pauses as f64))
        }
    };
    let trims = match tier.trims {
        0 => String::new(),
        trims => format!(", {} packets trimmed", count(trims as f64)),
    };
    let use_of = |mean, most| (percent(mean), percent(most));
    let (mean, most) = use_of(tier.mean_utilisation, tier.max_utilisation);
    let active = match use_of(tier.mean_active_utilisation, tier.max_active_utilisation) {
        (active_mean, active_most) if (&active_mean, &active_most) == (&mean, &most) => String::new(),
        (active_mean, active_most) => {
            format!(" (while something was active {active_mean} and {active_most})")
        }
    };
    let waits = match flow_level {
        true => String::new(),
        false => {
            format!("; queue at most {}; {} drops{trims}{paused}", bytes(tier.max_queue_bytes), tier.drops)
        }
    };
    format!("{:<10} {mean} mean use, {most} at most{active}{waits}\n", tier.tier)
}

/// What the jobs took.
fn jobs(summary: &Summary) -> String {
    if summary.jobs.is_empty() {
        return String::new();
    }
    let mut rows = vec![row([
        "job",
        "ranks",
        "steps",
        "job time",
        "step time",
        "computation",
        "exposed",
        "waiting",
        "busbw",
    ])];
    let of = |at: Option<Time>| at.map_or_else(|| "unfinished".to_owned(), |at| time(at.as_secs_f64()));
    for (name, job) in &summary.jobs {
        let steps = match job.completed == job.repetitions {
            true => job.repetitions.to_string(),
            false => format!("{} of {}", job.completed, job.repetitions),
        };
        let bandwidth = job.busbw_bps.map(rate).unwrap_or_default();
        let [computation, exposed, waiting] =
            [job.computation, job.exposed, job.waiting].map(|at| time(at.as_secs_f64()));
        let (job_time, step_time) = (of(job.job_time), of(job.step_time));
        rows.push(vec![
            name.clone(),
            job.ranks.to_string(),
            steps,
            job_time,
            step_time,
            computation,
            exposed,
            waiting,
            bandwidth,
        ]);
    }
    table(rows) + "\n"
}

/// Kinds of traffic and windows of time as one table; nothing if there is one kind and no window.
fn groups(summary: &Summary) -> String {
    if summary.groups.len() < 2 && summary.windows.is_empty() {
        return String::new();
    }
    let has_fct = summary.fct_ps.is_some();
    let has_cnms = summary.packets.cnms > 0;
    let mut heading = vec![String::new()];
    if has_fct {
        heading.extend(["completed", "FCT mean", "FCT p99"].map(str::to_owned));
    }
    heading.push("out of order".to_owned());
    if has_cnms {
        heading.push("notified".to_owned());
    }
    heading.push("throughput".to_owned());
    heading.extend(summary.windows.keys().map(|window| format!("in {window}")));
    let mut rows = vec![heading];
    let show_rate = |bps: Option<f64>| bps.map(rate).unwrap_or_default();
    let mut add = |name: &str, row: GroupRow<'_>| {
        let mut cells = vec![name.to_owned()];
        if has_fct {
            let fct = |of: fn(&Statistics) -> f64| {
                row.fct_ps.as_ref().map(|fct| time(of(fct) * 1e-12)).unwrap_or_default()
            };
            cells.extend([row.completed.to_string(), fct(|fct| fct.mean), fct(|fct| fct.p99)]);
        }
        cells.push(percent(row.ooo_share));
        if has_cnms {
            cells.push(count(row.cnms as f64));
        }
        cells.push(show_rate(row.throughput_bps));
        cells.extend(row.windows.into_iter().map(rate));
        rows.push(cells);
    };
    if summary.groups.len() > 1 {
        for (name, group) in &summary.groups {
            let windows = summary.windows.values();
            add(
                name,
                GroupRow {
                    completed: group.flows.completed,
                    fct_ps: &group.fct_ps,
                    ooo_share: group.ooo_share,
                    cnms: group.cnms,
                    throughput_bps: group.throughput_bps,
                    windows: windows
                        .filter_map(|window| Some(window.groups.get(name)?.throughput_bps))
                        .collect(),
                },
            );
        }
    }
    add(
        "all",
        GroupRow {
            completed: summary.flows.completed,
            fct_ps: &summary.fct_ps,
            ooo_share: summary.packets.ooo_share,
            cnms: summary.packets.cnms,
            throughput_bps: summary.throughput_bps,
            windows: summary.windows.values().map(|window| window.throughput_bps).collect(),
        },
    );
    format!("{}\n", table(rows))
}

/// One kind of traffic, or all of it.
struct GroupRow<'a> {
    completed: u64,
    fct_ps: &'a Option<Statistics>,
    ooo_share: f64,
    cnms: u64,
    throughput_bps: Option<f64>,
    /// Throughput in each window.
    windows: Vec<f64>,
}

/// Channels that were given a name; nothing if there are none.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "means of bytes: from 0 on; saturate"
)]
fn channels(summary: &Summary) -> String {
    if summary.channels.is_empty() {
        return String::new();
    }
    let has_pauses = summary.channels.values().any(|channel| channel.paused_share > 0.0);
    let has_drops = summary.channels.values().any(|channel| channel.drops > 0);
    let mut heading = row(["", "throughput", "mean queue", "largest"]);
    if has_pauses {
        heading.push("paused".to_owned());
    }
    if has_drops {
        heading.push("drops".to_owned());
    }
    for window in summary.windows.keys() {
        heading.extend([format!("in {window}"), "mean queue".to_owned()]);
    }
    let cells = |(name, channel): (&String, &ChannelSummary)| {
        let mut cells = vec![
            name.clone(),
            rate(channel.throughput_bps),
            bytes(channel.mean_queue_bytes.round() as u64),
            bytes(channel.max_queue_bytes),
        ];
        if has_pauses {
            cells.push(percent(channel.paused_share));
        }
        if has_drops {
            cells.push(channel.drops.to_string());
        }
        for window in summary.windows.keys() {
            let window = channel.windows.get(window);
            cells.push(window.map(|window| rate(window.throughput_bps)).unwrap_or_default());
            cells
                .push(window.map(|window| bytes(window.mean_queue_bytes.round() as u64)).unwrap_or_default());
        }
        cells
    };
    let rows = std::iter::once(heading).chain(summary.channels.iter().map(cells)).collect();
    format!("{}\n", table(rows))
}

#[cfg(test)]
mod tests {
    use super::*;
    use netloom_record::{
        ChannelRecord, ChannelWindowRecord, FlowRecord, NamedChannel, Records, SummaryOptions, Window,
        WindowRecord,
    };

    fn shown(records: &Records) -> String {
        let summary = Summary::new(records, &SummaryOptions::default(), Status::Complete).unwrap();
        show(&summary, &Performance::new("1", 1, 1.0, 1))
    }

    fn flow(group: u16) -> FlowRecord {
        let bytes = 125_000;
        FlowRecord { group, bytes, packets: 100, delivered_after_warm_up: bytes, ..FlowRecord::default() }
    }

    /// Two kinds of streams over 1 ms.
    fn records() -> Records {
        let mut records = Records {
            groups: ["hot", "cold"].map(str::to_owned).to_vec(),
            flows: [flow(0), flow(1), flow(1)].map(|flow| FlowRecord { stream: true, ..flow }).to_vec(),
            channels: vec![ChannelRecord { tier: "host".into(), ..ChannelRecord::default() }],
            ..Records::default()
        };
        records.totals.simulated = Time::from_ms(1);
        records
    }

    #[test]
    fn what_faults_took_is_told() {
        let mut records = records();
        assert!(!shown(&records).contains("lost"));
        records.totals.data.lost = 12;
        assert!(shown(&records).contains("0 retransmitted, 12 lost to faults, 0 marked"));
    }

    #[test]
    fn what_did_not_occur_is_not_mentioned() {
        let text = shown(&records());
        for absent in ["FCT", "paused", "notif", "windows", "waited", "drains", "completed"] {
            assert!(!text.contains(absent), "{absent}:\n{text}");
        }
        assert!(text.contains("3 streams, 3 Gbit/s delivered"), "{text}");
        let plain = Records { groups: vec!["all".to_owned()], flows: vec![flow(0)], ..records() };
        assert!(!shown(&plain).contains("all"), "{}", shown(&plain));
    }

    #[test]
    fn groups_windows_and_named_channels_are_shown() {
        let mut records = records();
        records.windows =
            vec![Window { name: "peak".to_owned(), from: Time::ZERO, until: Time::from_us(500) }];
        records.window_flows =
            vec![WindowRecord { group: 1, bytes: 125_000, ..WindowRecord::default() }].into();
        records.named_channels = vec![NamedChannel { name: "up".to_owned(), channel: 0 }];
        records.channels[0] =
            ChannelRecord { paused: Time::from_us(250), pauses: 7, ..records.channels[0].clone() };
        let queue_byte_ps = 2048 * 500_000_000;
        records.window_channels =
            vec![ChannelWindowRecord { queue_byte_ps, ..ChannelWindowRecord::default() }];
        records.flows[1] = FlowRecord { cnms: 12, max_resequencing: 9, ..records.flows[1].clone() };
        let text = shown(&records);
        let lines: Vec<&str> = text.lines().collect();
        let line = |start: &str| lines.iter().find(|line| line.starts_with(start)).copied().unwrap_or(&text);
        for (start, expected) in [
            ("packets", "12 congestion notifications, up to 9 waited for their order"),
            ("host", "paused 25 % of the time, 7 times"),
            ("│ cold", "│       12 │   2 Gbit/s │ 2 Gbit/s │"),
            ("│ all ", "│       12 │   3 Gbit/s │ 2 Gbit/s │"),
            ("│ up ", "│   25 % │ 0 bit/s │      2 KiB │"),
        ] {
            assert!(line(start).contains(expected), "{expected}:\n{text}");
        }
    }
}
