//! Links that are slow, lossy or gone, for a while or for good.

use netloom_engine::END_OF_TIME;
use netloom_fabric::{ChannelFaults, LossInterval, apart};
use netloom_routing::{RouteTable, Routing};
use netloom_topology::{ChannelId, HostId, LinkId, Network, NodeId, PortId};
use netloom_transport::Transport;
use netloom_units::{Invalid, Rate, Time, kinds, narrow, random};
use netloom_workload::Rails;
use rustc_hash::{FxHashMap, FxHashSet};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::channel::ChannelEnds;
use crate::epochs::Withdrawal;

kinds! {
    /// Something wrong with some links.
    pub enum Fault: "fault" {
        "degrade" => Degrade(Degrade),
        "cut" => Cut(Cut),
        "loss" => Loss(Loss),
    }
}

impl Fault {
    /// Whether packets are lost by it: a cut of the whole run has none under way.
    pub fn loses_packets(&self) -> bool {
        match self {
            Fault::Degrade(_) => false,
            Fault::Cut(cut) => cut.from > Time::ZERO || cut.until.is_some(),
            Fault::Loss(_) => true,
        }
    }
}

/// Links that run at a fraction of their rate for a while, in both directions, or single channels of them. Routing does not react to it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Degrade {
    /// Link tier to choose from; absent: all links between switches.
    pub tier: Option<String>,
    /// Number of links, chosen at random. Give this, `link_fraction` or `channels`.
    pub links: Option<u32>,
    /// Fraction of the links, 0 to 1, rounded up to whole links.
    pub link_fraction: Option<f64>,
    /// These channels, one direction of a link each: tables with the nodes `from` and `to` as in `links.parquet`; `parallel` distinguishes parallel links, from 0.
    pub channels: Vec<ChannelEnds>,
    /// Factor by which the configured rate is multiplied while degraded, more than 0 and at most 1. The Flowcut evaluation's failed links keep a tenth.
    pub rate_factor: f64,
    /// Start.
    pub from: Time,
    /// End; absent: the end of the run.
    pub until: Option<Time>,
}

impl Default for Degrade {
    fn default() -> Self {
        Degrade {
            tier: None,
            links: None,
            link_fraction: None,
            channels: Vec::new(),
            rate_factor: 0.1,
            from: Time::ZERO,
            until: None,
        }
    }
}

/// Links or switches that fail. Without `from` and `until` they do not exist during the whole run, and paths are computed without them.
/// Otherwise they fail at one moment and may be repaired at another: what is sent to them, waits for them or is on their wires at the cut
/// is lost, unless sources are notified (`unreachable`). Routing learns of both after `reroute_after`, or never. Under flow control pauses
/// and credits of the link are reset at the cut and set up again at the repair.
///
/// Packets lost to faults count as `lost`, not as drops at full queues; a transport with ACKs is needed to send them again. Cuts of one
/// link that overlap are one cut. Flows of a host whose link is cut stall, and continue by retransmission after the repair. With
/// `reroute_after` all switches and hosts change to the new routes in the same instant (real routing protocols converge switch by switch);
/// a switch whose ports to a destination have changed forgets what its selector has learnt and the runs of its flows, and a packet for
/// which no route is left is dropped at the switch and counts as lost.
///
/// Refused: a cut for the whole run that leaves a host unreachable (leave the host out of the workload instead); `reroute_after` under
/// flowcuts at switches, and under layers, k shortest paths and UGAL if the cut leaves a switch with no path to others; a cut without end
/// whose flows can never finish, unless `measure.until` ends the run; `reliability = "none"`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Cut {
    /// Link tier to choose from; absent: all links between switches.
    pub tier: Option<String>,
    /// Number of links, chosen at random. Give this, `link_fraction`, `channels` or `switches`.
    pub links: Option<u32>,
    /// Fraction of the links, 0 to 1, rounded up to whole links.
    pub link_fraction: Option<f64>,
    /// The links to which these channels belong, named as in a `degrade`; both directions are cut.
    pub channels: Vec<ChannelEnds>,
    /// All links of these switches, by their names (`s0`).
    pub switches: Vec<String>,
    /// Start.
    pub from: Time,
    /// End; absent: the end of the run.
    pub until: Option<Time>,
    /// Time from the cut, and from the repair, until all switches and hosts use new routes, which a packet in flight follows from its next
    /// switch on. Absent: never. The routes of a lossless fabric are searched for deadlocks, those before and after each such moment for
    /// themselves.
    pub reroute_after: Option<Time>,
    /// What happens to packets that wait for, or arrive at, a link that is cut during the run.
    ///
    /// `notify-source` is accepted only where hosts can leave a path in mid-flow: `routing.placement = "nic"`, a granularity other than
    /// `flowcut` and (without `subflows` that each have a path) `flow`, and a transport that does not choose paths itself; and only for
    /// links between switches. Windows and rates do not change, because it is no sign of congestion. With `acks = "minimal"` answers have
    /// no other path and are lost.
    pub unreachable: Unreachable,
}

/// What a switch does with a packet whose link is cut.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Unreachable {
    /// They are lost, and their sources are not notified.
    #[default]
    Silence,
    /// The header of a data packet, as large as an ACK, goes back to its source, which sends it again at once, and takes another path if
    /// the packet was on the present one (FatPaths, SC 2020, section V: "an ICMP error arrives"). An ACK, NACK, PULL or CNP goes back to
    /// the receiver that sent it, which sends it again on a newly drawn path. So do those that wait for the link at the moment of the cut.
    /// What is on the link then is lost silently, and so are signals on their way back.
    NotifySource,
}

/// Links that lose packets at random for a while, in both directions, or single channels of them. Neither routing nor hosts are notified.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Loss {
    /// Link tier to choose from; absent: all links between switches.
    pub tier: Option<String>,
    /// Number of links, chosen at random. Give this, `link_fraction` or `channels`.
    pub links: Option<u32>,
    /// Fraction of the links, 0 to 1, rounded up to whole links.
    pub link_fraction: Option<f64>,
    /// These channels, one direction of a link each, named as in a `degrade`.
    pub channels: Vec<ChannelEnds>,
    /// Probability that a packet is lost on such a channel, data and control alike, independently for each packet. PAUSE frames and credits are not lost, and
    /// the room of a packet that a link under credits has lost is given back when it would have arrived.
    pub probability: f64,
    /// Start.
    pub from: Time,
    /// End; absent: the end of the run.
    pub until: Option<Time>,
}

/// The faults of a network, by channel.
#[derive(Clone, Debug)]
pub(crate) struct Faults {
    /// Per link, whether it does not exist, as routing knows.
    pub(crate) cut: Vec<bool>,
    /// Per channel that has some, the intervals of reduced rate: from, until, fraction.
    intervals: ByChannel<(Time, Time, f64)>,
    /// Per channel, when it is cut without routing knowing: from, until.
    cuts: ByChannel<(Time, Time)>,
    losses: ByChannel<LossInterval>,
    /// Per channel, in which of those cuts the switch before it notifies sources of packets that come: from, until.
    signals: ByChannel<(Time, Time)>,
    /// The first fault with such a cut.
    signalling: Option<usize>,
    /// Whether links of the network lose packets by themselves.
    has_error_rates: bool,
    /// Whether some fault loses packets.
    is_losing: bool,
    /// The first cut of the run's middle that nobody repairs and that routing does not get around.
    endless: Option<(usize, Endless)>,
    /// Hosts whose link is cut for good in the run's middle.
    dead: FxHashSet<HostId>,
    /// The first one that routing may get around.
    rerouted: Option<usize>,
    /// The intervals in which routes do without links.
    pub(crate) withdrawals: Vec<Withdrawal>,
    /// Per channel of which something else takes a part, the share of its rate that is left to packets from each instant on.
    shares: ByChannel<(Time, f64)>,
}

/// Why flows could never finish after a cut without repair.
#[derive(Clone, Copy, Debug)]
enum Endless {
    /// Routes between switches are not told.
    NotTold,
    /// A host's only way is its link, or its NIC does not leave dead ports.
    Host,
    /// NICs leave dead ports, and none that is alive is left between some of them.
    Ports,
}

impl Endless {
    /// What a user may write instead.
    fn expected(self) -> String {
        let instead = match self {
            Endless::NotTold => "`reroute_after`, from which on routes between switches get around the links",
            Endless::Host => {
                "no host's link among those that are cut, as no route gets around that, only another port of its NIC does, with `servers.bond`"
            }
            Endless::Ports => {
                "for any two NICs ports that stay alive and reach each other, as with `servers.bond` no other gets around a dead port"
            }
        };
        format!(
            "the moment of the repair, as flows that need the links would never end; or {instead}; or a run with an end (`until` in [measure])"
        )
    }
}

/// What there is for few channels.
type ByChannel<T> = FxHashMap<ChannelId, Vec<T>>;

fn of<T>(intervals: &ByChannel<T>, channel: ChannelId) -> &[T] {
    intervals.get(&channel).map_or(&[], Vec::as_slice)
}

impl Faults {
    /// Chooses the links of every fault.
    ///
    /// # Errors
    /// The field of the list of faults that should change.
    pub(crate) fn build(
        faults: &[Fault],
        network: &Network,
        rails: Option<&Rails>,
        seed: u64,
    ) -> Result<Self, Invalid> {
        let links = network.links().len();
        let mut built = Faults {
            cut: vec![false; links],
            intervals: ByChannel::default(),
            cuts: ByChannel::default(),
            losses: ByChannel::default(),
            signals: ByChannel::default(),
            signalling: None,
            has_error_rates: !network.error_rates().is_empty(),
            is_losing: false,
            endless: None,
            dead: FxHashSet::default(),
            rerouted: None,
            withdrawals: Vec::new(),
            shares: ByChannel::default(),
        };
        for (index, fault) in faults.iter().enumerate() {
            let result = match fault {
                Fault::Cut(cut) => built.cut(cut, index, network, rails, seed),
                Fault::Degrade(degrade) => built.degrade(degrade, index, network, seed),
                Fault::Loss(loss) => built.lose(loss, index, network, seed),
            };
            result.map_err(|error| error.within(&index.to_string()))?;
        }
        for &(link, rate) in network.error_rates() {
            for channel in [2 * link, 2 * link + 1] {
                built.losses.entry(channel).or_default().push(loss_interval(Time::ZERO, None, rate));
            }
        }
        Ok(built)
    }

    fn cut(
        &mut self,
        cut: &Cut,
        index: usize,
        network: &Network,
        rails: Option<&Rails>,
        seed: u64,
    ) -> Result<(), Invalid> {
        check_interval(cut.from, cut.until)?;
        let choice = Choice {
            tier: cut.tier.as_deref(),
            links: cut.links,
            link_fraction: cut.link_fraction,
            channels: &cut.channels,
            switches: Some(&cut.switches),
        };
        let channels = choice.channels(network, seed, index, true)?;
        if cut.from == Time::ZERO && cut.until.is_none() {
            if let Some(after) = cut.reroute_after {
                let expected =
                    "none where a cut lasts for the whole run, of which routing knows; or a `from` above 0";
                return Err(Invalid::new("reroute_after", expected, after));
            }
            if cut.unreachable == Unreachable::NotifySource {
                let expected = "\"silence\" where a cut lasts for the whole run, of which routing knows; or a `from` above 0";
                return Err(Invalid::new("unreachable", expected, "\"notify-source\""));
            }
            for channel in channels {
                let link = network.links()[channel as usize / 2];
                if let Some(&host) = [link.a, link.b].iter().find(|&&node| network.is_host(node)) {
                    let expected = "links between switches, as a host without its link cannot take part in a run (leave it out of the workload, \
                                    or give `from` and `until`)";
                    let found = format!("the link of {}", network.node_name(host));
                    return Err(Invalid::new(choice.field(), expected, found));
                }
                self.cut[channel as usize / 2] = true;
            }
            return Ok(());
        }
        let until = cut.until.unwrap_or(Time::MAX);
        let links: Vec<LinkId> = channels.iter().map(|&channel| channel / 2).collect();
        let is_told = cut.unreachable == Unreachable::NotifySource;
        for channel in channels {
            self.cuts.entry(channel).or_default().push((cut.from, until));
            if is_told {
                self.signals.entry(channel).or_default().push((cut.from, until));
            }
        }
        self.signalling = self.signalling.or(is_told.then_some(index));
        self.is_losing = true;
        // No route gets around a host's own link; its NIC may, if it has other ports.
        let ends = |link: LinkId| [network.links()[link as usize].a, network.links()[link as usize].b];
        let host = |link: LinkId| ends(link).into_iter().find(|&node| network.is_host(node));
        let takes_hosts = links.iter().any(|&link| host(link).is_some());
        if cut.until.is_none() {
            self.dead.extend(links.iter().filter_map(|&link| host(link)));
        }
        let bonded = rails.filter(|rails| rails.bond().is_some());
        let is_dead = |port| self.dead.contains(&port);
        let needs_hosts = takes_hosts && !bonded.is_some_and(|rails| rails.reach_each_other(is_dead));
        let takes_others = links.iter().any(|&link| host(link).is_none());
        if takes_hosts && is_told {
            let expected = "\"silence\" where a host's own link is cut, as no path gets around that";
            return Err(Invalid::new("unreachable", expected, "\"notify-source\""));
        }
        let is_not_told = takes_others && cut.reroute_after.is_none();
        if cut.until.is_none() && (needs_hosts || is_not_told) {
            let why = match (needs_hosts, bonded) {
                (false, _) => Endless::NotTold,
                (true, None) => Endless::Host,
                (true, Some(_)) => Endless::Ports,
            };
            self.endless = self.endless.or(Some((index, why)));
        } else if cut.until.is_none() && !takes_hosts {
            self.rerouted = self.rerouted.or(Some(index));
        }
        if let Some(after) = cut.reroute_after {
            let (from, until) = (cut.from.saturating_add(after), until.saturating_add(after));
            self.withdrawals.push(Withdrawal { fault: index, links, from, until });
        }
        Ok(())
    }

    fn degrade(
        &mut self,
        degrade: &Degrade,
        index: usize,
        network: &Network,
        seed: u64,
    ) -> Result<(), Invalid> {
        let is_factor = degrade.rate_factor > 0.0 && degrade.rate_factor <= 1.0;
        let expected = "a number above 0 and at most 1 (to remove links use kind \"cut\")";
        Invalid::unless(is_factor, "rate_factor", expected, degrade.rate_factor)?;
        check_interval(degrade.from, degrade.until)?;
        let choice = Choice {
            tier: degrade.tier.as_deref(),
            links: degrade.links,
            link_fraction: degrade.link_fraction,
            channels: &degrade.channels,
            switches: None,
        };
        let until = degrade.until.unwrap_or(Time::MAX);
        for channel in choice.channels(network, seed, index, false)? {
            self.intervals.entry(channel).or_default().push((degrade.from, until, degrade.rate_factor));
        }
        Ok(())
    }

    fn lose(&mut self, loss: &Loss, index: usize, network: &Network, seed: u64) -> Result<(), Invalid> {
        let is_probability = loss.probability > 0.0 && loss.probability < 1.0;
        let expected = "a number above 0 and below 1 (to lose everything use kind \"cut\")";
        Invalid::unless(is_probability, "probability", expected, loss.probability)?;
        check_interval(loss.from, loss.until)?;
        let choice = Choice {
            tier: loss.tier.as_deref(),
            links: loss.links,
            link_fraction: loss.link_fraction,
            channels: &loss.channels,
            switches: None,
        };
        let interval = loss_interval(loss.from, loss.until, loss.probability);
        for channel in choice.channels(network, seed, index, false)? {
            self.losses.entry(channel).or_default().push(interval);
        }
        self.is_losing = true;
        Ok(())
    }

    /// Whether packets are lost because of a fault, or of a link's error rate.
    pub(crate) fn lose_packets(&self) -> bool {
        self.is_losing || self.has_error_rates
    }

    /// Refuses what the rest of the run cannot bear: a cut for good in a run without an end, in which flows that no link can serve would be repeated
    /// for ever.
    pub(crate) fn check(&self, until: Option<Time>) -> Result<(), Invalid> {
        if let Some((index, why)) = self.endless.filter(|_| until.is_none()) {
            return Err(Invalid::new("until", why.expected(), "none").within(&index.to_string()));
        }
        Ok(())
    }

    /// Refuses a cut for good that leaves hosts out of reach of each other, in a run without an end. `last`: the routes after the last
    /// change.
    pub(crate) fn check_last(&self, last: &RouteTable, until: Option<Time>) -> Result<(), Invalid> {
        match (self.rerouted.filter(|_| until.is_none()), last.unreachable()) {
            (Some(index), Some(unreachable)) => {
                let expected = "the moment of the repair, as some flows would never end; or a run with an end (`until` in [measure])";
                let found = format!("none, and {unreachable}");
                Err(Invalid { field: format!("{index}.until").into(), expected: expected.to_owned(), found })
            }
            _ => Ok(()),
        }
    }

    /// Refuses new routes where switches hold on to the path of what is in flight, and signals to hosts that cannot leave a path.
    pub(crate) fn check_scheme(&self, routing: &Routing, transport: &Transport) -> Result<(), Invalid> {
        let leaves_paths =
            routing.leaves_dead_paths(transport.options.subflows > 1) && !transport.chooses_paths();
        if let Some(index) = self.signalling.filter(|_| !leaves_paths) {
            let expected = "\"silence\", or routing by hosts that can leave a path in mid-flow: routing.placement = \"nic\", a granularity other than \
                            \"flow\" (which several subflows may have) and \"flowcut\", and a transport that leaves the choice of paths to routing";
            return Err(Invalid::new("unreachable", expected, "\"notify-source\"").within(&index.to_string()));
        }
        match (self.withdrawals.first(), routing.counted_flowcuts()) {
            (Some(&Withdrawal { fault: index, .. }), Some(_)) => {
                let expected = "none with flowcuts that switches count, which keep their path while anything is in flight; or routing.placement = \
                                \"nic\"";
                Err(Invalid::new("reroute_after", expected, "one").within(&index.to_string()))
            }
            _ => Ok(()),
        }
    }

    /// What the port that feeds a channel must know of its faults.
    pub(crate) fn of_channel(&self, channel: ChannelId, seed: u64) -> Option<Box<ChannelFaults>> {
        let (cuts, losses) = (of(&self.cuts, channel), of(&self.losses, channel));
        if cuts.is_empty() && losses.is_empty() {
            return None;
        }
        let random = random::Node::Losses.stream(seed, u64::from(channel));
        ChannelFaults::new(cuts.to_vec(), losses.to_vec(), random).map(Box::new)
    }

    /// The cuts of a node's links in the middle of the run, those that overlap as one: port, from, until.
    pub(crate) fn cuts_at(
        &self,
        network: &Network,
        node: NodeId,
    ) -> impl Iterator<Item = (PortId, Time, Time)> {
        let ports = (0..).zip(if self.cuts.is_empty() { &[] } else { network.ports(node) });
        ports.flat_map(|(port, &channel)| {
            let cuts = apart(of(&self.cuts, channel).to_vec());
            cuts.into_iter().map(move |(from, until)| (port, from, until))
        })
    }

    /// Whether a channel is cut at some instant from `from` on.
    pub(crate) fn is_cut_from(&self, channel: ChannelId, from: Time) -> bool {
        of(&self.cuts, channel).iter().any(|&(begin, _)| begin >= from)
    }

    /// From when on nothing about the network changes any more, as far as that is before the end of time.
    pub(crate) fn last_change(&self) -> Time {
        let cuts = self.cuts.values().flatten().flat_map(|&(from, until)| [from, until]);
        let routes = self.withdrawals.iter().flat_map(|withdrawal| [withdrawal.from, withdrawal.until]);
        cuts.chain(routes).filter(|&instant| instant < END_OF_TIME).max().unwrap_or(Time::ZERO)
    }

    /// The ports of a node of whose cuts it notifies sources, and when: port, from, until.
    pub(crate) fn signals(&self, network: &Network, node: NodeId) -> Box<[(PortId, Time, Time)]> {
        if self.signals.is_empty() {
            return Box::default();
        }
        let ports = (0..).zip(network.ports(node));
        let intervals = |(port, &channel)| {
            of(&self.signals, channel).iter().map(move |&(from, until)| (port, from, until))
        };
        ports.flat_map(intervals).collect()
    }

    /// Every channel whose rate is not always that of its link, with its rate at time zero and its later changes; 0 while it is cut. In order of
    /// channels. `rate`: that of a channel's link.
    pub(crate) fn rates(&self, rate: impl Fn(ChannelId) -> Rate) -> Vec<(ChannelId, Vec<(Time, Rate)>)> {
        let mut channels: Vec<ChannelId> = self.intervals.keys().chain(self.cuts.keys()).copied().collect();
        channels.sort_unstable();
        channels.dedup();
        let changes = |channel| {
            let (first, later) = self.whole_schedule(channel, rate(channel));
            let cuts = apart(of(&self.cuts, channel).to_vec());
            let mut instants = vec![Time::ZERO];
            instants.extend(later.iter().map(|&(at, _)| at));
            instants
                .extend(cuts.iter().flat_map(|&(from, until)| [from, until]).filter(|&at| at < END_OF_TIME));
            instants.sort_unstable();
            instants.dedup();
            let rate_at = |at: Time| {
                let is_cut = cuts.iter().any(|&(from, until)| from <= at && at < until);
                let changed =
                    later.iter().rev().find(|&&(from, _)| from <= at).map_or(first, |&(_, rate)| rate);
                (at, if is_cut { Rate(0) } else { changed })
            };
            (channel, instants.into_iter().map(rate_at).collect())
        };
        channels.into_iter().map(changes).collect()
    }

    /// Leaves a share of channels' rates to packets from each instant on, as the rest is taken.
    pub(crate) fn share(&mut self, shares: Vec<(ChannelId, Vec<(Time, f64)>)>) {
        self.shares = shares.into_iter().collect();
    }

    /// The rate of a channel for packets at time zero, and its later changes.
    pub(crate) fn schedule(&self, channel: ChannelId, rate: Rate) -> (Rate, Vec<(Time, Rate)>) {
        let (first, later) = self.whole_schedule(channel, rate);
        let shares = of(&self.shares, channel);
        if shares.is_empty() {
            return (first, later);
        }
        let mut instants: Vec<Time> = shares.iter().map(|&(from, _)| from).collect();
        instants.extend(later.iter().map(|&(from, _)| from));
        instants.sort_unstable();
        instants.dedup();
        let (mut whole, mut share) = (first, 1.0);
        let (mut later, mut shares) = (later.into_iter().peekable(), shares.iter().peekable());
        let mut at = |instant: Time| {
            whole = later.next_if(|&(from, _)| from <= instant).map_or(whole, |(_, rate)| rate);
            share = shares.next_if(|&&(from, _)| from <= instant).map_or(share, |&(_, share)| share);
            whole.scale(share).max(Rate(1))
        };
        let first = at(Time::ZERO);
        (first, instants.into_iter().filter(|&from| from > Time::ZERO).map(|from| (from, at(from))).collect())
    }

    /// The rate at time zero and its later changes. Overlapping intervals multiply.
    pub(crate) fn whole_schedule(&self, channel: ChannelId, rate: Rate) -> (Rate, Vec<(Time, Rate)>) {
        let intervals = of(&self.intervals, channel);
        if intervals.is_empty() {
            return (rate, Vec::new());
        }
        let rate_at = |time: Time| {
            let active = intervals.iter().filter(|&&(from, until, _)| from <= time && time < until);
            // A link never stands still: that would be a cut.
            active.fold(rate, |rate, &(_, _, fraction)| rate.scale(fraction)).max(Rate(1))
        };
        let mut instants: Vec<Time> = intervals.iter().flat_map(|&(from, until, _)| [from, until]).collect();
        instants.retain(|&time| time > Time::ZERO && time < Time::MAX);
        instants.sort_unstable();
        instants.dedup();
        (rate_at(Time::ZERO), instants.into_iter().map(|time| (time, rate_at(time))).collect())
    }
}

/// An interval in which each packet is lost with a probability.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "from 0 to 2³²; saturates, as said above"
)]
fn loss_interval(from: Time, until: Option<Time>, probability: f64) -> LossInterval {
    LossInterval {
        from,
        until: until.unwrap_or(Time::MAX),
        // Saturates where the product is beyond the range, and a probability is never rounded to none.
        probability: ((probability * 2f64.powi(32)).round() as u32).max(1),
    }
}

fn check_interval(from: Time, until: Option<Time>) -> Result<(), Invalid> {
    match until {
        Some(until) if until <= from => {
            Err(Invalid::new("until", format!("a time after from = {from}"), until))
        }
        _ => Ok(()),
    }
}

/// Which links a fault concerns, as written.
struct Choice<'a> {
    tier: Option<&'a str>,
    links: Option<u32>,
    link_fraction: Option<f64>,
    channels: &'a [ChannelEnds],
    /// `None` where switches cannot be chosen.
    switches: Option<&'a [String]>,
}

impl Choice<'_> {
    /// The field that decides.
    fn field(&self) -> &'static str {
        match self {
            Choice { switches: Some([_, ..]), .. } => "switches",
            Choice { channels: [_, ..], .. } => "channels",
            Choice { tier: Some(_), .. } => "tier",
            Choice { link_fraction: Some(_), .. } => "link_fraction",
            _ => "links",
        }
    }

    /// The channels chosen: both of every link, or single ones if they are named and not `whole` links are wanted.
    fn channels(
        &self,
        network: &Network,
        seed: u64,
        index: usize,
        whole: bool,
    ) -> Result<Vec<ChannelId>, Invalid> {
        let has_switches = self.switches.is_some_and(|switches| !switches.is_empty());
        if has_switches || !self.channels.is_empty() {
            let others = [
                ("tier", self.tier.is_some()),
                ("links", self.links.is_some()),
                ("link_fraction", self.link_fraction.is_some()),
                ("channels", has_switches && !self.channels.is_empty()),
            ];
            if let Some((field, _)) = others.into_iter().find(|&(_, is_given)| is_given) {
                let named = if has_switches { "switches" } else { "channels" };
                return Err(Invalid::new(
                    field,
                    format!("none beside `{named}`, which say which ones"),
                    "both",
                ));
            }
        }
        let mut chosen = Vec::new();
        for (position, name) in self.switches.unwrap_or_default().iter().enumerate() {
            let field = || format!("switches.{position}");
            let node = network.find_node(name).map_err(|error| Invalid { field: field().into(), ..error })?;
            Invalid::unless(!network.is_host(node), field(), "a switch", format!("host {name}"))?;
            chosen.extend(network.ports(node).iter().flat_map(|&channel| [channel, channel ^ 1]));
        }
        for (position, ends) in self.channels.iter().enumerate() {
            let channel =
                ends.find(network).map_err(|error| error.within(&format!("channels.{position}")))?;
            chosen.push(channel);
            chosen.extend(whole.then_some(channel ^ 1));
        }
        if chosen.is_empty() && !has_switches && self.channels.is_empty() {
            let links = choose_links(network, seed, index, self)?;
            chosen.extend(links.into_iter().flat_map(|link| [2 * link, 2 * link + 1]));
        }
        chosen.sort_unstable();
        chosen.dedup();
        Ok(chosen)
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "from 0 to the number of links, as the fraction is from 0 to 1"
)]
fn choose_links(
    network: &Network,
    seed: u64,
    index: usize,
    choice: &Choice<'_>,
) -> Result<Vec<LinkId>, Invalid> {
    let &Choice { tier, links: count, link_fraction, switches, .. } = choice;
    let is_wanted: Box<dyn Fn(LinkId) -> bool> = match tier {
        None => Box::new(|link| {
            let link = network.links()[link as usize];
            !network.is_host(link.a) && !network.is_host(link.b)
        }),
        Some(name) => {
            let Some(tier) = network.tiers().iter().position(|known| known == name) else {
                let expected = format!("one of {}", network.tiers().join(", "));
                return Err(Invalid::new("tier", expected, format!("\"{name}\"")));
            };
            Box::new(move |link| usize::from(network.links()[link as usize].tier) == tier)
        }
    };
    let mut pool: Vec<LinkId> =
        (0..narrow::<LinkId>(network.links().len())).filter(|&link| is_wanted(link)).collect();
    let count = match (count, link_fraction) {
        (Some(count), None) => count as usize,
        (None, Some(fraction)) if (0.0..=1.0).contains(&fraction) => {
            (fraction * pool.len() as f64).ceil() as usize
        }
        (None, Some(fraction)) => return Err(Invalid::new("link_fraction", "0 to 1", fraction)),
        (count, _) => {
            let more = if switches.is_some() { "`channels` or `switches`" } else { "or `channels`" };
            let found = if count.is_some() { "`links` and `link_fraction`" } else { "none of them" };
            return Err(Invalid::new("links", format!("one of `links`, `link_fraction`, {more}"), found));
        }
    };
    let expected = || format!("at most the {} links of the tier", pool.len());
    Invalid::unless(count <= pool.len(), "links", expected(), count)?;
    let mut random = random::Node::Faults.stream(seed, index as u64);
    // The first `count` places of a Fisher-Yates shuffle.
    for place in 0..count {
        let other = place
            + narrow::<usize>((u128::from(random_u64(&mut random)) * (pool.len() - place) as u128) >> 64);
        pool.swap(place, other);
    }
    pool.truncate(count);
    Ok(pool)
}

fn random_u64(random: &mut random::Stream) -> u64 {
    rand::Rng::next_u64(random)
}
