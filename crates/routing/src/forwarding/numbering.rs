//! Sets of ports by their numbers, as a route table is made.

use netloom_topology::PortId;
use netloom_units::{narrow, prefetch};

use super::distances::{Distances, Links, ROOTS, bits};
use super::port_sets::PortSets;
use super::rows::Ways;

/// Sets of ports, numbered in the order in which they come up by edge switch and then by switch.
///
/// In a random network there are millions of them, and to look for one misses every cache. So a set is a row of bits, those of one switch are looked for together, and memory is asked for before its turn comes.
#[derive(Debug)]
pub(super) struct Numbering {
    /// Words of a set: a bit for every port that a switch may have.
    words: usize,
    /// The sets in the order in which they were found.
    sets: Vec<u64>,
    /// Their numbers in that order.
    numbers: Vec<u32>,
    /// Where sets lie in that order. The lowest bits of a set's hash say where one is looked for first, then come the next ones; half of them are empty at least.
    slots: Vec<Slot>,
    /// Per port, where the set of it alone lies, which is most often looked for.
    alone: Vec<u32>,
}

#[derive(Clone, Copy, Debug)]
struct Slot {
    hash: u32,
    place: u32,
}

/// There is no set.
const NONE: u32 = u32::MAX;

const EMPTY: Slot = Slot { hash: 0, place: NONE };

impl Numbering {
    /// Of switches with at most this many ports. Sets that are known already keep the numbers that they have.
    pub(super) fn new<'a>(ports: usize, known: impl Iterator<Item = &'a [PortId]>) -> Self {
        let words = ports.div_ceil(64).max(1);
        let (sets, numbers) = (Vec::new(), Vec::new());
        let mut numbering =
            Numbering { words, sets, numbers, slots: vec![EMPTY; 4 * ROOTS], alone: vec![NONE; ports] };
        for ports in known {
            numbering.make_room();
            numbering.numbers.push(narrow::<u32>(numbering.numbers.len()));
            numbering.place_of(ports);
        }
        numbering
    }

    /// How many have been found.
    pub(super) fn found(&self) -> usize {
        self.sets.len() / self.words
    }

    /// Room for as many more as one switch may have.
    fn make_room(&mut self) {
        let needed = 2 * (self.found() + ROOTS);
        if needed <= self.slots.len() {
            return;
        }
        let slots = std::mem::replace(&mut self.slots, vec![EMPTY; needed.next_power_of_two()]);
        for slot in slots.into_iter().filter(|slot| slot.place != NONE) {
            let mut at = self.first_slot(slot.hash);
            while self.slots[at].place != NONE {
                at = self.next_slot(at);
            }
            self.slots[at] = slot;
        }
    }

    fn first_slot(&self, hash: u32) -> usize {
        hash as usize & (self.slots.len() - 1)
    }

    fn next_slot(&self, slot: usize) -> usize {
        (slot + 1) & (self.slots.len() - 1)
    }

    /// Where a set lies, from now on if nobody has found it before. There is room for it.
    fn place(&mut self, set: &[u64], hash: u32) -> u32 {
        let mut at = self.first_slot(hash);
        loop {
            let slot = self.slots[at];
            if slot.place == NONE {
                let place = narrow::<u32>(self.found());
                self.slots[at] = Slot { hash, place };
                self.sets.extend_from_slice(set);
                return place;
            }
            let known = slot.place as usize * self.words;
            if slot.hash == hash && self.sets[known..known + self.words].iter().eq(set) {
                return slot.place;
            }
            at = self.next_slot(at);
        }
    }

    /// The same of ports that are listed.
    fn place_of(&mut self, ports: &[PortId]) -> u32 {
        let mut set = vec![0; self.words];
        ports.iter().for_each(|&port| set[usize::from(port) / 64] |= 1 << (port % 64));
        self.place(&set, hash(&set))
    }

    /// The same of one port.
    fn place_alone(&mut self, port: PortId) -> u32 {
        let known = self.alone[usize::from(port)];
        if known != NONE {
            return known;
        }
        let place = self.place_of(&[port]);
        self.alone[usize::from(port)] = place;
        place
    }

    /// Writes the ways of some switches, one after the other from the first on, to the roots that have been measured.
    pub(super) fn of_roots(&mut self, links: &Links, distances: &Distances, first: usize, all: &mut [Ways]) {
        let known = self.numbers.len();
        // Of the sets that come up here, where they do first: the root, then 32 bits for the switch.
        let mut firsts: Vec<u64> = Vec::new();
        let (mut ports, mut sought) = (Vec::new(), Sought::new(self.words));
        for (here, ways) in (first..).zip(&mut *all) {
            distances.closer(links, here, &mut ports);
            ways.clear();
            self.make_room();
            self.find(&ports, distances.roots(), &mut sought, ways);
            for &(roots, place) in &*ways {
                let first = u64::from(roots.trailing_zeros()) << 32 | here as u64;
                let Some(fresh) = (place as usize).checked_sub(known) else { continue };
                match firsts.get_mut(fresh) {
                    Some(known) => *known = first.min(*known),
                    None => firsts.push(first),
                }
            }
        }
        let mut order: Vec<(u64, usize)> = firsts.into_iter().zip(known..).collect();
        order.sort_unstable_by_key(|&(first, _)| first);
        self.numbers.resize(known + order.len(), 0);
        (known..).zip(order).for_each(|(number, (_, place))| self.numbers[place] = narrow::<u32>(number));
        for (_, place) in all.iter_mut().flatten() {
            *place = self.numbers[*place as usize];
        }
    }

    /// Adds every set of ports that lead nearer to some roots: those roots, and where the set lies. Those that are new come in the order of their places.
    fn find(&mut self, ports: &[(PortId, u64)], roots: u64, sought: &mut Sought, ways: &mut Ways) {
        let count = |(one, several), &(_, of_port): &(PortId, u64)| (one | of_port, several | one & of_port);
        let (one, several) = ports.iter().fold((0, 0), count);
        if roots & !one != 0 {
            ways.push((roots & !one, self.place_of(&[])));
        }
        for &(port, of_port) in ports.iter().filter(|&&(_, of_port)| of_port & !several != 0) {
            ways.push((of_port & !several, self.place_alone(port)));
        }
        if several == 0 {
            return;
        }
        sought.collect(ports, several);
        for &(_, hash) in &sought.sets {
            prefetch(&self.slots[self.first_slot(hash)]);
        }
        for &(_, hash) in &sought.sets {
            let slot = self.slots[self.first_slot(hash)];
            if slot.hash == hash && slot.place != NONE {
                prefetch(&self.sets[slot.place as usize * self.words]);
            }
        }
        for &(roots, hash) in &sought.sets {
            ways.push((roots, self.place(sought.set(roots), hash)));
        }
    }

    /// All of them by their numbers.
    pub(super) fn finish(self) -> PortSets {
        let Numbering { words, sets, numbers, slots, .. } = self;
        drop(slots);
        let mut places = vec![0; numbers.len()];
        (0..).zip(numbers).for_each(|(place, number): (usize, u32)| places[number as usize] = place);
        let set = |place: usize| &sets[place * words..][..words];
        let count = |&place: &usize| set(place).iter().map(|word| word.count_ones() as usize).sum();
        let (mut all, mut ports) = (PortSets::with_room_for(places.iter().map(count)), Vec::new());
        for place in places {
            ports.clear();
            for (word, &set) in set(place).iter().enumerate() {
                ports.extend(bits(set).map(|bit| narrow::<PortId>(word * 64 + bit)));
            }
            all.push(&ports);
        }
        all
    }
}

/// The sets of ports of one switch to roots to which several ports lead.
struct Sought {
    words: usize,
    /// Per root, its set.
    of_root: Vec<u64>,
    /// The sets, by the roots that have each, and its hash. One may come up more than once.
    sets: Vec<(u64, u32)>,
}

impl Sought {
    fn new(words: usize) -> Self {
        Sought { words, of_root: vec![0; ROOTS * words], sets: Vec::new() }
    }

    /// The set of some roots.
    fn set(&self, roots: u64) -> &[u64] {
        &self.of_root[roots.trailing_zeros() as usize * self.words..][..self.words]
    }

    /// Turns ports with the roots to which they lead nearer into roots with their sets.
    fn collect(&mut self, ports: &[(PortId, u64)], roots: u64) {
        self.of_root.fill(0);
        self.sets.clear();
        if ports.iter().all(|&(_, of_port)| of_port & roots == 0 || of_port & roots == roots) {
            // As on all ways up in a tree.
            let first = roots.trailing_zeros() as usize * self.words;
            for &(port, _) in ports.iter().filter(|&&(_, of_port)| of_port & roots != 0) {
                self.of_root[first + usize::from(port) / 64] |= 1 << (port % 64);
            }
            self.sets.push((roots, hash(self.set(roots))));
            return;
        }
        for ports in ports.chunk_by(|(a, _), (b, _)| a / 64 == b / 64) {
            let mut square = [0; 64];
            ports.iter().for_each(|&(port, of_port)| square[usize::from(port) % 64] = of_port);
            transpose(&mut square);
            let word = usize::from(ports[0].0) / 64;
            bits(roots).for_each(|root| self.of_root[root * self.words + word] = square[root]);
        }
        for root in bits(roots).map(|root| 1 << root) {
            let before = self.sets.last().filter(|&&(before, _)| self.set(before) == self.set(root));
            match before.is_some() {
                true => self.sets.last_mut().into_iter().for_each(|(roots, _)| *roots |= root),
                false => self.sets.push((root, hash(self.set(root)))),
            }
        }
    }
}

/// Makes bit j of word i bit i of word j, by changing places of ever smaller squares (Warren, Hacker's Delight, 7-3).
fn transpose(square: &mut [u64; 64]) {
    let (mut side, mut low) = (32, u64::from(u32::MAX));
    while side != 0 {
        for pair in square.chunks_exact_mut(2 * side) {
            let (upper, lower) = pair.split_at_mut(side);
            for (upper, lower) in upper.iter_mut().zip(lower) {
                let change = (*upper >> side ^ *lower) & low;
                *upper ^= change << side;
                *lower ^= change;
            }
        }
        side /= 2;
        low ^= low << side;
    }
}

/// Both halves of what a product makes of every word count: the lower one alone says little of the ports at the end of a word.
#[expect(clippy::cast_possible_truncation, reason = "both halves are mixed, and the lower one is kept")]
fn hash(set: &[u64]) -> u32 {
    // 2⁶⁴ over the golden ratio (Knuth's multiplicative hashing).
    const FACTOR: u64 = 0x9E37_79B9_7F4A_7C15;
    let mix = |hash: u64, &word: &u64| {
        let product = u128::from(hash ^ word) * u128::from(FACTOR);
        (product ^ product >> 64) as u64
    };
    set.iter().fold(0, mix) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As in a HyperX, whose switches have a few ports that lead nearer each, none of them among the first ones, which go to hosts.
    #[test]
    fn small_sets_lie_all_over_the_slots() {
        for words in 1..3 {
            let mut slots = [false; 4096];
            let mut set = vec![0; words];
            let ports = || 16..64;
            for (a, b) in ports().flat_map(|a| (a + 1..64).map(move |b| (a, b))) {
                for word in 0..words {
                    set.fill(0);
                    set[word] = 1 << a | 1 << b;
                    slots[hash(&set) as usize % slots.len()] = true;
                }
            }
            // 1,128 sets thrown at random fall on 986 of them, 2,256 on 1,735.
            let taken = slots.iter().filter(|&&is_taken| is_taken).count();
            assert!(taken > [900, 1600][words - 1], "{taken}");
        }
    }
}
