//! The main program of the Flowcut artefact.

use netloom_scenario::Problem;
use netloom_units::names::{shorten, suggest};

use super::Converter;

impl Converter {
    /// The Flowcut artefact's hosts have a first window of 1.2 products whatever `-cwnd` says, and hash over labels whatever `-strat` says.
    pub(super) fn flowcut(&mut self) -> Result<(), Problem> {
        self.network(128)?;
        self.matrix("us")?;
        self.draft.text("transport.preset", "flowcut-artefact-ft");
        let mtu = self.flags.number::<u64>("-mtu")?.unwrap_or(2048);
        self.draft.text("transport.mtu", format!("{mtu}B"));
        let scheme = self.flags.word("-routing_sc", "ecmp");
        let gap = self.flags.number::<u64>("-flowlet_value")?;
        let ratio = self.flags.number::<f64>("-rtt_ratio")?.unwrap_or(2.0);
        let alpha = self.flags.number::<f64>("-alpha_flowcut")?.unwrap_or(0.12);
        match scheme.as_str() {
            "ecmp" => self.draft.text("routing.preset", "ecmp"),
            "random" => self.draft.text("routing.preset", "spray-nic"),
            "flowlet" => {
                let gap = gap.ok_or_else(|| {
                    Problem::new(
                        "-flowlet_value",
                        "expected a gap in ps beside -routing_sc flowlet, found none",
                    )
                })?;
                self.draft.text("routing.preset", "letflow");
                self.draft.text("routing.placement", "nic");
                self.draft.text("routing.granularity.gap", format!("{gap}ps"));
            }
            "flowcut" => {
                self.draft.text("routing.preset", "flowcut-artefact-ft");
                self.draft.set("routing.granularity.threshold", format!("{ratio:?}"));
                self.draft.set("routing.granularity.alpha", format!("{alpha:?}"));
            }
            _ => {
                let message =
                    format!("expected ecmp, random, flowlet or flowcut, found \"{}\"", shorten(&scheme));
                let help = suggest(&scheme, ["ecmp", "random", "flowlet", "flowcut"]);
                return Err(Problem::new("-routing_sc", message).help(help));
            }
        }
        match self.flags.number::<u64>("-flowcut_mode")? {
            None | Some(0) => {}
            Some(mode) => {
                let message = format!(
                    "expected 0 (at the NIC), found {mode}: use `routing.preset = \"flowcut-ingress\"` (1) or \"flowcut\" (2)"
                );
                return Err(Problem::new("-flowcut_mode", message));
            }
        }
        if let Some(entropies) = self.flags.number::<u64>("-number_entropies")? {
            self.draft.set("routing.entropy_values", entropies);
        }
        // Bytes; the later one holds.
        let queue = self.flags.number::<u64>("-q")?;
        let queue = self.flags.number::<u64>("-max_queue_size")?.filter(|&bytes| bytes > 0).or(queue);
        if let Some(queue) = queue {
            self.draft.remark(format!("queues of {queue} bytes: they have no limit; this transport is for queues in which nothing is lost"));
        }
        if let Some(every) = self.flags.number::<u64>("-failure_link")?.filter(|&every| every > 0) {
            self.draft.remark(format!("-failure_link {every}: name the slow links in `faults`, as {{ kind = \"degrade\", link_fraction = 0.01, rate_factor = 0.1 }}"));
        }
        if let Some(seed) = self.flags.number::<u64>("-seed")? {
            self.draft.set("seed", seed);
        }
        for unused in [
            "-strat",
            "-cwnd",
            "-conns",
            "-sub",
            "-topology",
            "-interdc_delay",
            "-os_border",
            "-k",
            "-ratio_os_stage_1",
            "-kmin",
            "-kmax",
            "-flowsize",
        ] {
            self.flags.take(unused);
        }
        Ok(())
    }
}
