//! What to measure: for how long, in which intervals, and at which channels.

use netloom_record::{MOST_ROWS, NamedChannel, SampleRecord, Window};
use netloom_topology::Network;
use netloom_units::{Bytes, Invalid, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::channel::ChannelEnds;
use crate::observe::packet_trace::PacketTrace;

/// What to measure, and for how long.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Measure {
    /// Flows that start before this are left out of the summary's statistics, payload that arrives before out of throughput.
    pub warm_up: Time,
    /// The run ends at this instant even if flows are unfinished; absent: it ends when all work is done.
    pub until: Option<Time>,
    /// Write the queue, the bytes sent and the time paused of every channel at multiples of this interval; absent: no series.
    pub sample: Option<Time>,
    /// Sample only the channels of this link tier; absent: all channels.
    pub sample_tier: Option<String>,
    /// Write the bytes delivered and the packets resequenced of every flow at multiples of this interval; absent: no series.
    pub sample_flows: Option<Time>,
    /// Write what every flow's sender knew and was allowed (window, rate, RTT, marks, losses) at multiples of this interval, where it learnt something in it:
    /// `sender_series.parquet`; absent: no series.
    pub sample_senders: Option<Time>,
    /// Measure latency (from leaving the sender's NIC to the arrival at the receiver) and hops of every data packet: by kind of traffic in the
    /// summary, by flow in `packets.parquet`, as a histogram in `latency.parquet`.
    pub packets: bool,
    /// Write the path of every packet of some flows, and all packets on some channels; absent: no trace.
    pub trace: Option<PacketTrace>,
    /// Count the gaps between a flow's departures from its NIC, by length and by base round-trip times: `gaps.parquet`.
    pub gaps: bool,
    /// Count the same at a flow's first switch, by arrivals: `switch_gaps.parquet`; and the packets and flowlets of every flow at every switch that
    /// they come to: `flowlets.parquet`, which is written in any case if switches choose by flowlets. A flowlet begins after a gap as long as the
    /// flowlet threshold, of routing or HF²T.
    pub switch_gaps: bool,
    /// Write what every rank of a program does over time: computing, sending, or waiting for a message: `activities.parquet`. Ranks of `astra-sim`
    /// and of patterns without a program
    /// have none.
    pub activities: bool,
    /// Write what became of every operation of programs, and which event let it start: `operations.parquet`, from which `netloom critical-path` tells where the time of a job
    /// goes. Ranks of `astra-sim` and of patterns without a program have none.
    pub operations: bool,
    /// Upper bounds of the flow-size bins of the summary, ascending; absent: bins at powers of ten.
    pub size_bins: Option<Vec<Bytes>>,
    /// Intervals that the summary reports on their own: tables with `name`, `from` and `until`. They may overlap.
    pub windows: Vec<Window>,
    /// Channels that the summary reports by name: tables with `name`, and the nodes `from` and `to` as in `links.parquet`
    /// (`h0` is a host, `s0` a switch); `parallel` numbers parallel links, from 0. Only these are sampled, if there are any.
    pub channels: Vec<ChannelName>,
}

/// A name for the channel from one node to a neighbour.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ChannelName {
    /// Its name in the summary.
    pub name: String,
    /// Sending node.
    pub from: String,
    /// Receiving node.
    pub to: String,
    /// Which of the parallel links between the two, from 0 in the order of the sending node's ports.
    #[serde(default)]
    pub parallel: u16,
}

/// Windows beyond this number are surely a mistake.
const MOST_WINDOWS: usize = 1000;

impl Measure {
    /// Checks that it makes sense on this network, and finds the channels that have names.
    pub(crate) fn check(&self, network: &Network) -> Result<Vec<NamedChannel>, Invalid> {
        for (field, interval) in [
            ("sample", self.sample),
            ("sample_flows", self.sample_flows),
            ("sample_senders", self.sample_senders),
        ] {
            if let Some(interval) = interval {
                Invalid::unless(interval > Time::ZERO, field, "more than 0", interval)?;
            }
        }
        if let Some(until) = self.until.filter(|&until| until <= self.warm_up) {
            return Err(Invalid::new("until", format!("a time after warm_up = {}", self.warm_up), until));
        }
        if let Some(trace) = &self.trace {
            trace.check(network)?;
        }
        self.check_tier(network)?;
        self.check_length(network)?;
        self.check_windows()?;
        check_names("channels", self.channels.iter().map(|channel| channel.name.as_str()))?;
        let find = |(index, channel): (usize, &ChannelName)| channel.find(index, network);
        self.channels.iter().enumerate().map(find).collect()
    }

    fn check_tier(&self, network: &Network) -> Result<(), Invalid> {
        match &self.sample_tier {
            Some(tier) if !network.tiers().contains(tier) => {
                let expected = format!("one of {}", network.tiers().join(", "));
                Err(Invalid::new("sample_tier", expected, format!("\"{tier}\"")))
            }
            Some(tier) if self.sample.is_none() => {
                let expected = "none without `sample`, whose channels it chooses";
                Err(Invalid::new("sample_tier", expected, format!("\"{tier}\"")))
            }
            Some(tier) if !self.channels.is_empty() => {
                let expected = "none beside `channels`, which are the ones sampled";
                Err(Invalid::new("sample_tier", expected, format!("\"{tier}\"")))
            }
            _ => Ok(()),
        }
    }

    /// Refuses series that would be too long if all channels were busy until the end. Where that is not known, a run lasts at
    /// least as long as a packet is on a link.
    fn check_length(&self, network: &Network) -> Result<(), Invalid> {
        let on_a_link = network.links().iter().map(|link| link.latency).min();
        let Some(until) = self.until.or(on_a_link) else { return Ok(()) };
        let channels = match &self.sample_tier {
            _ if !self.channels.is_empty() => self.channels.len(),
            Some(tier) => {
                let tiers = network.links().iter().map(|link| &network.tiers()[usize::from(link.tier)]);
                2 * tiers.filter(|of| *of == tier).count()
            }
            None => 2 * network.links().len(),
        };
        // A flow at a time is the least that a series of flows can hold.
        for (field, interval, each) in [
            ("sample", self.sample, channels),
            ("sample_flows", self.sample_flows, 1),
            ("sample_senders", self.sample_senders, 1),
        ] {
            let Some(interval) = interval else { continue };
            let rows = (until.0 / interval.0).saturating_mul(each as u64);
            if rows > MOST_ROWS {
                let gib = rows as f64 * size_of::<SampleRecord>() as f64 / (1u64 << 30) as f64;
                let expected = format!("at most {MOST_ROWS} rows (sample more rarely or fewer channels)");
                let found = format!("{interval}, which makes up to {rows} rows until {until}, {gib:.0} GiB");
                return Err(Invalid { field: field.into(), expected, found });
            }
        }
        Ok(())
    }

    fn check_windows(&self) -> Result<(), Invalid> {
        if self.windows.len() > MOST_WINDOWS {
            let expected = format!("at most {MOST_WINDOWS}");
            return Err(Invalid::new("windows", expected, self.windows.len()));
        }
        check_names("windows", self.windows.iter().map(|window| window.name.as_str()))?;
        for (index, window) in self.windows.iter().enumerate() {
            let field = format!("windows.{index}.until");
            if window.until <= window.from {
                let expected = format!("a time after from = {}", window.from);
                return Err(Invalid::new(field, expected, window.until));
            }
            if let Some(end) = self.until.filter(|&end| end < window.until) {
                let expected = format!("at most the run's end, until = {end}");
                return Err(Invalid::new(field, expected, window.until));
            }
        }
        Ok(())
    }
}

impl ChannelName {
    fn find(&self, index: usize, network: &Network) -> Result<NamedChannel, Invalid> {
        let ChannelName { name, from, to, parallel } = self.clone();
        let ends = ChannelEnds { from, to, parallel };
        let channel = ends.find(network).map_err(|error| error.within(&format!("channels.{index}")))?;
        Ok(NamedChannel { name, channel })
    }
}

/// Checks that names can stand in claims and differ there, where `-` is written `_`.
fn check_names<'a>(list: &str, names: impl Iterator<Item = &'a str>) -> Result<(), Invalid> {
    let mut seen: Vec<String> = Vec::new();
    for (index, name) in names.enumerate() {
        let refuse =
            |expected| Err(Invalid::new(format!("{list}.{index}.name"), expected, format!("\"{name}\"")));
        let is_plain = name.starts_with(|c: char| c.is_ascii_lowercase())
            && name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-' || c == '_');
        if !is_plain {
            return refuse("lower-case letters, digits, - and _, beginning with a letter");
        }
        let in_claims = name.replace('-', "_");
        if in_claims.ends_with("_ps") {
            return refuse("another end than _ps, the unit of times");
        }
        if seen.contains(&in_claims) {
            return refuse("names that differ, also with _ for -");
        }
        seen.push(in_claims);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use netloom_topology::NetworkBuilder;
    use netloom_units::Rate;

    /// Two hosts at two switches with two cables between them.
    fn network() -> Network {
        let mut builder = NetworkBuilder::new("pair");
        let hosts = builder.add_hosts(2);
        let tier = builder.tier("host");
        let switches: Vec<_> = (0..2).map(|_| builder.add_switch(0, 0)).collect();
        let mut link = |a, b| builder.link(a, b, Rate::from_gbps(10), Time::from_us(1), tier);
        for (host, &switch) in hosts.zip(&switches) {
            link(host, switch);
        }
        link(switches[0], switches[1]);
        link(switches[0], switches[1]);
        builder.build().unwrap()
    }

    fn window(name: &str, from: u64, until: u64) -> Window {
        Window { name: name.to_owned(), from: Time::from_us(from), until: Time::from_us(until) }
    }

    fn channel(from: &str, to: &str, parallel: u16) -> ChannelName {
        ChannelName { name: "c".to_owned(), from: from.to_owned(), to: to.to_owned(), parallel }
    }

    fn refusal(measure: Measure) -> String {
        measure.check(&network()).unwrap_err().to_string()
    }

    #[test]
    fn channels_are_found_by_their_ends_and_parallel_ones_by_their_number() {
        let find = |from, to, parallel| {
            let measure = Measure { channels: vec![channel(from, to, parallel)], ..Measure::default() };
            measure.check(&network()).unwrap()[0].channel
        };
        // Links are h0-s0, h1-s1 and twice s0-s1; a link's channels are numbered there, then back.
        assert_eq!([find("h0", "s0", 0), find("s1", "h1", 0)], [0, 3]);
        assert_eq!([find("s0", "s1", 0), find("s0", "s1", 1), find("s1", "s0", 1)], [4, 6, 7]);
    }

    #[test]
    fn a_channel_that_does_not_exist_is_refused_with_what_there_is() {
        let cases = [
            (
                channel("h2", "s0", 0),
                "channels.0.from: expected a node, h0 to h1 or s0 to s1, found \"h2\"; did you mean `h1`?",
            ),
            (
                channel("h0", "Switch 1", 0),
                "channels.0.to: expected a node, h0 to h1 or s0 to s1, found \"Switch 1\"; did you mean `s1`?",
            ),
            (channel("h0", "", 0), "channels.0.to: expected a node, h0 to h1 or s0 to s1, found \"\""),
            (
                channel("h00", "s0", 0),
                "channels.0.from: expected a node, h0 to h1 or s0 to s1, found \"h00\"; did you mean `h0`?",
            ),
            (channel("s0", "h1", 0), "channels.0.to: expected a neighbour of s0, h0, s1, found \"h1\""),
            (channel("s0", "s1", 2), "channels.0.parallel: expected less than the 2 parallel links, found 2"),
        ];
        for (channel, expected) in cases {
            assert_eq!(refusal(Measure { channels: vec![channel], ..Measure::default() }), expected);
        }
    }

    #[test]
    fn windows_have_a_length_and_lie_in_the_run() {
        let windows =
            |windows: Vec<Window>| Measure { windows, until: Some(Time::from_us(10)), ..Measure::default() };
        assert!(windows(vec![window("a", 0, 10), window("b-1", 5, 6)]).check(&network()).is_ok());
        let empty = refusal(windows(vec![window("a", 5, 5)]));
        assert_eq!(empty, "windows.0.until: expected a time after from = 5us, found 5us");
        let late = refusal(windows(vec![window("a", 0, 1), window("b", 5, 11)]));
        assert_eq!(late, "windows.1.until: expected at most the run's end, until = 10us, found 11us");
        let many = (0..=MOST_WINDOWS).map(|i| window(&format!("w{i}"), 0, 1)).collect();
        assert!(refusal(windows(many)).contains("windows: expected at most 1000, found 1001"));
    }

    #[test]
    fn names_can_stand_in_claims_and_differ_there() {
        let named = |names: &[&str]| {
            let windows = names.iter().map(|name| window(name, 0, 1)).collect();
            refusal(Measure { windows, ..Measure::default() })
        };
        for name in ["", "1st", "Hot", "a b", "a.b", "é", "-a"] {
            assert!(named(&[name]).contains("windows.0.name: expected lower-case letters"), "{name}");
        }
        assert!(named(&["two-ps"]).contains("another end than _ps, the unit of times"));
        assert!(
            named(&["a-b", "a_b"])
                .contains("windows.1.name: expected names that differ, also with _ for -, found \"a_b\"")
        );
    }

    #[test]
    fn series_that_nobody_could_keep_are_refused_with_their_size() {
        let measure = |sample, tier: Option<&str>, until| Measure {
            sample: Some(sample),
            sample_tier: tier.map(str::to_owned),
            until: Some(until),
            ..Measure::default()
        };
        let all = refusal(measure(Time(1), None, Time::from_ms(2)));
        assert_eq!(
            all,
            "sample: expected at most 1000000000 rows (sample more rarely or fewer channels), found 1ps, which makes up to 16000000000 rows \
             until 2ms, 596 GiB"
        );
        let tier = refusal(measure(Time(1), Some("host"), Time::from_ms(2)));
        assert!(
            tier.contains("makes up to 16000000000 rows"),
            "all links of this network are host links: {tier}"
        );
        assert!(measure(Time(16), None, Time::from_ms(2)).check(&network()).is_ok());
        let flows =
            Measure { sample_flows: Some(Time(1)), until: Some(Time::from_ms(2)), ..Measure::default() };
        assert!(refusal(flows).contains("found 1ps, which makes up to 2000000000 rows until 2ms"));
    }

    #[test]
    fn series_have_intervals_and_one_choice_of_channels() {
        let zero = Some(Time::ZERO);
        assert!(
            refusal(Measure { sample: zero, ..Measure::default() }).contains("sample: expected more than 0")
        );
        assert!(
            refusal(Measure { sample_flows: zero, ..Measure::default() })
                .contains("sample_flows: expected more")
        );
        let tier = Measure {
            sample: Some(Time(1)),
            sample_tier: Some("host".to_owned()),
            channels: vec![channel("h0", "s0", 0)],
            ..Measure::default()
        };
        assert!(refusal(tier).contains("sample_tier: expected none beside `channels`"));
    }
}
