//! The studies of load balancers hold their gates in their small forms.

#[macro_use]
mod common;

studies! {
    "balancers":
    leaf_spine: "leaf-spine",
    low_diameter: "low-diameter",
    reps: "reps",
    a_slow_link: "slow-link",
}
