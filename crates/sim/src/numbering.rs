//! The numbers of flows and subflows.

/// Where programs run, flows that are not theirs are numbered from here on; theirs have the numbers that both ends know.
pub(crate) const FIRST_OWN: u32 = 1 << 31;

/// How packets say of which subflow they are: by some bits of their flow's number, below the highest.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Numbering {
    /// Those bits; none where flows have no subflows.
    bits: u32,
}

impl Numbering {
    /// For flows of `subflows` subflows.
    pub(crate) fn new(subflows: u32) -> Self {
        let width = u32::BITS - (subflows - 1).leading_zeros();
        Numbering { bits: ((1 << width) - 1) << (31 - width) }
    }

    /// Whether flows have subflows.
    #[inline(always)]
    pub(crate) fn has_subflows(self) -> bool {
        self.bits != 0
    }

    /// How many numbers there are for flows of one origin.
    pub(crate) fn flows(self) -> u64 {
        if self.bits == 0 { 1 << 31 } else { 1 << self.bits.trailing_zeros() }
    }

    /// The number of a flow that begins, of which `next` is that of the next one. It is looked at here because nobody knows beforehand how many flows
    /// begin while a load lasts.
    ///
    /// # Panics
    /// If there are no numbers left. `who` is the host or server that has taken them.
    pub(crate) fn next(self, next: &mut u32, who: impl FnOnce() -> String) -> u32 {
        let number = *next;
        // Those of programs come before FIRST_OWN, and are not given here.
        let is_left = u64::from(number & (FIRST_OWN - 1)) < self.flows() && number < u32::MAX;
        assert!(is_left, "{} begins more flows than have numbers: {} of its own", who(), self.flows());
        *next += 1;
        number
    }

    /// The number of the flow as a whole.
    #[inline(always)]
    pub(crate) fn flow(self, number: u32) -> u32 {
        number & !self.bits
    }

    pub(crate) fn subflow(self, number: u32) -> u32 {
        (number & self.bits) >> self.bits.trailing_zeros()
    }

    pub(crate) fn number(self, flow: u32, subflow: u32) -> u32 {
        flow | subflow << self.bits.trailing_zeros()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_says_whose_a_packet_is() {
        for subflows in [2, 3, 8, 64] {
            let numbering = Numbering::new(subflows);
            assert!(numbering.has_subflows());
            for flow in [0, 5, numbering.flows() as u32 - 1, 1 << 31 | 7] {
                for subflow in [0, 1, subflows - 1] {
                    let number = numbering.number(flow, subflow);
                    assert_eq!((numbering.flow(number), numbering.subflow(number)), (flow, subflow));
                }
            }
        }
        let none = Numbering::new(1);
        assert_eq!(none.next(&mut 5, String::new), 5);
        assert!(!none.has_subflows() && none.flow(u32::MAX) == u32::MAX);
        assert_eq!(Numbering::new(64).flows(), 1 << 25);
    }

    #[test]
    fn the_last_number_is_not_that_of_a_subflow() {
        let numbering = Numbering::new(64);
        for first in [0, FIRST_OWN] {
            let mut next = first + (1 << 25) - 1;
            assert_eq!(numbering.next(&mut next, String::new), first + (1 << 25) - 1);
            let none_left =
                std::panic::catch_unwind(move || numbering.next(&mut next, || "host 3".to_owned()));
            let message = none_left.unwrap_err();
            let message = message.downcast_ref::<String>().unwrap();
            assert_eq!(message, "host 3 begins more flows than have numbers: 33554432 of its own");
        }
    }
}
