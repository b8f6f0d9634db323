//! The study of load balancers holds its gates in its small form.

#[macro_use]
mod common;

studies! {
    "balancers":
    leaf_spine: "leaf-spine",
}
