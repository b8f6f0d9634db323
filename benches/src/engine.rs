//! The engine alone, with a toy model: nodes that pass tokens to random nodes and do nothing else.
//!
//! Prints million messages per second on one thread, on two, and under the textbook executor with one global heap, the best of a few rounds each.

use std::time::Instant;

use netloom_engine::{Due, Engine, Model, NodeIndex, Scheduler, Setup, contiguous, reference};
use netloom_units::Time;
use netloom_units::random;
use rand::RngExt;

const NODES: u32 = 1024;
const TOKENS_PER_NODE: u32 = 16;
const HOPS: u32 = 200;
const LATENCY: Time = Time::from_us(1);

/// Passes every token on after a random delay until it has made its hops.
struct Toss;

impl Model for Toss {
    type Node = random::Stream;
    type Payload = u32;
    type Hint = ();

    fn start(&self, _: &mut random::Stream, _: NodeIndex, out: &mut impl Scheduler<u32>) {
        for token in 0..TOKENS_PER_NODE {
            out.timer(Time::from_ns(u64::from(token) * 60), HOPS);
        }
    }

    fn handle(
        &self,
        random: &mut random::Stream,
        id: NodeIndex,
        Due { at, .. }: Due,
        hops_left: &mut u32,
        out: &mut impl Scheduler<u32>,
    ) {
        if let Some(left) = hops_left.checked_sub(1) {
            let delay = Time(random.random_range(0..200_000));
            out.send(random.random_range(0..NODES), id, at + LATENCY + delay, left);
        }
    }

    fn advance(
        &self,
        _: &mut random::Stream,
        _: NodeIndex,
        _: Time,
        _: &mut impl Scheduler<u32>,
    ) -> Option<Time> {
        None
    }
}

fn main() {
    let nodes = || (0..NODES).map(|id| random::Node::Host.stream(1, u64::from(id))).collect::<Vec<_>>();
    let order: Vec<NodeIndex> = (0..NODES).collect();
    let windows = |threads| {
        let setup =
            Setup { partition: Some(contiguous(&order, None, |_| 1, threads)), ..Setup::new(LATENCY) };
        Engine::new(std::sync::Arc::new(Toss), nodes(), setup).expect("messages take time").run().messages
    };
    let rate = |run: &dyn Fn() -> u64| {
        let rates = (0..3).map(|_| {
            let start = Instant::now();
            run() as f64 / start.elapsed().as_secs_f64() / 1e6
        });
        rates.fold(0.0, f64::max)
    };
    let [one, two] = [1, 2].map(|threads| rate(&|| windows(threads)));
    let heap = rate(&|| reference::run(&Toss, nodes()).1);
    println!("million messages per second, best of 3 rounds");
    println!(
        "1 thread {one:.1}   2 threads {two:.1} ({:.2}x)   global heap {heap:.1} ({:.2}x)",
        two / one,
        one / heap
    );
}
