//! The studies of FatPaths' simulations hold their gates in their small forms.

#[macro_use]
mod common;

use netloom_scenario::{Node, Source};
use netloom_study::{Form, Study};

/// Full forms take hours to run, but their cells can be laid out. (That of figure 13, with its networks of a million hosts, only in minutes.)
#[test]
fn full_forms_can_be_run() {
    let studies = [
        "fig-11-and-2",
        "fig-12-layers",
        "fig-14-and-16",
        "fig-17-stencil",
        "timeouts",
        "failures",
        "ablation",
    ];
    for name in studies {
        let source =
            Source::read(&common::folder("fatpaths-simulation").join(name).with_extension("toml")).unwrap();
        let costs = |form| Study::read(&Node::parse(&source).unwrap(), form).unwrap().plan().unwrap().costs;
        let (middle, full) = (costs(Form::Middle), costs(Form::Full));
        assert_eq!(middle.len(), full.len(), "{name}");
        let by = full.iter().sum::<f64>() / middle.iter().sum::<f64>();
        println!("{name}: {by:.1} times the middle form");
        assert!(by > 3.0, "{name}: {by}");
    }
}

studies! {
    "fatpaths-simulation":
    figures_11_and_2: "fig-11-and-2",
    figure_12: "fig-12-layers",
    figure_13: "fig-13-large",
    figures_14_and_16: "fig-14-and-16",
    figure_17: "fig-17-stencil",
    figure_20: "fig-20-star",
    figure_21: "fig-21-oversubscription",
    bounds_of_timeouts: "timeouts",
    links_that_die: "failures",
    without_purified_transport: "ablation",
}
