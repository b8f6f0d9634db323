//! Links that are slow or gone.

use netloom_topology::{ChannelId, LinkId, Network};
use netloom_units::random;
use netloom_units::{Rate, Time, kinds};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::channel::ChannelEnds;

kinds! {
    /// Something wrong with some links.
    pub enum Fault: "fault" {
        "degrade" => Degrade(Degrade),
        "cut" => Cut(Cut),
    }
}

/// Links that run at a fraction of their rate for a while, in both directions, or single channels of them. Routing is not told.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Degrade {
    /// Link tier to choose from; absent: all links between switches.
    pub tier: Option<String>,
    /// Number of links, chosen at random. Give this, `share` or `channels`.
    pub links: Option<u32>,
    /// Share of the links, 0 to 1, rounded up to whole links.
    pub share: Option<f64>,
    /// These channels, one direction of a link each: tables with the nodes `from` and `to` as in `links.parquet`; `parallel` tells parallel
    /// links apart, from 0.
    pub channels: Vec<ChannelEnds>,
    /// The rate while degraded, as a fraction of the configured one. The Flowcut evaluation's failed links keep a tenth.
    pub fraction: f64,
    /// From when.
    pub from: Time,
    /// Until when; absent: for ever.
    pub until: Option<Time>,
}

impl Default for Degrade {
    fn default() -> Self {
        Degrade {
            tier: None,
            links: None,
            share: None,
            channels: Vec::new(),
            fraction: 0.1,
            from: Time::ZERO,
            until: None,
        }
    }
}

/// Links that do not exist during the whole run; minimal paths are computed without them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Cut {
    /// Link tier to choose from; absent: all links between switches.
    pub tier: Option<String>,
    /// Number of links, chosen at random. Give this or `share`.
    pub links: Option<u32>,
    /// Share of the links, 0 to 1, rounded up to whole links.
    pub share: Option<f64>,
}

/// A fault that cannot be laid on the network.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("faults[{index}].{field}: {reason}")]
pub struct FaultError {
    /// Which fault of the list, from 0.
    pub index: usize,
    /// The field that should change.
    pub field: String,
    /// Why.
    pub reason: String,
}

/// Faults laid on a network.
#[derive(Clone, Debug)]
pub(crate) struct Faults {
    pub(crate) cut: Vec<bool>,
    /// Per channel, the spells of reduced rate: from, until, fraction.
    spells: Vec<Vec<(Time, Time, f64)>>,
}

impl Faults {
    /// Chooses the links of every fault.
    pub(crate) fn lay(faults: &[Fault], network: &Network, seed: u64) -> Result<Self, FaultError> {
        let links = network.links().len();
        let mut laid = Faults { cut: vec![false; links], spells: vec![Vec::new(); 2 * links] };
        for (index, fault) in faults.iter().enumerate() {
            let choose = |tier: &Option<String>, count, share| {
                choose_links(network, seed, index, tier.as_deref(), count, share)
                    .map_err(|(field, reason)| FaultError { index, field: field.to_owned(), reason })
            };
            match fault {
                Fault::Cut(cut) => {
                    for link in choose(&cut.tier, cut.links, cut.share)? {
                        laid.cut[link as usize] = true;
                    }
                }
                Fault::Degrade(degrade) => {
                    degrade.check().map_err(|(field, reason)| FaultError {
                        index,
                        field: field.to_owned(),
                        reason,
                    })?;
                    let until = degrade.until.unwrap_or(Time::MAX);
                    let spell = (degrade.from, until, degrade.fraction);
                    for (position, ends) in degrade.channels.iter().enumerate() {
                        let channel = ends.find(network).map_err(|(field, reason)| FaultError {
                            index,
                            field: format!("channels.{position}.{field}"),
                            reason,
                        })?;
                        laid.spells[channel as usize].push(spell);
                    }
                    if !degrade.channels.is_empty() {
                        continue;
                    }
                    for link in choose(&degrade.tier, degrade.links, degrade.share)? {
                        for channel in [2 * link, 2 * link + 1] {
                            laid.spells[channel as usize].push(spell);
                        }
                    }
                }
            }
        }
        Ok(laid)
    }

    /// The rate at time zero and its later changes. Overlapping spells multiply.
    pub(crate) fn schedule(&self, channel: ChannelId, rate: Rate) -> (Rate, Vec<(Time, Rate)>) {
        let spells = &self.spells[channel as usize];
        let rate_at = |time: Time| {
            let active = spells.iter().filter(|&&(from, until, _)| from <= time && time < until);
            // A link never stands still: that would be a cut.
            active.fold(rate, |rate, &(_, _, fraction)| rate.scale(fraction)).max(Rate(1))
        };
        let mut instants: Vec<Time> = spells.iter().flat_map(|&(from, until, _)| [from, until]).collect();
        instants.retain(|&time| time > Time::ZERO && time < Time::MAX);
        instants.sort_unstable();
        instants.dedup();
        (rate_at(Time::ZERO), instants.into_iter().map(|time| (time, rate_at(time))).collect())
    }
}

impl Degrade {
    fn check(&self) -> Result<(), (&'static str, String)> {
        if !(self.fraction > 0.0 && self.fraction <= 1.0) {
            let reason = format!(
                "expected a number above 0 and at most 1, found {}; to remove links use kind \"cut\"",
                self.fraction
            );
            return Err(("fraction", reason));
        }
        if !self.channels.is_empty() {
            let others = [
                ("tier", self.tier.is_some()),
                ("links", self.links.is_some()),
                ("share", self.share.is_some()),
            ];
            if let Some((field, _)) = others.into_iter().find(|&(_, is_given)| is_given) {
                return Err((field, "has no meaning with `channels`, which are the ones degraded".into()));
            }
        }
        match self.until {
            Some(until) if until <= self.from => {
                Err(("until", format!("expected a time after from = {}, found {until}", self.from)))
            }
            _ => Ok(()),
        }
    }
}

fn choose_links(
    network: &Network,
    seed: u64,
    index: usize,
    tier: Option<&str>,
    count: Option<u32>,
    share: Option<f64>,
) -> Result<Vec<LinkId>, (&'static str, String)> {
    let is_wanted: Box<dyn Fn(LinkId) -> bool> = match tier {
        None => Box::new(|link| {
            let link = network.links()[link as usize];
            !network.is_host(link.a) && !network.is_host(link.b)
        }),
        Some(name) => {
            let Some(tier) = network.tiers().iter().position(|known| known == name) else {
                return Err((
                    "tier",
                    format!("expected one of {}, found \"{name}\"", network.tiers().join(", ")),
                ));
            };
            Box::new(move |link| usize::from(network.links()[link as usize].tier) == tier)
        }
    };
    let mut pool: Vec<LinkId> =
        (0..network.links().len() as LinkId).filter(|&link| is_wanted(link)).collect();
    let count = match (count, share) {
        (Some(count), None) => count as usize,
        (None, Some(share)) if (0.0..=1.0).contains(&share) => (share * pool.len() as f64).ceil() as usize,
        (None, Some(share)) => return Err(("share", format!("expected 0 to 1, found {share}"))),
        _ => return Err(("links", "expected either `links` or `share`, or for `degrade` `channels`".into())),
    };
    if count > pool.len() {
        return Err((
            "links",
            format!("expected at most the {} links of the tier, found {count}", pool.len()),
        ));
    }
    let mut random = random::Node::Faults.stream(seed, index as u64);
    // The first `count` places of a Fisher-Yates shuffle.
    for place in 0..count {
        let other =
            place + ((u128::from(random_u64(&mut random)) * (pool.len() - place) as u128) >> 64) as usize;
        pool.swap(place, other);
    }
    pool.truncate(count);
    Ok(pool)
}

fn random_u64(random: &mut random::Stream) -> u64 {
    rand::Rng::next_u64(random)
}
