//! CONGA at switches: labels at a packet's first switch, congestion collected along its path, and feedback between leaves.

use netloom_engine::Scheduler;
use netloom_fabric::{At, Packet};
use netloom_routing::selector::conga::{Conga as Config, Counts, Feedback, Marking};
use netloom_topology::PortId;

use crate::ctx::Ctx;
use crate::message::Message;
use crate::path::labels;
use crate::protocol::at_hosts::HostProtocol;
use crate::protocol::at_switches::{Route, SwitchProtocol};
use crate::protocol::conga::Conga;
use crate::protocol::declaration::Origin;
use crate::protocol::facts;
use crate::switch::Switch;
use crate::switch::view::{PortsAt, header_of};

impl HostProtocol for Conga {}

impl SwitchProtocol for Conga {
    #[inline(always)]
    fn route(switch: &mut Switch, ctx: &mut Ctx<'_, impl Scheduler<Message>>, packet: &mut Packet) -> Route {
        match ctx.world.routing.conga() {
            Some(conga) => Route::Port(switch.on_conga_packet(ctx, conga, packet)),
            None => Route::Open,
        }
    }
}

impl Switch {
    /// The port of a packet, and the feedback that it carries from leaf to leaf.
    pub(crate) fn on_conga_packet(
        &mut self,
        ctx: &mut Ctx<'_, impl Scheduler<Message>>,
        config: &Config,
        packet: &mut Packet,
    ) -> PortId {
        let layout = config.layout();
        let (is_first, is_last) =
            (self.is_edge_of(ctx.world, packet.src), self.is_edge_of(ctx.world, packet.dst));
        let is_data = packet.kind.is_data();
        // What switches make has no first switch that could give it a report.
        let is_of_host = facts(packet.kind).origin == Origin::Host;
        let tells = is_of_host && (is_data || config.feedback == Feedback::All);
        // Between two hosts of one leaf there is nothing to choose and nothing to report.
        if is_first && is_last {
            return self.choose_quickly(ctx, packet);
        }
        if !is_first && !is_last {
            return self.pass_on(ctx, config, packet);
        }
        let table = ctx.world.forwarding.table();
        let mut marking = match is_first {
            true if is_data => self.mark(ctx, packet),
            true if tells => {
                let Switch { path_selector, draws, .. } = self;
                let report = path_selector.report_to(table.edge_of(packet.dst), ctx.now, draws);
                Marking { report, ..Marking::default() }
            }
            // Hosts' own tags are no markings.
            true => Marking::default(),
            false => Marking::from_bits(packet.tag, layout),
        };
        if is_last && tells {
            let first = table.edge_of(packet.src);
            if is_data {
                self.path_selector.see_marking(first, marking, ctx.now);
            }
            if let Some(report) = marking.report {
                self.path_selector.on_report(first, report, ctx.now);
            }
        }
        // Others than data go by the header's hash, in which there is no path.
        packet.tag = if is_data { u32::from(marking.label) } else { 0 };
        let port = self.choose_quickly(ctx, packet);
        if is_data && !is_last {
            marking.raise(self.congestion_at(ctx, config, port, packet));
        }
        packet.tag = marking.bits(layout);
        port
    }

    /// The port of a packet between its first and its last switch, where nothing but its congestion is read or written.
    fn pass_on(
        &mut self,
        ctx: &mut Ctx<'_, impl Scheduler<Message>>,
        config: &Config,
        packet: &mut Packet,
    ) -> PortId {
        let written = packet.tag;
        let is_data = packet.kind.is_data();
        packet.tag = if is_data { config.layout().label(written) } else { 0 };
        let port = self.choose_quickly(ctx, packet);
        packet.tag = match is_data {
            true => config.layout().raise(written, self.congestion_at(ctx, config, port, packet)),
            false => written,
        };
        port
    }

    /// The congestion of the link through a port by which a data packet is going to leave.
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

    /// What a data packet's first switch writes on it.
    pub(crate) fn mark(&mut self, ctx: &mut Ctx<'_, impl Scheduler<Message>>, packet: &Packet) -> Marking {
        let world = ctx.world;
        let table = world.epochs.forwarding(self.epoch, &world.forwarding).table();
        let candidates = table.candidates_in_row(self.row, packet.dst);
        let paths = || labels(&world.network, table, packet.src, packet.dst);
        let Switch { ports, path_selector, draws, .. } = self;
        let view = PortsAt { ports, reports: None, ctx: ctx.again() };
        let last = table.edge_of(packet.dst);
        path_selector.mark(&header_of(world, packet), (last, paths), candidates, view, draws)
    }
}
