//! The studies of the Flowcut paper hold their gates in their small forms.

#[macro_use]
mod common;

studies! {
    "flowcut":
    the_authors_simulator: "artefact",
    figs_4_and_5_memory: "memory",
    fig_12_placements: "placements",
    figs_13_and_14_dragonfly: "dragonfly",
    fig_1_flowlet_gap: "flowlet-gap",
    fig_15_ordered_all_to_all: "fig-15",
    sprayed_packets_before_go_back_n: "go-back-n",
    fig_7_threshold_and_alpha: "threshold-alpha",
    fig_8_permutation: "permutation",
    fig_9_permutation_with_failures: "permutation-failures",
    fig_10_all_to_all: "all-to-all",
    fig_11_tapered_tree: "tapered",
    many_flows_per_nic: "many-flows",
    the_options_of_draining: "draining",
    table_iv_drain_time: "table-iv",
}
