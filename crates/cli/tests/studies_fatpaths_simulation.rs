//! The studies of FatPaths' simulations hold their gates in their small forms.

#[macro_use]
mod common;

studies! {
    "fatpaths-simulation":
    figures_11_and_2: "fig-11-and-2",
    figures_11_and_2_in_full: "fig-11-full",
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
