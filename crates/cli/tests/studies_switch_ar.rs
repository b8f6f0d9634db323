//! The studies of the Switch AR paper hold their gates in their small forms.

#[macro_use]
mod common;

studies! {
    "switch-ar":
    fig_3_uniform_traffic: "uniform",
    fig_4_ets: "ets",
    fig_7_permutations: "permutations",
    fig_8_input_generated_hotspot: "hotspot-input",
    onset_of_a_congestion_tree: "hotspot-onset",
    fig_9_output_generated_hotspot: "hotspot-output",
    quantized_congestion_notification: "qcn",
    fig_10_applications_on_an_idle_network: "traces-empty",
    fig_11_applications_with_a_slow_link: "traces-degraded",
    table_ii_applications_with_enlarged_messages: "traces-scaled",
}
