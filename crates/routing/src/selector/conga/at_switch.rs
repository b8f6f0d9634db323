//! CONGA's steps at a switch.

use netloom_units::Time;
use rand::Rng;

use super::{Marking, Report};
use crate::hash::region;
use crate::header::{Candidates, FlowRef, Header, Hop, View};
use crate::path_selector::SwitchPathSelector;
use crate::selector::mod_k;
use crate::tag::Tag;

impl SwitchPathSelector {
    /// What a flow's first switch writes on a data packet under CONGA. `to`: index of the packet's last switch, and how many paths lead there.
    #[expect(clippy::cast_possible_truncation, reason = "labels are below Layout::none, 16 bits")]
    pub fn mark(
        &mut self,
        header: &Header,
        to: (u32, impl FnOnce() -> u32),
        candidates: Candidates<'_>,
        mut view: impl View,
        random: &mut impl Rng,
    ) -> Marking {
        let Some(leaf) = &mut self.machines.conga else { return Marking::default() };
        let (last, now) = (to.0, view.now());
        let (flow, payload) = (FlowRef::passing(header.key()), header.payload);
        let report = leaf.report(last, now, random);
        let (stride, ports) = (self.stride, candidates.ports);
        let marking = |label: u16| Marking { label, congestion: 0, report };
        if let Some(hop) = self.runs.kept(flow, now, payload) {
            return marking(hop.tag.bits() as u16);
        }
        let paths = leaf.labels(to.1());
        let home = region(self.hash.of(header), paths as usize) as u16;
        if !self.runs.has_room(flow, now) {
            return marking(home);
        }
        let before = self.runs.before(flow, now).map(|hop| hop.tag.bits() as u16);
        let rounded = |parts| leaf.rounded(parts);
        let port = |label: u16| ports[mod_k::place(u32::from(label), stride, ports.len())];
        let local = |label| rounded(view.utilisation(port(label)));
        let label = leaf.choose((last, paths), before, local, now, random);
        self.count(header.key(), label != home);
        let hop = Hop { port: port(label), tag: Tag::label(u32::from(label)) };
        self.runs.keep(flow, hop, payload, &mut view);
        marking(label)
    }

    /// The congestion of a link under CONGA, given its utilisation.
    #[inline]
    pub fn congestion(&self, utilisation: u64) -> u8 {
        self.machines.conga.as_ref().map_or(0, |leaf| leaf.rounded(utilisation))
    }

    /// What a leaf switch reports to another one, of that index, under CONGA.
    pub fn report_to(&mut self, leaf: u32, now: Time, random: &mut impl Rng) -> Option<Report> {
        self.machines.conga.as_mut()?.report(leaf, now, random)
    }

    /// A packet from a leaf switch of that index brings this one, its last, a report under CONGA.
    pub fn on_report(&mut self, from: u32, report: Report, now: Time) {
        if let Some(leaf) = &mut self.machines.conga {
            leaf.on_report(from, report, now);
        }
    }

    /// A data packet has come from a leaf switch of that index under CONGA.
    pub fn see_marking(&mut self, from: u32, marking: Marking, now: Time) {
        if let Some(leaf) = &mut self.machines.conga {
            leaf.see(from, marking, now);
        }
    }
}

#[cfg(test)]
mod tests {
    use rand_pcg::Pcg64Mcg;

    use super::*;
    use crate::header::Carries;
    use crate::{Routing, Selector, preset};

    const LAST: u32 = 9;

    /// The labels of the flowlets of some flows, each of one packet, at a switch with four paths; only the ports of `loaded` ones are in use.
    fn labels(scheme: &Routing, flowlets: u64, loaded: &[u16]) -> Vec<Vec<u16>> {
        let mut random = Pcg64Mcg::new(3);
        let mut switch = SwitchPathSelector::new(scheme, 1, true, false, &mut random);
        let candidates = Candidates { ports: &[4, 5, 6, 7], set: 0 };
        let gap = scheme.granularity.flowlet().unwrap().gap;
        (0..8)
            .map(|flow| {
                let (tag, carries) = (Tag::default(), Carries::Data);
                let header =
                    Header { src: 1, dst: 2, flow, tag, bytes: 4160, payload: 4096, hops: 1, carries };
                let take = |flowlet: u64| {
                    let now = Time(flowlet * 2 * gap.0);
                    let view = Used(loaded, now);
                    switch.mark(&header, (LAST, || 4), candidates, view, &mut random).label
                };
                (0..flowlets).map(take).collect()
            })
            .collect()
    }

    /// A switch some of whose ports are in full use.
    struct Used<'a>(&'a [u16], Time);

    impl View for Used<'_> {
        fn now(&self) -> Time {
            self.1
        }

        fn load(&mut self, _: u16) -> u64 {
            0
        }

        fn rate(&self, _: u16) -> u64 {
            1
        }

        fn utilisation(&mut self, port: u16) -> u64 {
            if self.0.contains(&port) { 1 << 16 } else { 0 }
        }
    }

    #[test]
    fn a_flow_keeps_its_last_path_while_that_is_among_the_least_congested() {
        let mut scheme = preset::find("conga").unwrap().routing();
        let kept = labels(&scheme, 20, &[]);
        assert!(kept.iter().all(|labels| labels.iter().all(|label| *label == labels[0])), "{kept:?}");
        assert!(kept.iter().any(|labels| labels[0] != kept[0][0]), "flows begin on different paths");
        // Of two paths that are left each flow keeps one, and the others are never taken.
        let kept = labels(&scheme, 20, &[4, 6]);
        assert!(kept.iter().all(|labels| labels.iter().all(|label| *label == labels[0] && label % 2 == 1)));
        let Selector::Conga(conga) = &mut scheme.selector else { unreachable!() };
        conga.keeps = false;
        let drawn = labels(&scheme, 20, &[]);
        assert!(drawn.iter().all(|labels| labels.iter().any(|label| *label != labels[0])), "{drawn:?}");
    }

    #[test]
    fn a_flow_that_goes_on_without_a_gap_stays_where_it_is() {
        let scheme = preset::find("conga").unwrap().routing();
        let mut random = Pcg64Mcg::new(3);
        let mut switch = SwitchPathSelector::new(&scheme, 1, true, false, &mut random);
        let candidates = Candidates { ports: &[4, 5, 6, 7], set: 0 };
        let (tag, carries) = (Tag::default(), Carries::Data);
        let header = Header { src: 1, dst: 2, flow: 3, tag, bytes: 4160, payload: 4096, hops: 1, carries };
        let mut take =
            |view: Used<'_>| switch.mark(&header, (LAST, || 4), candidates, view, &mut random).label;
        let first = take(Used(&[], Time(0)));
        let own = [4 + first];
        assert_eq!(take(Used(&own, Time(1))), first, "its port is in use, but there was no gap");
        assert_ne!(take(Used(&own, Time::from_ms(5))), first);
        assert_eq!(switch.decisions().taken, 2);
    }
}
