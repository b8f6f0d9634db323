//! The studies of the HF²T paper hold their gates in their small forms.

#[macro_use]
mod common;

studies! {
    "hf2t":
    table_1_gaps: "gaps",
    table_2_and_figures_6_and_7: "flowlets",
    other_loads_and_the_larger_tree: "loads",
    longer_thresholds: "thresholds",
}
