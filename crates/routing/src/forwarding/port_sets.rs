//! Sets of ports by their numbers, as packets look them up.

use netloom_topology::PortId;
use netloom_units::narrow;

/// Sets of ports.
#[derive(Clone, Debug, Default)]
pub(super) struct PortSets {
    sets: Vec<Set>,
    /// The ports of those that have several.
    ports: Vec<PortId>,
}

/// Ports of which most sets have one, which is here: a packet that has no choice looks no further.
#[derive(Clone, Copy, Debug)]
struct Set {
    /// Where its ports begin, if there are several.
    start: u32,
    count: u16,
    first: PortId,
}

impl PortSets {
    /// With room for sets of this many ports, one after the other.
    pub(super) fn with_room_for(counts: impl Iterator<Item = usize> + Clone) -> Self {
        let ports = counts.clone().filter(|&count| count > 1).sum();
        PortSets { sets: Vec::with_capacity(counts.count()), ports: Vec::with_capacity(ports) }
    }

    /// Adds one, its ports in ascending order.
    pub(super) fn push(&mut self, set: &[PortId]) {
        let start = narrow::<u32>(self.ports.len());
        if set.len() > 1 {
            self.ports.extend_from_slice(set);
        }
        self.sets.push(Set {
            start,
            count: narrow::<u16>(set.len()),
            first: set.first().copied().unwrap_or_default(),
        });
    }

    /// All of them in their order.
    pub(super) fn iter(&self) -> impl Iterator<Item = &[PortId]> {
        (0..narrow::<u32>(self.sets.len())).map(|set| self.at(set))
    }

    /// The ports of one, in ascending order.
    #[inline(always)]
    pub(super) fn at(&self, number: u32) -> &[PortId] {
        let set = &self.sets[number as usize];
        match set.count {
            1 => std::slice::from_ref(&set.first),
            _ => self.several(number),
        }
    }

    /// The same of one that has not just one.
    #[inline(always)]
    pub(super) fn several(&self, set: u32) -> &[PortId] {
        let Set { start, count, .. } = self.sets[set as usize];
        // One check, as the sum cannot overflow.
        &self.ports[start as usize..start as usize + usize::from(count)]
    }

    /// The port of one that has no others.
    #[inline(always)]
    pub(super) fn only(&self, set: u32) -> Option<PortId> {
        let set = &self.sets[set as usize];
        (set.count == 1).then_some(set.first)
    }
}
