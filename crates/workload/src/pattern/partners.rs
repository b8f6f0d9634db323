//! What patterns with given partners share: every rank sends to its partners, once or again and again.

use netloom_units::{Time, narrow};

use crate::closed::{Closed, Partners};
use crate::plan::{HostWork, MOST_MESSAGES, Message, Plan, Setting};
use crate::random::Work;
use crate::{Size, WorkloadError};

/// The partners of every rank at given distances (mod the number of ranks).
pub(super) fn at_offsets(
    ranks: u32,
    offsets: &[i64],
    field: &'static str,
) -> Result<Vec<Vec<u32>>, WorkloadError> {
    let ranks = i64::from(ranks);
    if offsets.is_empty() || offsets.iter().any(|offset| offset % ranks == 0) {
        let expected = format!("distances that are no multiples of the {ranks} ranks");
        return Err(WorkloadError::parameter(field, expected, format!("{offsets:?}")));
    }
    let target = |rank: i64, offset: i64| narrow::<u32>((rank + offset.rem_euclid(ranks)).rem_euclid(ranks));
    Ok((0..ranks).map(|rank| offsets.iter().map(|&offset| target(rank, offset)).collect()).collect())
}

/// Lets every rank send to its partners (given as ranks) at once, and to each of them again when a message
/// completes, `repeat` times in all. A rank without partners idles.
pub(super) fn send_to_partners(
    setting: &Setting,
    size: &Size,
    repeat: u32,
    partners: &[Vec<u32>],
) -> Result<Plan, WorkloadError> {
    if repeat == 0 {
        return Err(WorkloadError::parameter("repeat", "at least 1", repeat));
    }
    let most = partners.iter().map(|p| p.len() as u64).max().unwrap_or(0);
    if most * u64::from(repeat) > MOST_MESSAGES {
        let expected = format!("at most {} messages to each of {most} partners", MOST_MESSAGES / most);
        return Err(WorkloadError::parameter("repeat", expected, repeat));
    }
    let size = size.sampler(setting.context)?;
    let messages = partners.iter().map(|p| p.len() as u64 * u64::from(repeat)).sum();
    Ok(setting.plan(Some(messages), |rank, host| {
        let hosts: Vec<_> = partners[rank as usize].iter().map(|&p| setting.placed[p as usize]).collect();
        let (start, mut rng) = (setting.first_start(host), Work::Host.stream(setting.context.seed, host));
        if hosts.is_empty() {
            return HostWork::default();
        }
        if repeat == 1 {
            let message = |dst| Message::new(dst, size.draw(&mut rng), start);
            return HostWork::list(hosts.into_iter().map(message).collect());
        }
        let work = Closed {
            rng,
            size: size.clone(),
            left: hosts.len() as u64 * u64::from(repeat),
            window: narrow::<u32>(hosts.len()),
            until: Time::MAX,
            partners: Partners::cycle(hosts),
        };
        HostWork::closed(work, start)
    }))
}
