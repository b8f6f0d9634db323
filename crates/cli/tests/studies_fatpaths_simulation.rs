//! The studies of FatPaths' simulations hold their gates in their small forms.

#[macro_use]
mod common;

studies! {
    "fatpaths-simulation":
    figures_11_and_2: "fig-11-and-2",
    figures_14_and_16: "fig-14-and-16",
    figure_20: "fig-20-star",
    links_that_die: "failures",
    without_purified_transport: "ablation",
}
