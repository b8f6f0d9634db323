//! What ranks do one after the other, and what of it is repeated: the layers of a model are mostly alike.

use netloom_units::narrow;

use super::file::{Step, WorkloadFile};

/// Steps that a repetition has, at most.
const LONGEST_REPETITION: u32 = 1 << 9;

/// Repetitions of as many steps that follow each other, fewest.
const FEWEST: u32 = 3;

/// All steps, in order. The number of an operation is the place of its step.
#[derive(Debug)]
pub(crate) struct Sequence {
    steps: Box<[Step]>,
    blocks: Box<[Block]>,
}

/// Steps that are repeated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Block {
    first: u32,
    /// Steps of a repetition, and how many of these there are.
    each: u32,
    count: u32,
}

impl Block {
    /// How many repetitions begin before a step.
    fn begun(&self, number: u32) -> u32 {
        number.saturating_sub(self.first).div_ceil(self.each).min(self.count)
    }
}

impl Sequence {
    /// That of a file.
    pub(crate) fn new(file: &WorkloadFile) -> Self {
        let mut sequence = Sequence { steps: file.steps().collect(), blocks: Box::default() };
        let (mut blocks, count) = (Vec::new(), narrow::<u32>(sequence.steps.len()));
        let mut first = 0;
        while first < count {
            let repeated = |each: u32| {
                let count = (sequence.alike_until(file, first, each) - first) / each;
                Block { first, each, count }
            };
            let longest = LONGEST_REPETITION.min((count - first) / FEWEST);
            let blocks_here = (1..=longest).map(repeated).filter(|block| block.count >= FEWEST);
            // The one that reaches furthest, of several the one with the shortest repetitions.
            let best = blocks_here.rev().max_by_key(|block| block.each * block.count);
            first += best.map_or(1, |block| block.each * block.count);
            blocks.extend(best);
        }
        sequence.blocks = blocks.into();
        sequence
    }

    /// How many steps there are.
    pub(crate) fn len(&self) -> u32 {
        narrow::<u32>(self.steps.len())
    }

    /// Up to which step all are the same as those `each` before, from `first` on, in all but the layer, which is as much further in each.
    pub(crate) fn alike_until(&self, file: &WorkloadFile, first: u32, each: u32) -> u32 {
        let (first, each) = (first as usize, each as usize);
        let pairs = self.steps[first..].iter().zip(self.steps.get(first + each..).unwrap_or_default());
        let further = |(one, other): (&Step, &Step)| other.layer.wrapping_sub(one.layer);
        let mut by = None;
        let alike = pairs.take_while(|&(one, other)| {
            let (before, behind) = (&file.layers[one.layer as usize], &file.layers[other.layer as usize]);
            let kind = one.kind as usize;
            one.kind == other.kind
                && before.passes[kind] == behind.passes[kind]
                && before.update == behind.update
                && *by.get_or_insert(further((one, other))) == further((one, other))
        });
        narrow::<u32>(first + each + alike.count()).min(self.len())
    }

    /// Whether a repetition begins with this step.
    pub(crate) fn begins_repetition(&self, number: u32) -> bool {
        let block = self.blocks.partition_point(|block| block.first <= number).checked_sub(1);
        block.is_some_and(|block| {
            let Block { first, each, count } = self.blocks[block];
            (number - first).is_multiple_of(each) && (number - first) / each < count
        })
    }

    /// Whether it is the first of several.
    pub(crate) fn begins_block(&self, number: u32) -> bool {
        self.blocks.binary_search_by_key(&number, |block| block.first).is_ok()
    }

    /// How many repetitions begin with this step or later.
    pub(crate) fn repetitions_from(&self, number: u32) -> u32 {
        self.blocks.iter().map(|block| block.count - block.begun(number)).sum()
    }
}
