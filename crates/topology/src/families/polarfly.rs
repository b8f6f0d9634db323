//! PolarFly: the Erdős–Rényi polarity graphs ER_q, of diameter 2.
//!
//! Switches are the points of the projective plane over GF(q): vectors of three elements, not all 0, whose first one that is not 0 is 1.
//! Two are linked if their product is 0. Points whose product with themselves is 0, the quadrics, have a link less.

use netloom_units::{Rate, Time, narrow};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::cable::Cable;
use crate::error::NetworkError;
use crate::families::direct::DirectBuilder;
use crate::families::{invalid, nearest};
use crate::galois::{Field, prime_power};
use crate::network::Network;
use crate::topology::BuildContext;

/// PolarFly (Lakhotia et al., SC 2022): q² + q + 1 switches with q + 1 links each, but q for the q + 1 quadrics, and diameter 2, for every prime power
/// q. The default has the radix 32 of the paper's evaluation.
///
/// Links are of tier `switch`. A pod is a rack of the paper's layout where q is odd: the quadrics, or a neighbour of one of them with its other
/// neighbours. Where q is even there is one pod.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct PolarFly {
    /// A prime power; 31 if absent.
    pub q: Option<u32>,
    /// Take the q whose network has nearest to this number of hosts.
    pub about_hosts: Option<u32>,
    /// Hosts per switch; (q + 1)/2 rounded up if absent.
    pub hosts_per_switch: Option<u32>,
    /// Rate of all links, unless another field sets it.
    pub rate: Rate,
    /// Propagation delay of all links, unless another field sets it.
    pub latency: Time,
    /// Rate of host links; `rate` if absent.
    pub host_rate: Option<Rate>,
    /// Propagation delay of host links; `latency` if absent.
    pub host_latency: Option<Time>,
}

impl Default for PolarFly {
    fn default() -> Self {
        PolarFly {
            q: None,
            about_hosts: None,
            hosts_per_switch: None,
            rate: Cable::DEFAULT.rate,
            latency: Cable::DEFAULT.latency,
            host_rate: None,
            host_latency: None,
        }
    }
}

/// Lakhotia et al., section IX: radix 32.
const DEFAULT_Q: u32 = 31;

impl PolarFly {
    /// Writes down what is taken where nothing is given.
    pub(crate) fn fill(&mut self) {
        if self.about_hosts.is_none() {
            self.q.get_or_insert(DEFAULT_Q);
        }
    }

    pub(crate) fn build(&self, _: &BuildContext<'_>) -> Result<Network, NetworkError> {
        let (q, name) = self.choose_q()?;
        let p = self.hosts_per_switch.unwrap_or_else(|| default_hosts(q));
        let (switches, edges) = (points(q), links(q));
        let common = Cable { rate: self.rate, latency: self.latency };
        let host_cable = Cable::or(self.host_rate, self.host_latency, common);
        // The size is checked before anything of that size is made.
        DirectBuilder::check(switches, p, edges)?;
        let plane = Plane::new(q)?;
        let racks = plane.racks();
        let pod = |switch: u32| racks[switch as usize];
        let mut direct = DirectBuilder::new(&name, switches, p, edges, host_cable, pod)?;
        let tier = direct.tier("switch");
        for point in 0..narrow::<u32>(switches) {
            // Every pair is met from both ends, and taken once.
            let neighbours = plane.line(point).into_iter().filter(|&other| other > point);
            direct.edges(neighbours.map(|other| (point, other)), common, tier);
        }
        direct.build()
    }

    fn choose_q(&self) -> Result<(u32, String), NetworkError> {
        match (self.q, self.about_hosts) {
            (Some(_), Some(wanted)) => Err(invalid("about_hosts", "no about_hosts where q is given", wanted)),
            (None, Some(wanted)) => {
                let hosts =
                    |q| points(q).saturating_mul(self.hosts_per_switch.unwrap_or(default_hosts(q)).into());
                let fields = (2..20_000).filter(|&q| prime_power(q).is_some());
                let q = nearest(wanted.into(), fields.map(|q| (q, hosts(q))));
                Ok((q, format!("PolarFly q = {q} nearest to {wanted} hosts")))
            }
            (q, None) => {
                let q = q.unwrap_or(DEFAULT_Q);
                prime_power(q).map(|_| (q, format!("PolarFly q = {q}"))).ok_or_else(|| no_field(q))
            }
        }
    }
}

/// There is no projective plane over a field of q elements.
fn no_field(q: u32) -> NetworkError {
    let is_valid = |q: &u32| prime_power(*q).is_some();
    let below = (2..q).rev().find(is_valid);
    let above = (q.max(1)..u32::MAX).skip(1).find(is_valid);
    let near: Vec<String> = below.iter().chain(&above).map(u32::to_string).collect();
    invalid("q", format!("a prime power, such as {}", near.join(" or ")), q)
}

/// Points of the plane, q² + q + 1.
pub(crate) fn points(q: u32) -> u64 {
    let q = u64::from(q);
    q.saturating_mul(q + 1) + 1
}

/// q (q + 1)² / 2.
fn links(q: u32) -> u64 {
    let q = u64::from(q);
    q.saturating_mul(q + 1).saturating_mul(q + 1) / 2
}

fn default_hosts(q: u32) -> u32 {
    (q / 2).saturating_add(1)
}

/// The projective plane over a field. Points and lines have the same coordinates, and a point is on a line if their product is 0.
pub(crate) struct Plane {
    field: Field,
    q: u32,
}

impl Plane {
    pub(crate) fn new(q: u32) -> Result<Plane, NetworkError> {
        let field = Field::new(q).ok_or_else(|| no_field(q))?;
        Ok(Plane { field, q })
    }

    /// The coordinates of a point: (1, a, b) has number a q + b, (0, 1, b) number q² + b, and (0, 0, 1) is the last one.
    fn coordinates(&self, point: u32) -> [u32; 3] {
        let q = self.q;
        match point.checked_sub(q * q) {
            None => [1, point / q, point % q],
            Some(b) if b < q => [0, 1, b],
            Some(_) => [0, 0, 1],
        }
    }

    fn product(&self, a: [u32; 3], b: [u32; 3]) -> u32 {
        let [x, y, z] = [0, 1, 2].map(|i| self.field.mul(a[i], b[i]));
        self.field.add(self.field.add(x, y), z)
    }

    /// The q + 1 points on a line, in order.
    pub(crate) fn line(&self, line: u32) -> Vec<u32> {
        let (q, coordinates) = (self.q, self.coordinates(line));
        let [_, y, z] = coordinates;
        let is_on = |&point: &u32| self.product(coordinates, self.coordinates(point)) == 0;
        let mut points: Vec<u32> = Vec::with_capacity(q as usize + 1);
        // For each (1, a, ·) the equation x + a y + b z = 0 has one solution b where z is not 0; where it is, all b or none solve it.
        for a in 0..q {
            let row = a * q..(a + 1) * q;
            match z {
                0 if y == 0 => break,
                0 if is_on(&row.start) => points.extend(row),
                0 => {}
                _ => points.extend(row.into_iter().find(is_on)),
            }
        }
        points.extend((q * q..=q * q + q).filter(is_on));
        points
    }

    /// Per point, its rack: 0 for the quadrics, then one around each neighbour of the first of them (Lakhotia et al., section VI). Even q have one for all.
    fn racks(&self) -> Vec<u32> {
        let points = narrow::<u32>(points(self.q));
        let is_quadric = |&point: &u32| {
            let coordinates = self.coordinates(point);
            self.product(coordinates, coordinates) == 0
        };
        let mut racks = vec![0; points as usize];
        let first = if self.q % 2 == 1 { (0..points).find(is_quadric) } else { None };
        for centre in first.map(|quadric| self.line(quadric)).unwrap_or_default() {
            if is_quadric(&centre) {
                continue;
            }
            let rack = 1 + racks.iter().copied().max().unwrap_or(0);
            racks[centre as usize] = rack;
            for member in self.line(centre).into_iter().filter(|member| !is_quadric(member)) {
                racks[member as usize] = rack;
            }
        }
        racks
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topology::context;

    fn polarfly(q: u32) -> Network {
        PolarFly { q: Some(q), hosts_per_switch: Some(1), ..PolarFly::default() }.build(&context(1)).unwrap()
    }

    #[test]
    fn polarity_graphs_have_the_published_counts() {
        for q in [2, 3, 4, 5, 7, 8, 9, 11, 13] {
            let network = polarfly(q);
            let metrics = network.metrics();
            assert_eq!(network.switches(), q * q + q + 1);
            assert_eq!(metrics.switch_links, u64::from(q * (q + 1) * (q + 1) / 2), "q = {q}");
            assert_eq!((metrics.degree, metrics.diameter), ((q, q + 1), 2), "q = {q}");
            let quadrics = network.router_graph();
            let count = (0..quadrics.routers()).filter(|&r| quadrics.neighbours(r).len() as u32 == q).count();
            assert_eq!(count as u32, q + 1, "q = {q}");
        }
        // Radix 32 (Lakhotia et al., section IX).
        let network = PolarFly::default().build(&context(1)).unwrap();
        assert_eq!((network.switches(), network.metrics().degree.1, network.hosts()), (993, 32, 993 * 16));
    }

    #[test]
    fn two_switches_have_one_path_of_two_hops_at_most() {
        for q in [3, 4, 7] {
            let graph = polarfly(q).router_graph();
            for (a, b) in (0..graph.routers()).flat_map(|a| (0..a).map(move |b| (a, b))) {
                let common = graph.neighbours(a).iter().filter(|c| graph.neighbours(b).contains(c)).count();
                assert!(common <= 1, "q = {q}: {a} and {b} have {common} neighbours in common");
            }
        }
    }

    #[test]
    fn racks_of_odd_q_hold_the_quadrics_and_q_fans() {
        for q in [3, 5, 7, 9] {
            let network = polarfly(q);
            let mut sizes = vec![0; q as usize + 1];
            for switch in network.hosts()..network.nodes() {
                sizes[network.pod(switch) as usize] += 1;
            }
            assert_eq!(sizes[0], q + 1, "q = {q}");
            assert!(sizes[1..].iter().all(|&size| size == q), "q = {q}: {sizes:?}");
        }
        let even = polarfly(4);
        assert!((even.hosts()..even.nodes()).all(|switch| even.pod(switch) == 0));
    }

    #[test]
    fn a_q_without_a_field_is_refused() {
        let refused =
            |q| PolarFly { q: Some(q), ..PolarFly::default() }.build(&context(1)).unwrap_err().to_string();
        assert_eq!(refused(6), "q: expected a prime power, such as 5 or 7, found 6");
        assert_eq!(refused(0), "q: expected a prime power, such as 2, found 0");
        assert!(refused(65_521).contains("GiB"));
    }
}
