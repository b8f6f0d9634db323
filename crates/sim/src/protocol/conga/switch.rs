//! CONGA at switches: labels at a packet's first switch, congestion collected along its path, and feedback between leaves.

use netloom_engine::Scheduler;
use netloom_fabric::{At, Packet, PortQueue};
use netloom_routing::selector::conga::{Conga as Config, Counts, Feedback, Marking};
use netloom_routing::{Candidates, FlowKey};
use netloom_topology::PortId;

use crate::ctx::Ctx;
use crate::message::Message;
use crate::path::labels;
use crate::protocol::at_hosts::HostProtocol;
use crate::protocol::at_switches::{Route, SwitchProtocol, TagReading};
use crate::protocol::conga::Conga;
use crate::protocol::is_of_host;
use crate::switch::Switch;
use crate::switch::next_hop_cache::NextHopHint;
use crate::switch::view::{PortsAt, header_of, payload_of};
use crate::world::World;

impl HostProtocol for Conga {}

impl SwitchProtocol for Conga {
    fn reads(world: &World) -> Option<TagReading> {
        // Others than data go by the header's hash, in which there is no path.
        world
            .routing
            .conga()
            .map(|conga| TagReading { label: Some(conga.layout().label(u32::MAX)), hashed: 0 })
    }

    #[inline(always)]
    fn route(
        switch: &mut Switch,
        ctx: &mut Ctx<'_, impl Scheduler<Message>>,
        packet: &mut Packet,
        hint: NextHopHint,
    ) -> Route {
        let Some(conga) = ctx.world.routing.conga() else { return Route::Open };
        let ends = match switch.row.has_hosts() {
            true => [packet.src, packet.dst].map(|host| switch.is_edge_of(ctx.world, host)),
            false => [false; 2],
        };
        Route::To(match (ends, packet.is_data()) {
            ([false, false], true) => switch.pass_on(ctx, conga, packet, hint),
            // Nothing of it is read or written.
            ([false, false], false) => switch.leaving(ctx, packet, 0, hint),
            // Between two hosts of one leaf there is nothing to choose and nothing to report.
            ([true, true], _) => switch.leaving(ctx, packet, packet.tag, hint),
            ([true, false], true) => switch.set_out(&mut ctx.again(), conga, packet, hint),
            ([true, false], false) => switch.set_out_beside_data(&mut ctx.again(), conga, packet, hint),
            ([false, true], _) => switch.come_in(&mut ctx.again(), conga, packet, hint),
        })
    }
}

impl Switch {
    /// How a data packet leaves its first switch, which writes the label of its path on it.
    #[inline(never)]
    fn set_out(
        &mut self,
        ctx: &mut Ctx<'_, impl Scheduler<Message>>,
        config: &Config,
        packet: &mut Packet,
        hint: NextHopHint,
    ) -> PortQueue {
        let (mut marking, port) = self.mark(ctx, packet, hint);
        marking.raise(self.congestion_at(ctx, config, port, packet));
        packet.tag = marking.bits(config.layout());
        self.ports.port_queue(port, packet, &ctx.world.rules)
    }

    /// The same of any other packet, which can carry a report. Hosts' own tags are no markings.
    #[inline(never)]
    fn set_out_beside_data(
        &mut self,
        ctx: &mut Ctx<'_, impl Scheduler<Message>>,
        config: &Config,
        packet: &mut Packet,
        hint: NextHopHint,
    ) -> PortQueue {
        let mut marking = Marking::default();
        if tells(config, packet) {
            let last = ctx.world.forwarding.table().edge_of(packet.dst);
            let Switch { path_selector, draws, .. } = self;
            marking.report = path_selector.report_to(last, ctx.now, draws);
        }
        let to = self.leaving(ctx, packet, 0, hint);
        packet.tag = marking.bits(config.layout());
        to
    }

    /// How a packet leaves its last switch, which learns from it.
    #[inline(never)]
    fn come_in(
        &mut self,
        ctx: &mut Ctx<'_, impl Scheduler<Message>>,
        config: &Config,
        packet: &mut Packet,
        hint: NextHopHint,
    ) -> PortQueue {
        let (layout, is_data) = (config.layout(), packet.is_data());
        let marking = Marking::from_bits(packet.tag, layout);
        if tells(config, packet) {
            let first = ctx.world.forwarding.table().edge_of(packet.src);
            if is_data {
                self.path_selector.see_marking(first, marking, ctx.now);
            }
            if let Some(report) = marking.report {
                self.path_selector.on_report(first, report, ctx.now);
            }
        }
        let to = self.leaving(ctx, packet, if is_data { marking.label.into() } else { 0 }, hint);
        packet.tag = marking.bits(layout);
        to
    }

    /// How a data packet leaves a switch between its first and its last one, where nothing but its congestion is read or written.
    #[inline(always)]
    fn pass_on(
        &mut self,
        ctx: &mut Ctx<'_, impl Scheduler<Message>>,
        config: &Config,
        packet: &mut Packet,
        hint: NextHopHint,
    ) -> PortQueue {
        let layout = config.layout();
        let to = self.leaving(ctx, packet, layout.label(packet.tag), hint);
        packet.tag = layout.raise(packet.tag, self.congestion_at(ctx, config, to.port(), packet));
        to
    }

    /// The congestion of the link through a port by which a data packet is going to leave.
    #[inline(always)]
    fn congestion_at(
        &mut self,
        ctx: &mut Ctx<'_, impl Scheduler<Message>>,
        config: &Config,
        port: PortId,
        packet: &Packet,
    ) -> u8 {
        let (now, rules, wire) = (ctx.now, &ctx.world.rules, &mut ctx.wire());
        let utilisation = match config.counts {
            Counts::Routed => self.ports.utilisation_with(packet, port, At::new(now, rules, wire)),
            Counts::Sent => self.ports.utilisation(port, now, rules, wire),
        };
        self.path_selector.congestion(utilisation)
    }

    /// What a data packet's first switch writes on it, and the port by which it leaves.
    #[inline(always)]
    fn mark(
        &mut self,
        ctx: &mut Ctx<'_, impl Scheduler<Message>>,
        packet: &mut Packet,
        hint: NextHopHint,
    ) -> (Marking, PortId) {
        let world = ctx.world;
        let table = world.epochs.forwarding(self.epoch, &world.forwarding).table();
        let Switch { ports, path_selector, draws, row, .. } = self;
        // Without a hint it is not known whether it has a choice.
        let several = hint.set().map(|set| Candidates { ports: table.set(*row, set), set });
        let candidates = || several.unwrap_or_else(|| table.candidates_in_row(*row, packet.dst));
        let has_choice = several.is_some() || candidates().ports.len() > 1;
        let paths = || labels(&world.network, table, packet.src, packet.dst);
        let view = PortsAt { ports, reports: None, ctx: ctx.again() };
        let flow = FlowKey { src: packet.src, flow: packet.flow };
        let of = (flow, payload_of(world, packet));
        let last = table.edge_of(packet.dst);
        let header = || header_of(world, packet);
        let (marking, port) = path_selector.mark((of, header), (last, paths), candidates, view, draws);
        if has_choice {
            packet.note_port(port);
        }
        (marking, port)
    }
}

/// Whether a packet carries feedback. What switches make has no first switch that could give it a report.
fn tells(config: &Config, packet: &Packet) -> bool {
    let carries = packet.is_data() || config.feedback == Feedback::All;
    carries && is_of_host(packet.kind)
}
