//! A switch that reports the loads of its global channels.

use netloom_engine::Scheduler;
use netloom_units::Time;

use crate::ctx::Ctx;
use crate::message::Message;
use crate::protocol::at_hosts::HostProtocol;
use crate::protocol::at_switches::SwitchProtocol;
use crate::protocol::reports::LoadReports;
use crate::protocol::state::AtSwitch;
use crate::switch::Switch;
use crate::switch::view::PortsAt;

impl HostProtocol for LoadReports {}

impl SwitchProtocol for LoadReports {}

impl Switch {
    /// Reports to the group the loads of its global channels at the instants that are due up to `now`.
    #[inline(never)]
    pub(crate) fn report(&mut self, ctx: &mut Ctx<'_, impl Scheduler<Message>>) {
        let Switch { ports, protocols: AtSwitch { reports: Some(reports), .. }, .. } = self else { return };
        while let Some(instant) = reports.due(ctx.now) {
            ports.advance(instant, &ctx.world.rules, &mut ctx.wire());
            reports.look(&mut PortsAt { ports, reports: None, ctx: ctx.at(instant) });
            reports.send_changes(instant, |port| ports.is_cut(port, instant), ctx.out);
        }
    }

    /// [`Self::advance`] of a switch that reports, which is scheduled for the next instant at which it may have to report.
    #[inline(never)]
    pub(crate) fn advance_and_report(&mut self, ctx: &mut Ctx<'_, impl Scheduler<Message>>) -> Option<Time> {
        self.report(&mut ctx.at(ctx.now.saturating_sub(Time(1))));
        let Switch { ports, protocols: AtSwitch { reports: Some(reports), .. }, .. } = self else {
            return None;
        };
        let next = ports.advance(ctx.now, &ctx.world.rules, &mut ctx.wire());
        let mut view = PortsAt { ports, reports: None, ctx: ctx.again() };
        [next, reports.next_look(&mut view)].into_iter().flatten().min()
    }
}
