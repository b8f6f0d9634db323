//! Messages that share links as fairly as can be, without loss, headers or waiting: what open loops come to if nothing but the choice of layers matters.
//!
//! Each message is on one layer. At every instant the rates of all grow alike until a link is full. A message is as long as a host's link takes for it: that is the
//! unit of time, and of what is left to send.

use crate::ways::Ways;

/// On which of its pair's layers a message goes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Choice {
    /// On all in turn, which spreads them evenly.
    InTurn,
    /// On the one whose fullest link carries the fewest messages as it comes, and of several on the one with the fewest links.
    Best,
}

/// A message under way.
struct Sending {
    pair: usize,
    way: usize,
    left: f64,
    rate: f64,
}

/// The messages under way, and how many there are on each link: those between switches, then the link of each pair's host.
pub(crate) struct Fluid<'a> {
    ways: &'a Ways,
    choice: Choice,
    sending: Vec<Sending>,
    on_links: Vec<u32>,
    turns: Vec<usize>,
}

impl<'a> Fluid<'a> {
    pub(crate) fn new(ways: &'a Ways, choice: Choice) -> Self {
        let pairs = ways.of_flows.len();
        let on_links = vec![0; ways.links + pairs];
        Fluid { ways, choice, sending: Vec::new(), on_links, turns: vec![0; pairs] }
    }

    fn links(&self, pair: usize, way: usize) -> impl Iterator<Item = usize> + use<'a> {
        let host = self.ways.links + pair;
        let ways: &'a Ways = self.ways;
        ways.of_flows[pair][way].iter().map(|&link| link as usize).chain([host])
    }

    /// What each pair has still to send, when all that is under way has been sent for so long, and messages of the pairs have come at their times, in order.
    pub(crate) fn backlogs(&mut self, from: f64, until: f64, arrivals: &[(f64, usize)]) -> Vec<f64> {
        let mut now = from;
        let mut arrivals = arrivals.iter().copied().peekable();
        while now < until {
            let comes = arrivals.peek().map_or(until, |&(at, _)| at).min(until);
            let ends = self.sending.iter().map(|message| now + message.left / message.rate);
            let next = ends.fold(comes, f64::min);
            self.sending.iter_mut().for_each(|message| message.left -= message.rate * (next - now));
            now = next;
            while let Some((_, pair)) = arrivals.next_if(|&(at, _)| at <= now) {
                self.add(pair);
            }
            self.remove_sent();
            self.share();
        }
        let mut backlogs = vec![0.0; self.ways.of_flows.len()];
        self.sending.iter().for_each(|message| backlogs[message.pair] += message.left);
        backlogs
    }

    fn add(&mut self, pair: usize) {
        let ways = self.ways.of_flows[pair].len();
        let way = match self.choice {
            Choice::InTurn => {
                self.turns[pair] += 1;
                self.turns[pair] % ways
            }
            Choice::Best => {
                let fullest = |way: &usize| self.links(pair, *way).map(|link| self.on_links[link]).max();
                (0..ways).min_by_key(|way| (fullest(way), self.ways.of_flows[pair][*way].len())).unwrap()
            }
        };
        self.links(pair, way).for_each(|link| self.on_links[link] += 1);
        self.sending.push(Sending { pair, way, left: 1.0, rate: 0.0 });
    }

    fn remove_sent(&mut self) {
        for place in (0..self.sending.len()).rev() {
            if self.sending[place].left < 1e-9 {
                let Sending { pair, way, .. } = self.sending.swap_remove(place);
                self.links(pair, way).for_each(|link| self.on_links[link] -= 1);
            }
        }
    }

    /// Gives all messages their rates.
    fn share(&mut self) {
        let mut growing = self.on_links.clone();
        let mut left = vec![1.0; growing.len()];
        let mut open: Vec<usize> = (0..self.sending.len()).collect();
        let mut rate = 0.0;
        while !open.is_empty() {
            let used = growing.iter().zip(&left).filter(|(messages, _)| **messages > 0);
            let step = used.map(|(&messages, left)| left / f64::from(messages)).fold(f64::INFINITY, f64::min);
            rate += step;
            left.iter_mut().zip(&growing).for_each(|(left, &messages)| *left -= step * f64::from(messages));
            let is_full = |link: usize| left[link] < 1e-9;
            let mut held = Vec::new();
            open.retain(|&place| {
                let Sending { pair, way, .. } = self.sending[place];
                let holds = self.links(pair, way).any(is_full);
                held.extend(holds.then_some(place));
                !holds
            });
            for place in held {
                let Sending { pair, way, .. } = self.sending[place];
                self.sending[place].rate = rate;
                self.links(pair, way).for_each(|link| growing[link] -= 1);
            }
        }
    }
}
