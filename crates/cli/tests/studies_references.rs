//! The studies against public simulators hold their gates in their small forms.

#[macro_use]
mod common;

studies! {
    "references":
    conweave_lone_flows: "conweave-lone",
    conweave_shared_link: "conweave-shared-link",
    conweave_incasts: "conweave-incast",
    conweave_ali_storage: "conweave-ali50",
    htsim_lone_flows: "htsim-lone-flows",
    htsim_ndp: "htsim-ndp",
    htsim_ndp_incasts: "htsim-ndp-incast",
    htsim_requests_to_send: "htsim-rts",
    htsim_swift: "htsim-swift",
    htsim_tcp: "htsim-tcp",
    htsim_long_tcp: "htsim-tcp-long",
    ultra_ethernet: "uet",
}
