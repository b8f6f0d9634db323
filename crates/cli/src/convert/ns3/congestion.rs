//! The congestion controls: `CC_MODE`.

use netloom_scenario::Problem;
use netloom_units::Rate;

use super::{Converter, quoted, table};
use crate::convert::standalone;

impl Converter {
    pub(super) fn dcqcn(&mut self, irn: bool, window: bool, var_window: bool) -> Result<(), Problem> {
        let config = &self.config;
        let preset = if self.is_conweave { "conweave" } else { "hpcc" };
        let mut fields = vec![("kind", quoted(&"dcqcn")), ("preset", quoted(&preset))];
        for (key, field) in [
            ("ALPHA_RESUME_INTERVAL", "alpha_timer"),
            ("RATE_DECREASE_INTERVAL", "cut_timer"),
            ("RP_TIMER", "increase_timer"),
        ] {
            fields.extend(config.microseconds(key)?.map(|time| (field, time)));
        }
        fields.extend(config.word::<f64>("EWMA_GAIN", "a number")?.map(|gain| ("g", format!("{gain:?}"))));
        let cycles = config.word::<u32>("FAST_RECOVERY_TIMES", "a number")?;
        fields.extend(cycles.map(|cycles| ("fast_recovery", cycles.to_string())));
        for (key, field) in [("RATE_AI", "r_ai"), ("RATE_HAI", "r_hai"), ("MIN_RATE", "min_rate")] {
            fields.extend(config.rate(key)?.map(|(_, rate)| (field, rate)));
        }
        fields.extend(config.flag("CLAMP_TARGET_RATE")?.map(|clamp| ("clamp_target", clamp.to_string())));
        // IRN has a window of its own.
        if window || irn {
            fields.push(("window_bdp", "1.0".to_owned()));
        }
        if window && var_window {
            self.draft.remark("VAR_WIN 1: the window stays as it is when the rate falls");
        }
        self.draft.set("transport.congestion", table(&fields));
        Ok(())
    }

    /// DCQCN that no packet is ever marked for sends at the line's rate.
    pub(super) fn without_marks(&mut self, window: bool) {
        if window {
            let fields = [("kind", quoted(&"fixed-window")), ("bdp", "1.0".to_owned())];
            self.draft.set("transport.congestion", table(&fields));
        } else {
            self.draft.text("transport.congestion", "none");
        }
        if self.is_conweave {
            self.draft.remark("ENABLE_QCN 0: NACKs, which count as congestion there, cut no rate");
        }
    }

    pub(super) fn hpcc(&mut self, global: bool, window: bool, var_window: bool) -> Result<(), Problem> {
        let config = &self.config;
        let eta = config.word("U_TARGET", "a number")?.unwrap_or(0.95);
        let stages: u32 = config.word("MI_THRESH", "a number")?.unwrap_or(5);
        let mut fields =
            vec![("kind", quoted(&"hpcc")), ("eta", format!("{eta:?}")), ("max_stage", stages.to_string())];
        if global {
            let longest = standalone::longest_base_rtt(&self.network, self.payload);
            fields.push(("base_rtt", format!("\"{longest}ns\"")));
        }
        if let Some((step, _)) = config.rate("RATE_AI")? {
            // There a step is a rate; here it is the number of steps that what the target leaves of the line's rate is divided into.
            let line =
                (0..self.network.hosts()).map(|host| self.network.host_rate(host)).max().unwrap_or(Rate(0));
            let flows = (1.0 - eta) * line.0 as f64 / step;
            let whole = flows.round().max(1.0);
            if (flows - whole).abs() > 1e-6 * flows {
                self.draft.remark(format!(
                    "RATE_AI: the step is {:.4} of it, as `flows` is a whole number",
                    flows / whole
                ));
            }
            fields.push(("flows", format!("{whole}")));
        }
        fields.extend(config.rate("MIN_RATE")?.map(|(_, rate)| ("min_rate", rate)));
        for (key, usual, otherwise) in [
            ("FAST_REACT", 1, "every ACK moves the window"),
            ("INT_MULTI", 1, "telemetry is exact"),
            ("MULTI_RATE", 0, "a flow has one rate, that of its fullest link"),
            ("SAMPLE_FEEDBACK", 0, "every ACK carries telemetry"),
        ] {
            if let Some(value) = config.word::<u32>(key, "a number")?
                && value != usual
            {
                self.draft.remark(format!("{key} {value}: {otherwise}"));
            }
        }
        for (key, is_so) in [("HAS_WIN", window), ("VAR_WIN", var_window)] {
            if !is_so {
                self.draft.remark(format!("{key} 0: a flow has a window, which HPCC sets"));
            }
        }
        self.draft.set("transport.congestion", table(&fields));
        Ok(())
    }

    pub(super) fn timely(&mut self, window: bool) -> Result<(), Problem> {
        let mut fields = vec![("kind", quoted(&"timely"))];
        let step = self.config.rate("RATE_AI")?;
        let hyper = self.config.rate("RATE_HAI")?;
        if let (Some((step, _)), Some((hyper, _))) = (&step, &hyper)
            && *hyper != 5.0 * step
        {
            self.draft.remark("RATE_HAI: five steps in a row make the step five times RATE_AI");
        }
        fields.extend(step.map(|(_, rate)| ("step", rate)));
        fields.extend(self.config.rate("MIN_RATE")?.map(|(_, rate)| ("min_rate", rate)));
        if window {
            self.draft.remark("HAS_WIN 1: a rate alone bounds what TIMELY sends");
        }
        self.draft.set("transport.congestion", table(&fields));
        Ok(())
    }

    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a rate, which is not negative; saturates, in a remark"
    )]
    pub(super) fn dctcp(&mut self) -> Result<(), Problem> {
        let mut fields = vec![("kind", quoted(&"dctcp"))];
        let gain = self.config.word::<f64>("EWMA_GAIN", "a number")?;
        fields.extend(gain.map(|gain| ("g", format!("{gain:?}"))));
        self.draft.set("transport.congestion", table(&fields));
        if let Some((rate, _)) = self.config.rate("DCTCP_RATE_AI")? {
            let rate = Rate(rate as u64);
            self.draft.remark(format!("DCTCP_RATE_AI {rate}: DCTCP has a window here, which a round trip makes a packet larger, and slow start"));
        }
        Ok(())
    }
}
