//! `-strat`: who chooses paths, and how.

use netloom_scenario::Problem;
use netloom_units::names::{shorten, suggest};

use super::flags::Program;
use super::{Converter, Packet, Tree, quoted, table};

impl Converter {
    /// Who chooses paths: `-strat`.
    pub(super) fn balancer(&mut self, packet: Packet, tree: Option<Tree>) -> Result<(), Problem> {
        const NAMES: [&str; 12] = [
            "perm",
            "rand",
            "pull",
            "ecmp",
            "single",
            "ecmp_host",
            "ecmp_rr",
            "ecmp_ar",
            "ecmp_host_ar",
            "ecmp_host_ecn",
            "rr_ecmp",
            "reactive_ecn",
        ];
        if self.program == Program::Swift {
            return self.paths_of_swift();
        }
        let default = match self.program {
            Program::Eqds | Program::Uec => "ecmp_host",
            _ => "",
        };
        let strategy = self.flags.word("-strat", default);
        let labels = self.flags.number::<u64>("-paths")?;
        let entropies = || {
            labels.ok_or_else(|| {
                Problem::new(
                    "-paths",
                    format!("expected a number of paths beside -strat {strategy}, found none"),
                )
            })
        };
        let list = |count: u64, penalty: &str, selector: Option<&str>| {
            let granularity = [("paths", count.to_string()), ("penalty", penalty.to_owned())];
            let mut fields = vec![("preset", quoted(&"path-list")), ("granularity", table(&granularity))];
            fields.extend(selector.map(|selector| ("selector", quoted(&selector))));
            table(&fields)
        };
        // No path is ever left out with such a penalty.
        const NEVER: &str = "1e9";
        let of_tree = tree.map_or(64, |tree| tree.paths);
        let missing = match strategy.as_str() {
            "perm" => {
                self.draft.set("routing", list(of_tree, NEVER, None));
                None
            }
            "pull" => {
                self.draft.set("routing", list(of_tree, "1.25", None));
                self.draft.remark("-strat pull: paths are left out by their share of trims, and for how long it says, not by the first 100 answers and 30%");
                None
            }
            "ecmp_host" if self.program == Program::Uec => {
                self.entropies(labels.unwrap_or(64))?;
                None
            }
            "ecmp" | "ecmp_host" => {
                let count = if self.program == Program::Eqds { labels.unwrap_or(64) } else { entropies()? };
                self.draft.set("routing", list(count, NEVER, Some("random")));
                None
            }
            "rand" => {
                self.draft.text("routing.preset", "spray");
                None
            }
            "single" if self.program != Program::Ndp => {
                self.draft.text("routing.preset", "ecmp");
                None
            }
            "single" => Some("htsim_ndp stops on an assertion with it"),
            "ecmp_rr" => {
                self.draft.text("routing.preset", "spray-round-robin");
                None
            }
            "ecmp_ar" => {
                self.adaptive(packet)?;
                None
            }
            "ecmp_host_ar" => {
                Some("switches that leave the hash's port with a probability of 1/2 have no counterpart")
            }
            "ecmp_host_ecn" | "rr_ecmp" => {
                Some("hosts that leave out labels whose packets were marked have no counterpart")
            }
            "reactive_ecn" => Some("a label per flow that a single mark or trim changes has no counterpart"),
            "" => Some("the program stops without one"),
            _ => {
                let message = format!("expected a strategy of the program, found \"{}\"", shorten(&strategy));
                return Err(Problem::new("-strat", message).help(suggest(&strategy, NAMES)));
            }
        };
        match missing {
            None => Ok(()),
            Some(why) => {
                let message = format!(
                    "expected perm, rand, pull, ecmp, ecmp_host, ecmp_rr or ecmp_ar, found \"{strategy}\": {why}"
                );
                Err(Problem::new("-strat", message))
            }
        }
    }

    /// `ecmp_ar`: by load, per packet or for a while.
    fn adaptive(&mut self, packet: Packet) -> Result<(), Problem> {
        let gap = self.flags.number::<f64>("-ar_sticky_delta")?.unwrap_or(10.0);
        let per_packet =
            self.flags.word("-ar_granularity", if self.program == Program::Roce { "flow" } else { "packet" })
                == "packet";
        let method = self.flags.word("-ar_method", "queue");
        if method != "queue" {
            self.draft.remark(format!("-ar_method {method}: ports are compared by their queues"));
        }
        // Queues in levels of 5, 10 and 20%, as they were up to 100 ns ago.
        let bytes = self.queue.saturating_mul(packet.mtu);
        let levels = [5, 10, 20].map(|share| quoted(&format!("{}B", bytes / 100 * share)));
        let levels = format!("[{}]", levels.join(", "));
        let fields = [("kind", quoted(&"least-loaded")), ("levels", levels), ("refresh", quoted(&"100ns"))];
        if per_packet {
            self.draft.text("routing.preset", "adaptive");
            self.draft.set("routing.granularity.control", "true");
        } else {
            self.draft.text("routing.preset", "flowlet-adaptive");
            self.draft.text("routing.granularity.gap", format!("{gap}us"));
            self.draft.remark("-ar_granularity flow: a flowlet takes the least loaded port, not another one with a probability of 1/2 if that is better");
        }
        self.draft.set("routing.selector", table(&fields));
        Ok(())
    }
}
