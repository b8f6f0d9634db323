//! The conservation check works: a build whose switches lose a packet fails it.
#![cfg(feature = "broken-conservation")]

mod common;

use common::*;
use netloom_sim::{ConservationError, RunError, Simulation};

#[test]
fn a_lost_packet_is_noticed_and_named() {
    let network = fat_tree(4);
    let plan = permutation(100_000, &network, 1);
    let error = Simulation::new(network, scheme("ecmp"), plan).unwrap().run(2).unwrap_err();
    let RunError::Conservation(ConservationError::Flow { sent, delivered, dropped, in_flight, .. }) = error
    else {
        panic!("another check failed first: {error}");
    };
    assert_eq!((sent - delivered, dropped, in_flight), (1, 0, 0));
}

#[test]
fn small_messages_do_not_meet_the_broken_spot() {
    let network = fat_tree(4);
    let plan = permutation(10_000, &network, 1);
    assert!(Simulation::new(network, scheme("ecmp"), plan).unwrap().run(2).is_ok());
}
