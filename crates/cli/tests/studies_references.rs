//! The studies against public simulators hold their gates in their small forms.

#[macro_use]
mod common;

studies! {
    "references":
    conweave_lone_flows: "conweave-lone",
    conweave_shared_link: "conweave-shared-link",
    conweave_incasts: "conweave-incast",
    conweave_ali_storage: "conweave-ali50",
}
