//! Ranks as the cells of a grid.

use netloom_units::narrow;

/// A grid of D dimensions whose cells are all the ranks, as close to a cube as their number allows; the last dimension
/// is the longest, and neighbours in it have consecutive numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Grid<const D: usize> {
    sides: [u32; D],
}

impl<const D: usize> Grid<D> {
    pub(super) fn new(ranks: u32) -> Self {
        let (mut sides, mut left) = ([1; D], ranks);
        for (dimension, side) in sides.iter_mut().enumerate() {
            // The largest divisor that leaves at least as much to each of the others.
            let others = narrow::<u32>(D - dimension);
            *side = (1..=left)
                .take_while(|side| side.checked_pow(others).is_some_and(|cells| cells <= left))
                .filter(|side| left.is_multiple_of(*side))
                .last()
                .unwrap_or(1);
            left /= *side;
        }
        Grid { sides }
    }

    pub(super) fn sides(&self) -> [u32; D] {
        self.sides
    }

    /// The cell of a rank.
    pub(super) fn cell(&self, mut rank: u32) -> [u32; D] {
        let mut cell = [0; D];
        for dimension in (0..D).rev() {
            cell[dimension] = rank % self.sides[dimension];
            rank /= self.sides[dimension];
        }
        cell
    }

    /// The rank of a cell.
    pub(super) fn rank(&self, cell: [u32; D]) -> u32 {
        cell.iter().zip(self.sides).fold(0, |rank, (&place, side)| rank * side + place)
    }

    /// The rank at a distance in every dimension, where the grid closes to a ring in each.
    pub(super) fn around(&self, rank: u32, distance: [i64; D]) -> u32 {
        let mut cell = self.cell(rank);
        for ((place, side), distance) in cell.iter_mut().zip(self.sides).zip(distance) {
            *place = narrow::<u32>((i64::from(*place) + distance).rem_euclid(i64::from(side)));
        }
        self.rank(cell)
    }

    /// The rank at a distance in every dimension, where the grid ends at its edges.
    pub(super) fn within(&self, rank: u32, distance: [i64; D]) -> Option<u32> {
        let mut places = self.cell(rank).into_iter().zip(self.sides).zip(distance);
        let inside = places
            .all(|((place, side), distance)| (0..i64::from(side)).contains(&(i64::from(place) + distance)));
        inside.then(|| self.around(rank, distance))
    }
}

/// The distance of 1 up or down in one dimension.
pub(super) fn unit<const D: usize>(dimension: usize, distance: i64) -> [i64; D] {
    std::array::from_fn(|d| if d == dimension { distance } else { 0 })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn grids_are_as_close_to_cubes_as_can_be() {
        assert_eq!(Grid::<2>::new(128).sides(), [8, 16]);
        assert_eq!(Grid::<2>::new(256).sides(), [16, 16]);
        assert_eq!(Grid::<2>::new(7).sides(), [1, 7]);
        assert_eq!(Grid::<3>::new(128).sides(), [4, 4, 8]);
        assert_eq!(Grid::<3>::new(27).sides(), [3, 3, 3]);
    }

    #[test]
    fn cells_and_ranks_are_the_same_thing() {
        let grid = Grid::<3>::new(60);
        assert!((0..60).all(|rank| grid.rank(grid.cell(rank)) == rank));
    }

    #[test]
    fn neighbours_go_round_or_end_at_the_edge() {
        let grid = Grid::<2>::new(12);
        assert_eq!(grid.sides(), [3, 4]);
        assert_eq!(grid.around(3, unit(1, 1)), 0);
        assert_eq!(grid.within(3, unit(1, 1)), None);
        assert_eq!(grid.within(3, unit(0, 1)), Some(7));
        assert_eq!(grid.around(0, [-1, -1]), 11);
    }
}
