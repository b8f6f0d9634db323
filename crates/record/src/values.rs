//! Values of flows of which percentiles or ordered sums are wanted. They wait in a [series](crate::SeriesWriter) until the run is over, then
//! come by once in ascending order; so percentiles are exact and no order of adding can be seen in sums, and none of them is kept.

use std::collections::BTreeMap;

use netloom_units::Time;

use crate::series::{Gathered, SeriesError, SeriesRow};
use crate::statistics::{Ascending, Statistics};

/// A kind of traffic and a flow-size bin.
pub(crate) type Part = (u16, u16);

/// What is known of a flow in one number, which is not negative.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Value {
    /// A [`Quantity`].
    pub(crate) quantity: u8,
    /// A [`Part`]: the kind of traffic in the upper half.
    pub(crate) part: u32,
    pub(crate) value: f64,
}

const _: () = assert!(size_of::<Value>() <= 16, "every completed flow has three of them");

impl SeriesRow for Value {
    type Key = (u8, u64);

    fn key(&self) -> (u8, u64) {
        // Bits of floats that are not negative are in their order.
        (self.quantity, self.value.to_bits())
    }
}

#[derive(Clone, Copy)]
enum Quantity {
    Fct,
    Slowdown,
    SenderFct,
    DrainShareOfFct,
    DrainShareOfClock,
}

/// Takes values.
#[derive(Debug, Default)]
pub(crate) struct Values {
    series: Gathered<Value>,
    /// How many flows have completed.
    completed: BTreeMap<Part, u64>,
    /// At how many senders.
    ended: u64,
}

impl Values {
    /// A flow completed in so long, which is this many times what it takes alone.
    pub(crate) fn completed(&mut self, part: Part, fct: Time, slowdown: f64) {
        *self.completed.entry(part).or_default() += 1;
        self.push(Quantity::Fct, part, fct.0 as f64);
        self.push(Quantity::Slowdown, part, slowdown);
    }

    /// A flow ended at its sender.
    pub(crate) fn ended(&mut self, fct: Time) {
        self.ended += 1;
        self.push(Quantity::SenderFct, Part::default(), fct.0 as f64);
    }

    /// A flow that completed was paused for such a share of its time, and of the clock's.
    pub(crate) fn drained(&mut self, of_fct: f64, of_clock: f64) {
        self.push(Quantity::DrainShareOfFct, Part::default(), of_fct);
        self.push(Quantity::DrainShareOfClock, Part::default(), of_clock);
    }

    fn push(&mut self, quantity: Quantity, (group, bin): Part, value: f64) {
        let part = u32::from(group) << 16 | u32::from(bin);
        self.series.push(Value { quantity: quantity as u8, part, value });
    }

    /// Goes through all that came.
    ///
    /// # Errors
    /// If they were too many, or could not be kept.
    #[expect(clippy::cast_possible_truncation, reason = "the halves of a word")]
    pub(crate) fn finish(self) -> Result<Spreads, SeriesError> {
        let mut spreads = Spreads {
            fct: Spread::new(&self.completed),
            slowdown: Spread::new(&self.completed),
            sender_fct: Ascending::new(self.ended),
            ..Spreads::default()
        };
        for value in self.series.finish()?.rows()? {
            let Value { quantity, part, value } = value?;
            let part = ((part >> 16) as u16, part as u16);
            match quantity {
                quantity if quantity == Quantity::Fct as u8 => spreads.fct.see(part, value),
                quantity if quantity == Quantity::Slowdown as u8 => spreads.slowdown.see(part, value),
                quantity if quantity == Quantity::SenderFct as u8 => spreads.sender_fct.see(value),
                quantity if quantity == Quantity::DrainShareOfFct as u8 => spreads.drain_of_fct += value,
                _ => spreads.drain_of_clock += value,
            }
        }
        Ok(spreads)
    }
}

/// How values are spread.
#[derive(Debug, Default)]
pub(crate) struct Spreads {
    /// Completion times at receivers, in picoseconds.
    pub(crate) fct: Spread,
    pub(crate) slowdown: Spread,
    /// Completion times at senders, in picoseconds.
    pub(crate) sender_fct: Ascending,
    /// Sums over flows that drained.
    pub(crate) drain_of_fct: f64,
    pub(crate) drain_of_clock: f64,
}

/// How a quantity is spread over completed flows.
#[derive(Debug, Default)]
pub(crate) struct Spread {
    all: Ascending,
    groups: BTreeMap<u16, Ascending>,
    bins: BTreeMap<u16, Ascending>,
}

impl Spread {
    fn new(completed: &BTreeMap<Part, u64>) -> Self {
        let (mut groups, mut bins): (BTreeMap<u16, u64>, BTreeMap<u16, u64>) = Default::default();
        for (&(group, bin), count) in completed {
            *groups.entry(group).or_default() += count;
            *bins.entry(bin).or_default() += count;
        }
        let ascending = |counts: BTreeMap<u16, u64>| {
            counts.into_iter().map(|(of, count)| (of, Ascending::new(count))).collect()
        };
        let all = Ascending::new(completed.values().sum());
        Spread { all, groups: ascending(groups), bins: ascending(bins) }
    }

    fn see(&mut self, (group, bin): Part, value: f64) {
        let (group, bin) = (self.groups.get_mut(&group), self.bins.get_mut(&bin));
        for set in [Some(&mut self.all), group, bin].into_iter().flatten() {
            set.see(value);
        }
    }

    /// That of all.
    pub(crate) fn all(&self) -> Option<Statistics> {
        self.all.statistics()
    }

    /// That of a kind of traffic.
    pub(crate) fn of_group(&self, group: u16) -> Option<Statistics> {
        self.groups.get(&group)?.statistics()
    }

    /// That of a flow-size bin.
    pub(crate) fn of_bin(&self, bin: u16) -> Option<Statistics> {
        self.bins.get(&bin)?.statistics()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn every_set_has_the_statistics_of_its_values(
            flows in prop::collection::vec((0..3u16, 0..2u16, 0..1u64 << 44, 1..9u32, any::<bool>()), 0..4000),
        ) {
            let mut values = Values::default();
            for &(group, bin, fct, times, ends) in &flows {
                values.completed((group, bin), Time(fct), f64::from(times) / 3.0);
                if ends {
                    values.ended(Time(fct + 1));
                    values.drained(0.1 / f64::from(times), 0.1 / fct.max(1) as f64);
                }
            }
            let spreads = values.finish().unwrap();
            let of = |wanted: &dyn Fn(Part) -> bool, value: &dyn Fn(u64, u32) -> f64| {
                let flows = flows.iter().filter(|&&(group, bin, ..)| wanted((group, bin)));
                Statistics::of(flows.map(|&(_, _, fct, times, _)| value(fct, times)).collect())
            };
            let (fct, slowdown) = (|fct: u64, _: u32| fct as f64, |_: u64, times: u32| f64::from(times) / 3.0);
            prop_assert_eq!(spreads.fct.all(), of(&|_| true, &fct));
            prop_assert_eq!(spreads.slowdown.all(), of(&|_| true, &slowdown));
            for index in 0..4 {
                prop_assert_eq!(spreads.fct.of_group(index), of(&|(group, _)| group == index, &fct));
                prop_assert_eq!(spreads.slowdown.of_bin(index), of(&|(_, bin)| bin == index, &slowdown));
            }
            let at_senders = flows.iter().filter(|flow| flow.4);
            let fcts = at_senders.clone().map(|flow| (flow.2 + 1) as f64).collect();
            prop_assert_eq!(spreads.sender_fct.statistics(), Statistics::of(fcts));
            let mut shares: Vec<f64> = at_senders.map(|flow| 0.1 / f64::from(flow.3)).collect();
            shares.sort_by(f64::total_cmp);
            prop_assert_eq!(spreads.drain_of_fct, shares.iter().fold(0.0, |sum, share| sum + share));
        }
    }
}
