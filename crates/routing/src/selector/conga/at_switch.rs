//! CONGA's steps at a switch.

use netloom_topology::PortId;
use netloom_units::Time;
use rand::Rng;

use super::{Marking, Report};
use crate::hash::region;
use crate::header::{Candidates, FlowKey, FlowRef, Header, Hop, View};
use crate::path_selector::SwitchPathSelector;
use crate::selector::mod_k;
use crate::tag::Tag;

impl SwitchPathSelector {
    /// What a flow's first switch writes on a data packet under CONGA, and the port by which the packet leaves, given its flow and its payload in bytes. `to`: index of the packet's last switch, and
    /// how many paths lead there. Its header and the ports that it may take are asked for only where a run begins.
    #[inline(always)]
    #[expect(clippy::cast_possible_truncation, reason = "labels are below Layout::none, 16 bits")]
    pub fn mark<'c>(
        &mut self,
        ((key, payload), header): ((FlowKey, u32), impl FnOnce() -> Header),
        to: (u32, impl FnOnce() -> u32),
        candidates: impl FnOnce() -> Candidates<'c>,
        view: impl View,
        random: &mut impl Rng,
    ) -> (Marking, PortId) {
        let now = view.now();
        let report = self.machines.conga.as_mut().and_then(|leaf| leaf.report(to.0, now, random));
        let (label, port) = match self.runs.kept(FlowRef::passing(key), now, payload) {
            Some(hop) => (hop.tag.bits() as u16, hop.port),
            None => self.begin_labelled(&header(), (to.0, to.1()), candidates(), view, random),
        };
        (Marking { label, congestion: 0, report }, port)
    }

    /// The label and the port of a data packet that continues no run of its flow. `last`: index of the packet's last switch, and how many paths lead there.
    #[inline(never)]
    #[expect(clippy::cast_possible_truncation, reason = "labels are below Layout::none, 16 bits")]
    fn begin_labelled(
        &mut self,
        header: &Header,
        (last, paths): (u32, u32),
        candidates: Candidates<'_>,
        mut view: impl View,
        random: &mut impl Rng,
    ) -> (u16, PortId) {
        let (stride, ports) = (self.stride, candidates.ports);
        let port = |label: u16| ports[mod_k::place(u32::from(label), stride, ports.len())];
        let Some(leaf) = &self.machines.conga else { return (0, port(0)) };
        let (flow, now, payload) = (FlowRef::passing(header.key()), view.now(), header.payload);
        let paths = leaf.labels(paths);
        let home = region(self.hash.of(header), paths as usize) as u16;
        if !self.runs.has_room(flow, now) {
            return (home, port(home));
        }
        let before = self.runs.before(flow, now).map(|hop| hop.tag.bits() as u16);
        let local = |label| leaf.rounded(view.utilisation(port(label)));
        let label = leaf.choose((last, paths), before, local, now, random);
        self.count(header.key(), label != home);
        let hop = Hop { port: port(label), tag: Tag::label(u32::from(label)) };
        self.runs.keep(flow, hop, payload, &mut view);
        (label, hop.port)
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

    fn label_of(
        switch: &mut SwitchPathSelector,
        header: Header,
        candidates: Candidates<'_>,
        view: Used<'_>,
        random: &mut Pcg64Mcg,
    ) -> u16 {
        let of = (header.key(), header.payload);
        switch.mark((of, || header), (LAST, || 4), || candidates, view, random).0.label
    }

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
                    label_of(&mut switch, header, candidates, view, &mut random)
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
        let mut take = |view: Used<'_>| label_of(&mut switch, header, candidates, view, &mut random);
        let first = take(Used(&[], Time(0)));
        let own = [4 + first];
        assert_eq!(take(Used(&own, Time(1))), first, "its port is in use, but there was no gap");
        assert_ne!(take(Used(&own, Time::from_ms(5))), first);
        assert_eq!(switch.decisions().taken, 2);
    }
}
