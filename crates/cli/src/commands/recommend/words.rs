//! The answer in words and tables.

use std::io::Write;

use netloom_study::recommend::{Ranked, reasons};
use netloom_study::{Results, significant, unit};

use super::{Answer, Ended};
use crate::args::RecommendArgs;
use crate::failure::Failure;
use crate::show;

/// What the columns of the ranking are.
const NOTE: &str = "The first column is the mean of all runs; the second one compares seed by seed (geometric mean), with the 95% interval of that comparison alone. \
                    A scheme is called worse at a stricter level, by which all comparisons and rounds together are wrong in 5% of questions.\n";

/// Prints the answer.
pub(super) fn print(
    args: &RecommendArgs,
    answer: &Answer,
    results: &Results,
    json: &str,
) -> Result<(), Failure> {
    let mut out = show::out();
    if args.json {
        out.write_all(json.as_bytes())?;
        return Ok(());
    }
    let schemes = &answer.ranking.schemes;
    let mut text = String::new();
    if !schemes.is_empty() {
        text += &format!("{}\n", show::table(ranking(answer)));
        text += NOTE;
    }
    let names: Vec<&str> = schemes.iter().map(|one| one.scheme.as_str()).collect();
    if !names.is_empty() {
        let (columns, rows) = reasons(results, &names);
        if !columns.is_empty() {
            let heading = std::iter::once("mean of all runs".to_owned())
                .chain(columns.iter().map(|column| column.heading.clone()));
            let row = |(name, row): (&&str, &Vec<f64>)| {
                std::iter::once((*name).to_owned())
                    .chain(row.iter().map(|&value| significant(value)))
                    .collect()
            };
            let rows = std::iter::once(heading.collect()).chain(names.iter().zip(&rows).map(row)).collect();
            text += &format!("{}\n", show::table(rows));
        }
    }
    for (name, without, all) in &answer.ranking.unfinished {
        text += &format!(
            "{name}: {without} of {all} runs have no {}: flows or jobs did not end\n",
            answer.criterion.metric
        );
    }
    if !answer.ranking.not_run.is_empty() {
        text += &format!("not run: {}\n", answer.ranking.not_run.join(", "));
    }
    for (run, why) in &answer.failed {
        text += &format!("failed: {run}: {why}\n");
    }
    for (name, why) in &answer.refused {
        text += &format!("left out: {name}: {why}\n");
    }
    text += &format!("{}\n", conclusion(answer));
    text += &format!(
        "{} runs in {} {}, {}; `netloom study {}` repeats them with all schemes\n",
        answer.runs,
        answer.rounds,
        if answer.rounds == 1 { "round" } else { "rounds" },
        show::time(answer.wall_s),
        answer.study.display()
    );
    out.write_all(show::fit(&text).as_bytes())?;
    Ok(())
}

/// The schemes, the best first.
fn ranking(answer: &Answer) -> Vec<Vec<String>> {
    let metric = &answer.criterion.metric;
    let heading = match unit(metric) {
        "1" => metric.clone(),
        "bit/s" => format!("{} [Gbit/s]", metric.trim_end_matches("_bps")),
        unit => format!("{metric} [{unit}]"),
    };
    let scale = if unit(metric) == "bit/s" { 1e-9 } else { 1.0 };
    let mut rows = vec![
        ["scheme", &heading, "times the first", "95% interval", "seeds", ""].map(str::to_owned).to_vec(),
    ];
    for one in &answer.ranking.schemes {
        let interval =
            one.interval.map(|(least, most)| format!("{} to {}", significant(least), significant(most)));
        rows.push(vec![
            one.scheme.clone(),
            significant(one.mean * scale),
            one.ratio.map(significant).unwrap_or_default(),
            interval.unwrap_or_default(),
            one.seeds.to_string(),
            verdict(answer, one).to_owned(),
        ]);
    }
    rows
}

fn verdict(answer: &Answer, one: &Ranked) -> &'static str {
    match (one.is_first, one.is_worse) {
        (true, _) if answer.ended == Ended::Decided => "best",
        (true, _) => "best so far",
        (_, true) => "worse",
        (_, false) => "cannot be told",
    }
}

/// One sentence: which scheme, or that it cannot be told.
fn conclusion(answer: &Answer) -> String {
    let left: Vec<&str> = answer.ranking.left().collect();
    let worse: Vec<&str> =
        answer.ranking.schemes.iter().filter(|one| one.is_worse).map(|one| one.scheme.as_str()).collect();
    let metric = &answer.criterion.metric;
    match left.as_slice() {
        [] if answer.ranking.unfinished.is_empty() => "No scheme has run in all circumstances.".to_owned(),
        [] => format!("No scheme has {metric} in all of its runs; --metric names another number."),
        [_] if answer.ended != Ended::Decided => {
            "Nothing is decided: not all schemes have run. A larger --budget helps.".to_owned()
        }
        [best] if worse.is_empty() => format!("{best} alone has {metric} in all of its runs."),
        [best] => format!("{best} is the best of them, with 95% confidence."),
        several => {
            let why = match answer.ended {
                Ended::Budget => " within the budget (--budget)",
                Ended::Seeds => " with the most seeds allowed (--seeds)",
                Ended::Interrupted => " by what had run until the interruption",
                Ended::Decided => "",
            };
            let also = match worse.as_slice() {
                [] => String::new(),
                [one] => format!("; {one} is not the best, with 95% confidence"),
                worse => format!("; {} are not the best, with 95% confidence", list(worse)),
            };
            format!("{} cannot be told apart{why}{also}.", list(several))
        }
    }
}

fn list(names: &[&str]) -> String {
    match names {
        [] => String::new(),
        [one] => (*one).to_owned(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}
