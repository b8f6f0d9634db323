//! The studies of recent schemes hold their gates in their small forms.

#[macro_use]
mod common;

studies! {
    "2026":
    control_and_spraying: "control-and-spraying",
    hopper: "hopper",
}
