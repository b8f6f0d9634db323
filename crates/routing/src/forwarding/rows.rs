//! The rows of a [`RouteTable`](super::RouteTable) as they are made, and how they are kept.

use netloom_units::narrow;
use std::ops::Range;

use rustc_hash::FxHashMap;

use super::distances::bits;

/// The ways of one switch: to these roots, the ports of the set of that number.
pub(super) type Ways = Vec<(u64, u32)>;

/// Numbers, each in as many bytes as the largest needs.
#[derive(Clone, Debug)]
pub(super) enum Numbers {
    Bytes(Vec<u8>),
    Halves(Vec<u16>),
    Words(Vec<u32>),
}

impl Default for Numbers {
    fn default() -> Self {
        Numbers::Bytes(Vec::new())
    }
}

impl Numbers {
    /// This many zeros, with room for numbers of this many bytes.
    fn zeros(count: usize, width: usize) -> Self {
        match width {
            1 => Numbers::Bytes(vec![0; count]),
            2 => Numbers::Halves(vec![0; count]),
            _ => Numbers::Words(vec![0; count]),
        }
    }

    #[inline(always)]
    pub(super) fn at(&self, place: usize) -> u32 {
        match self {
            Numbers::Bytes(all) => all[place].into(),
            Numbers::Halves(all) => all[place].into(),
            Numbers::Words(all) => all[place],
        }
    }

    pub(super) fn len(&self) -> usize {
        match self {
            Numbers::Bytes(all) => all.len(),
            Numbers::Halves(all) => all.len(),
            Numbers::Words(all) => all.len(),
        }
    }

    /// Bytes of each.
    fn width(&self) -> usize {
        match self {
            Numbers::Bytes(_) => 1,
            Numbers::Halves(_) => 2,
            Numbers::Words(_) => 4,
        }
    }

    /// Adds numbers; where they need more bytes, all get them.
    pub(super) fn extend(&mut self, more: &[u32]) {
        let needed = match more.iter().max() {
            Some(&most) if most > u16::MAX.into() => 4,
            Some(&most) if most > u8::MAX.into() => 2,
            _ => 1,
        };
        if needed > self.width() {
            let mut wider = Numbers::zeros(self.len(), needed);
            wider.copy(0, self, 0..self.len());
            *self = wider;
        }
        match self {
            Numbers::Bytes(all) => all.extend(more.iter().map(|&number| narrow::<u8>(number))),
            Numbers::Halves(all) => all.extend(more.iter().map(|&number| narrow::<u16>(number))),
            Numbers::Words(all) => all.extend(more),
        }
    }

    /// Writes others over those from a place on, which have room for them.
    fn copy(&mut self, to: usize, others: &Numbers, range: Range<usize>) {
        match (self, others) {
            (Numbers::Bytes(all), Numbers::Bytes(others)) => {
                all[to..][..range.len()].copy_from_slice(&others[range])
            }
            (Numbers::Bytes(_), _) => unreachable!("there is room"),
            (Numbers::Halves(all), others) => all[to..]
                .iter_mut()
                .zip(range)
                .for_each(|(one, place)| *one = narrow::<u16>(others.at(place))),
            (Numbers::Words(all), others) => {
                all[to..].iter_mut().zip(range).for_each(|(one, place)| *one = others.at(place))
            }
        }
    }
}

/// Rows as they grow, a block of edge switches at a time. What is equal within a block is kept once.
pub(super) struct Rows {
    blocks: Vec<Block>,
    switches: usize,
}

/// The part of all rows about some edge switches.
struct Block {
    /// Per switch, which of the different parts is its own.
    part_of: Vec<u32>,
    parts: Numbers,
    width: usize,
}

impl Rows {
    pub(super) fn new(switches: usize) -> Self {
        Rows { blocks: Vec::new(), switches }
    }

    /// The next block is about these roots.
    pub(super) fn add(&mut self, roots: &[usize], ways: &[Ways]) {
        let mut own = vec![usize::MAX; self.switches];
        roots.iter().enumerate().for_each(|(place, &root)| own[root] = place);
        let (width, mut known) = (roots.len(), FxHashMap::default());
        let (mut part_of, mut parts) = (Vec::with_capacity(self.switches), Numbers::default());
        let mut part = vec![0; width];
        for (ways, &own) in ways.iter().zip(&own) {
            for &(roots, number) in ways {
                bits(roots).for_each(|root| part[root] = number);
            }
            if own < width && width > 1 {
                // Nobody asks for the way to where it is, so this need not distinguish the row from others.
                part[own] = part[if own == 0 { 1 } else { 0 }];
            }
            let number = known.get(&part).copied().unwrap_or_else(|| {
                parts.extend(&part);
                let number = narrow::<u32>(known.len());
                known.insert(part.clone(), number);
                number
            });
            part_of.push(number);
        }
        self.blocks.push(Block { part_of, parts, width });
    }

    /// Every switch's row, and the rows.
    pub(super) fn finish(self, edges: usize) -> (Vec<u32>, Numbers) {
        let (mut row_of, mut firsts) = (Vec::with_capacity(self.switches), Vec::new());
        let mut known: FxHashMap<Vec<u32>, u32> = FxHashMap::default();
        for switch in 0..self.switches {
            let parts = self.blocks.iter().map(|block| block.part_of[switch]).collect();
            row_of.push(*known.entry(parts).or_insert_with(|| {
                firsts.push(switch);
                narrow::<u32>(firsts.len()) - 1
            }));
        }
        // Blocks are given up as the rows grow, from left to right: nothing is held twice.
        let widest = self.blocks.iter().map(|block| block.parts.width()).max().unwrap_or(1);
        let mut set_of = Numbers::zeros(firsts.len() * edges, widest);
        let mut begin = 0;
        for Block { part_of, parts, width } in self.blocks {
            for (row, &first) in firsts.iter().enumerate() {
                let part = part_of[first] as usize * width;
                set_of.copy(row * edges + begin, &parts, part..part + width);
            }
            begin += width;
        }
        (row_of, set_of)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// However wide they are and in whatever order they come.
        #[test]
        fn numbers_are_kept_as_they_came(
            parts in prop::collection::vec(
                prop::collection::vec(prop_oneof![0..256u32, 0..65_536u32, any::<u32>()], 0..9), 1..9),
        ) {
            let mut numbers = Numbers::default();
            parts.iter().for_each(|part| numbers.extend(part));
            let all = parts.concat();
            prop_assert_eq!((0..numbers.len()).map(|place| numbers.at(place)).collect::<Vec<_>>(), all.clone());
            let most = all.iter().max().copied().unwrap_or(0);
            let needed = [u32::from(u8::MAX), u16::MAX.into()].iter().filter(|&&fits| most > fits).count();
            prop_assert_eq!(numbers.width(), [1, 2, 4][needed]);
        }
    }

    /// With few sets of ports, with thousands, and with more than two bytes count.
    #[test]
    fn rows_are_those_that_were_added() {
        for sets in [9, 3000, 90_000] {
            let (switches, edges) = (300, 200);
            let number = |here: usize, to: usize| (here * 7919 + to * 104_729) as u32 % sets;
            let mut rows = Rows::new(switches);
            for roots in (0..edges).collect::<Vec<_>>().chunks(64) {
                let ways = |here| roots.iter().map(|&to| (1 << (to % 64), number(here, to))).collect();
                rows.add(roots, &(0..switches).map(ways).collect::<Vec<Ways>>());
            }
            let (row_of, set_of) = rows.finish(edges);
            assert_eq!(
                set_of.width(),
                if sets > 65_536 {
                    4
                } else if sets > 256 {
                    2
                } else {
                    1
                }
            );
            for (here, to) in (0..switches).flat_map(|here| (0..edges).map(move |to| (here, to))) {
                let found = set_of.at(row_of[here] as usize * edges + to);
                assert!(found == number(here, to) || here == to, "{here} {to} {sets}");
            }
        }
    }
}
