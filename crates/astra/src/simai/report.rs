//! SimAI's table of layers, `EndToEnd.csv`.

use std::borrow::Cow;
use std::fmt::Write;

use super::{Group, Pass, SimAi};
use crate::system::Operation;

/// What rank 0 spent at a layer, by pass, in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct LayerTimes {
    pub(crate) compute: [u64; 3],
    /// Waiting for communication.
    pub(crate) exposed: [u64; 3],
    /// From issuing an operation to its end.
    pub(crate) total: [u64; 3],
}

impl LayerTimes {
    /// How many numbers it has.
    pub(crate) const NUMBERS: usize = 9;

    /// All of them.
    pub(crate) fn numbers(&self) -> [u64; Self::NUMBERS] {
        let LayerTimes { compute: [a, b, c], exposed: [d, e, f], total: [g, h, i] } = *self;
        [a, b, c, d, e, f, g, h, i]
    }

    /// Adds to each of them.
    pub(crate) fn add(&mut self, added: &[u64]) {
        let LayerTimes { compute, exposed, total } = self;
        let all = compute.iter_mut().chain(exposed).chain(total);
        all.zip(added).for_each(|(sum, added)| *sum += added);
    }
}

/// The order of passes in the table: forward, weights, input.
const COLUMNS: [usize; 3] = [0, 2, 1];

/// The name of the run in the table.
const RUN: &str = "netloom";

#[expect(clippy::cast_precision_loss, reason = "as SimAI calculates")]
fn microseconds(ns: u64) -> f64 {
    ns as f64 / 1000.0
}

/// A number as C prints it.
fn number(value: f64) -> String {
    match value.is_nan() {
        true => "nan".to_owned(),
        false => format!("{value:.6}"),
    }
}

/// A field of a table, between quotation marks if it has a character that would end it.
fn quoted(field: &str) -> Cow<'_, str> {
    match field.contains([',', '"']) {
        true => format!("\"{}\"", field.replace('"', "\"\"")).into(),
        false => field.into(),
    }
}

/// The table, as SimAI's ns-3 front end writes it: times in microseconds, bandwidths in GiB/s.
pub(super) fn csv(step: &SimAi, times: &[LayerTimes], finished: u64) -> String {
    let file = &step.file;
    let data = file.all_gpus.unwrap_or(step.ranks()) / file.tensor.saturating_mul(file.pipeline);
    let mut rows = format!(
        "layer_name,{RUN},fwd compute,wg compute,ig compute,fwd exposed comm,wg exposed comm,ig exposed comm,fwd total comm,algbw,busbw,\
         wg total comm,algbw,busbw,ig total comm,algbw,busbw,workload finished at\n"
    );
    let mut sums = LayerTimes::default();
    let (mut of_groups, mut pre_bubble) = ([0u64; 4], 0u64);
    for (layer, times) in file.layers.iter().zip(times) {
        let _ = write!(rows, "{},{RUN}", quoted(&layer.name));
        for values in [times.compute, times.exposed] {
            for pass in COLUMNS {
                let _ = write!(rows, ",{}", number(microseconds(values[pass])));
            }
        }
        for pass in COLUMNS {
            let of = &layer.passes[pass];
            let ranks = match (pass, of.group) {
                (2, Group::DataOfExperts) => data / file.expert,
                (2, _) => data,
                (_, Group::Expert) => file.expert,
                _ => file.tensor,
            };
            let (algorithm, bus) = bandwidths(of, ranks, times.total[pass]);
            let total = microseconds(times.total[pass]);
            let _ = write!(rows, ",{},{},{}", number(total), number(algorithm), number(bus));
        }
        let _ = writeln!(rows, ",{}", number(microseconds(finished)));
        let inner = times.exposed[0].saturating_add(times.exposed[1]);
        let add = |sum: &mut u64, ns: u64| *sum = sum.saturating_add(ns);
        let of_weights = usize::from(layer.passes[2].group == Group::DataOfExperts);
        add(&mut of_groups[of_weights], times.exposed[2]);
        let of_layer = 2 + usize::from(layer.passes[0].group == Group::Expert);
        add(&mut of_groups[of_layer], inner);
        if &*layer.name != "embedding_layer" {
            add(&mut pre_bubble, inner);
            times.compute.iter().for_each(|&ns| add(&mut pre_bubble, ns));
        }
        for pass in COLUMNS {
            add(&mut sums.compute[pass], times.compute[pass]);
            add(&mut sums.exposed[pass], times.exposed[pass]);
            add(&mut sums.total[pass], times.total[pass]);
        }
    }
    let of = |values: [u64; 3]| COLUMNS.map(|pass| number(microseconds(values[pass])));
    let ([c0, c1, c2], [e0, e1, e2], [t0, t1, t2]) = (of(sums.compute), of(sums.exposed), of(sums.total));
    let _ = writeln!(
        rows,
        "SUM,{RUN},{c0},{c1},{c2},{e0},{e1},{e2},{t0},NONE,NONE,{t1},NONE,NONE,{t2},NONE,NONE"
    );
    let compute = sums.compute.iter().fold(0u64, |sum, &ns| sum.saturating_add(ns));
    let (compute, total) = (microseconds(compute), microseconds(finished));
    let exposed = total - compute;
    let _ = writeln!(
        rows,
        "total exposed comm,{},total comp,{},total time,{}",
        number(exposed),
        number(compute),
        number(total)
    );
    let share = |value: f64| format!("{value:.0} ({:.2}%)", value / total * 100.0);
    let stages =
        f64::from(file.pipeline - 1) / (f64::from(file.micro_batches) * f64::from(file.virtual_stages));
    let bubble = microseconds(pre_bubble) * stages;
    let groups = of_groups.map(|ns| share(microseconds(ns))).join(", ");
    // Messages between stages are not simulated.
    let pipeline = if file.pipeline == 1 { share(0.0) } else { "NONE".to_owned() };
    format!(
        "File name, Expose DP comm, Expose DP_EP comm, Expose TP comm, Expose_EP_comm, Expose_PP_comm, bubble time, total comp, total exposed comm, Total time\n\
         {RUN}, {groups}, {pipeline}, {}, {}, {}, {total:.0}\n{rows}",
        share(bubble),
        share(compute),
        share(exposed)
    )
}

/// Algorithm and bus bandwidth of an operation, in GiB/s.
#[expect(clippy::cast_precision_loss, reason = "as SimAI calculates")]
fn bandwidths(pass: &Pass, ranks: u32, total: u64) -> (f64, f64) {
    let algorithm = pass.bytes as f64 / microseconds(total) * 1e6 / f64::from(1u32 << 30);
    let share = f64::from(ranks) - 1.0;
    let factor = match pass.operation {
        None => return (algorithm, 0.0),
        Some(Operation::AllReduce) => 2.0,
        Some(_) => 1.0,
    };
    (algorithm, algorithm * factor * share / f64::from(ranks))
}
