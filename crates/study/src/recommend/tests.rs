use super::*;
use crate::cell::Cell;
use crate::cell::testing::cell;
use crate::work::Numbers;

const TIME: &str = "fct.p99";

/// Results of schemes by circumstance and seed.
fn results(schemes: &[(&str, &[&[f64]])]) -> Results {
    let mut cells: Vec<(Cell, Numbers)> = Vec::new();
    for (scheme, circumstances) in schemes {
        for (number, seeds) in circumstances.iter().enumerate() {
            let first = cell(&[(SCHEME, scheme), ("faults", &number.to_string())], 0);
            for (seed, &value) in (0..).zip(seeds.iter()) {
                let numbers = if value.is_nan() { Numbers::new() } else { [(TIME.to_owned(), value)].into() };
                cells.push((Cell { repetition: seed, ..first.clone() }, numbers));
            }
        }
    }
    Results::new(cells.iter().map(|(cell, numbers)| (cell, Some(numbers))))
}

fn time() -> Criterion {
    Criterion { metric: TIME.to_owned(), more_is_better: false }
}

fn order(ranking: &Ranking) -> Vec<(&str, bool)> {
    ranking.schemes.iter().map(|ranked| (ranked.scheme.as_str(), ranked.is_worse)).collect()
}

/// Seeds differ by a factor of ten, schemes by a tenth in each of them: compared seed by seed that is certain, which means alone would never tell.
#[test]
fn schemes_are_compared_seed_by_seed() {
    let fast = [10.0, 100.0, 31.0, 70.0];
    let slow = [11.0, 110.0, 34.0, 77.0];
    let found = rank(&results(&[("slow", &[&slow]), ("fast", &[&fast])]), &time(), 1, &[]);
    assert_eq!(order(&found), [("fast", false), ("slow", true)]);
    let ratio = found.schemes[1].ratio.unwrap();
    assert!((ratio - 1.1).abs() < 0.01, "{ratio}");
    let (least, most) = found.schemes[1].interval.unwrap();
    assert!(1.05 < least && least < ratio && ratio < most && most < 1.15, "{least} to {most}");
    assert_eq!(found.schemes[0].ratio, None);
    assert_eq!(found.left().collect::<Vec<_>>(), ["fast"]);
}

/// With more of it better, the same numbers have the other order; the ratio stays that of the metric.
#[test]
fn of_a_throughput_more_is_better() {
    let criterion = Criterion { more_is_better: true, ..time() };
    let found = rank(&results(&[("a", &[&[1.0, 2.0, 3.0]]), ("b", &[&[0.5, 1.0, 1.5]])]), &criterion, 1, &[]);
    assert_eq!(order(&found), [("a", false), ("b", true)]);
    assert!((found.schemes[1].ratio.unwrap() - 0.5).abs() < 1e-12);
}

#[test]
fn what_overlaps_is_not_told_apart() {
    let found =
        rank(&results(&[("a", &[&[1.0, 1.2, 0.9, 1.1]]), ("b", &[&[1.1, 1.0, 1.0, 1.2]])]), &time(), 1, &[]);
    assert!(found.schemes.iter().all(|ranked| !ranked.is_worse), "{found:?}");
    assert_eq!(found.left().count(), 2);
    // One seed tells nothing.
    let found = rank(&results(&[("a", &[&[1.0]]), ("b", &[&[9.0]])]), &time(), 1, &[]);
    assert_eq!((found.left().count(), found.schemes[1].interval), (2, None));
}

/// Later rounds and more pairs ask for more: the same numbers that decide between two in the first round do not between ten in the sixth.
#[test]
fn looking_often_costs_certainty() {
    let two: &[(&str, &[&[f64]])] = &[("a", &[&[1.0, 1.0, 1.0, 1.0]]), ("b", &[&[1.05, 1.12, 1.08, 1.15]])];
    assert!(rank(&results(two), &time(), 1, &[]).schemes[1].is_worse);
    assert!(!rank(&results(two), &time(), 6, &[]).schemes[1].is_worse);
    // What was left out before stays out.
    assert!(rank(&results(two), &time(), 6, &["b".to_owned()]).schemes[1].is_worse);
}

/// A scheme that is fast without faults and slow with them counts by the mean of both.
#[test]
fn circumstances_count_alike() {
    let found = rank(
        &results(&[
            ("steady", &[&[10.0, 11.0, 12.0], &[10.0, 11.0, 12.0]]),
            ("brittle", &[&[9.0, 9.9, 10.8], &[20.0, 22.0, 24.0]]),
        ]),
        &time(),
        1,
        &[],
    );
    assert_eq!(order(&found), [("steady", false), ("brittle", true)]);
    let expected = (0.9_f64 * 2.0).sqrt();
    assert!((found.schemes[1].ratio.unwrap() - expected).abs() < 1e-9);
}

#[test]
fn what_does_not_end_is_not_ranked() {
    let found = rank(&results(&[("a", &[&[1.0, 2.0]]), ("b", &[&[f64::NAN, 0.5]])]), &time(), 1, &[]);
    assert_eq!(order(&found), [("a", false)]);
    assert_eq!(found.unfinished, [("b".to_owned(), 1, 2)]);
}

/// Schemes that are left out have fewer seeds; those they have are compared.
#[test]
fn only_common_seeds_are_compared() {
    let found =
        rank(&results(&[("a", &[&[1.0, 2.0, 400.0]]), ("b", &[&[2.0, 4.0]])]), &time(), 2, &["b".to_owned()]);
    assert!((found.schemes[1].ratio.unwrap() - 2.0).abs() < 1e-12, "{found:?}");
    assert_eq!((found.schemes[0].seeds, found.schemes[1].seeds), (3, 2));
}

/// Where nothing is lost under one scheme there is no ratio, but an order.
#[test]
fn of_zero_there_are_differences() {
    let found =
        rank(&results(&[("lossy", &[&[5.0, 7.0, 6.0]]), ("clean", &[&[0.0, 0.0, 0.0]])]), &time(), 1, &[]);
    assert_eq!(order(&found), [("clean", false), ("lossy", true)]);
    assert_eq!(found.schemes.iter().map(|ranked| ranked.ratio).collect::<Vec<_>>(), [None, None]);
    assert!(found.unfinished.is_empty());
}
