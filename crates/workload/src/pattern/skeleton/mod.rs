//! Communication skeletons of applications.

mod application;
mod grid;
mod script;

pub use application::Application;

use netloom_units::{Bytes, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use self::script::Script;
use crate::WorkloadError;
use crate::plan::{Plan, Setting};
use crate::program::build_all;

/// The communication skeleton of an application: iterations of its typical exchanges and of calculation, not a trace of it. Applications
/// and message sizes are those of the comparison of CEE-based switch adaptive routing (Crisan, Gusat, Minkenberg; Table II), whose traces
/// are not public.
///
/// Messages of 4,000 B and more are announced and cleared first, by messages of 16 B (rendezvous): the listed mean of FT and LISO, whose
/// data messages are all alike, is a third of the listed maximum, which is what counting announcements and clearances gives, and the means
/// of BT and CG agree with it too. Only that of MG does not: its messages, the receives of which are posted long before, are sent at once.
///
/// A program, as `collective` describes it. `scale = "table-ii"` multiplies the sizes by the factors of Table II; mean and maximum are then
/// those listed there (NAMD and Airbus are not listed).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Skeleton {
    /// Which application: `bt`, `cg`, `ft`, `is`, `mg` (NAS), `liso`, `wrf`, `namd`, `airbus`.
    pub application: Application,
    /// What sizes are multiplied by: a number, or `table-ii` for the factor of the paper (BT, CG, LISO 10, FT 30, MG and
    /// WRF 100, IS 1000).
    pub scale: Scale,
    /// How often calculation and exchanges are repeated.
    pub iterations: u32,
    /// Calculation of every rank after the exchanges of an iteration. If not given, half of the time that the rank's
    /// link needs for what the rank sends in an iteration: without any congestion two thirds of the run are
    /// communication.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub compute: Option<Time>,
    /// CPU time of every send and receive.
    pub overhead: Time,
}

/// What the sizes of a skeleton are multiplied by.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Scale {
    /// This.
    Factor(f64),
    /// The factor of a table.
    Listed(ScaleTable),
}

/// A table of factors.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ScaleTable {
    /// Table II of the comparison of CEE-based switch adaptive routing.
    TableIi,
}

impl Default for Skeleton {
    fn default() -> Self {
        Skeleton {
            application: Application::Cg,
            scale: Scale::Factor(1.0),
            iterations: 10,
            compute: None,
            overhead: Time::ZERO,
        }
    }
}

impl Skeleton {
    pub(super) fn build(&self, setting: &Setting) -> Result<Plan, WorkloadError> {
        if self.iterations == 0 {
            return Err(WorkloadError::parameter("iterations", "at least 1", 0));
        }
        let (factor, ranks) = (self.factor()?, setting.ranks());
        let program = build_all(ranks, self.iterations, self.overhead, |rank| {
            let mut script = Script::new(factor, self.application != Application::Mg);
            self.application.iteration(ranks, rank, &mut script);
            script.compute(|sent: Bytes| {
                let host = setting.placed[rank as usize];
                self.compute.unwrap_or_else(|| setting.endpoints.rate(host).serialize(sent) / 2)
            })
        });
        let program = program.map_err(|problem| WorkloadError::parameter("iterations", "fewer", problem))?;
        Ok(setting.run(program))
    }

    fn factor(&self) -> Result<f64, WorkloadError> {
        match self.scale {
            Scale::Factor(factor) if factor > 0.0 && factor <= 1e6 => Ok(factor),
            Scale::Factor(factor) => {
                Err(WorkloadError::parameter("scale", "a number above 0 and at most 1e6", factor))
            }
            Scale::Listed(ScaleTable::TableIi) => match self.application.table_ii() {
                Some((factor, ..)) => Ok(factor),
                None => Err(WorkloadError::parameter(
                    "scale",
                    "a number, as the application is not in Table II",
                    "table-ii",
                )),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pattern::tests::{network, plan};
    use crate::program::testing::{Event, execute};
    use crate::{Pattern, Workload};

    const LISTED: [Application; 7] = [
        Application::Bt,
        Application::Cg,
        Application::Ft,
        Application::Is,
        Application::Liso,
        Application::Mg,
        Application::Wrf,
    ];

    /// Number, sum and maximum of the messages' sizes, and when the run ends.
    fn run(skeleton: Skeleton, ranks: u32) -> (u64, u64, u64, Time) {
        let mut plan = plan(Workload::new(Pattern::Skeleton(skeleton)), &network(ranks, ranks), 1).unwrap();
        let (mut number, mut sum, mut max) = (0, 0, 0);
        let end = execute(&mut plan, 1, Time::from_us(1), |_, _, event| {
            if let Event::Sent { bytes: Bytes(bytes), .. } = event {
                (number, sum, max) = (number + 1, sum + bytes, max.max(bytes));
            }
        });
        assert!(plan.hosts.iter().all(|host| host.is_finished()));
        assert_eq!(plan.total_messages, Some(number));
        (number, sum, max, end)
    }

    fn skeleton(application: Application) -> Skeleton {
        Skeleton { application, iterations: 1, ..Default::default() }
    }

    #[test]
    fn mean_and_largest_message_are_those_of_table_ii() {
        for application in LISTED {
            let (factor, mean, max) = application.table_ii().unwrap();
            let listed = Scale::Listed(ScaleTable::TableIi);
            for (ranks, scale, factor) in
                [(64, Scale::Factor(1.0), 1.0), (128, listed, factor), (256, Scale::Factor(1.0), 1.0)]
            {
                let (number, sum, largest, _) = run(Skeleton { scale, ..skeleton(application) }, ranks);
                let found = sum as f64 / number as f64 / factor;
                assert!((found / mean - 1.0).abs() < 0.04, "{application:?} {ranks}: {found} for {mean}");
                let found = largest as f64 / factor;
                assert!(
                    (found / max as f64 - 1.0).abs() < 0.001,
                    "{application:?} {ranks}: {found} for {max}"
                );
            }
        }
    }

    #[test]
    fn every_skeleton_ends_whatever_the_number_of_ranks() {
        for application in LISTED.into_iter().chain([Application::Namd, Application::Airbus]) {
            for ranks in (2..=40).step_by(3) {
                let once = run(skeleton(application), ranks).0;
                let thrice = run(Skeleton { iterations: 3, ..skeleton(application) }, ranks).0;
                assert_eq!(thrice, 3 * once);
            }
        }
    }

    #[test]
    fn calculation_takes_half_as_long_as_sending_or_what_it_is_given() {
        // Six messages of 12,100 B with their announcements, and six clearances, at 100 Gb/s.
        let ((.., default), (.., given)) = (
            run(skeleton(Application::Liso), 64),
            run(Skeleton { compute: Some(Time::from_ms(1)), ..skeleton(Application::Liso) }, 64),
        );
        let calculation = Time((6 * (12_100 + 32) * 80) / 2);
        assert!(default > calculation && default <= calculation + Time::from_us(3), "{default}");
        assert!(given > Time::from_ms(1) && given <= Time::from_ms(1) + Time::from_us(3), "{given}");
    }

    #[test]
    fn a_scale_is_a_number_or_that_of_the_table() {
        let read = |text: &str| toml::from_str::<Skeleton>(text);
        assert_eq!(read("scale = 2.5").unwrap().scale, Scale::Factor(2.5));
        assert_eq!(read("scale = 2").unwrap().scale, Scale::Factor(2.0));
        assert_eq!(read("scale = \"table-ii\"").unwrap().scale, Scale::Listed(ScaleTable::TableIi));
        assert!(read("scale = \"table-iii\"").is_err());
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        for wrong in [
            Skeleton { iterations: 0, ..Default::default() },
            Skeleton { scale: Scale::Factor(0.0), ..Default::default() },
            Skeleton { scale: Scale::Factor(f64::NAN), ..Default::default() },
            Skeleton { scale: Scale::Listed(ScaleTable::TableIi), ..skeleton(Application::Namd) },
        ] {
            assert!(plan(Workload::new(Pattern::Skeleton(wrong)), &network(4, 4), 1).is_err());
        }
    }
}
