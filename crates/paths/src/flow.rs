//! Maximum flow with integer capacities (Dinic's algorithm), the workhorse behind exact cuts and edge connectivity.

use netloom_units::narrow;

/// A directed flow network whose arcs come in opposite pairs: arc `a` and its reverse `a ^ 1`.
#[derive(Clone, Debug)]
pub(crate) struct FlowNetwork {
    /// First arc of every node, then chained through `next`.
    first: Vec<u32>,
    next: Vec<u32>,
    head: Vec<u32>,
    residual: Vec<u32>,
    /// Capacities as added, to undo a flow.
    capacity: Vec<u32>,
    level: Vec<u32>,
    current: Vec<u32>,
    queue: Vec<u32>,
}

const NONE: u32 = u32::MAX;

impl FlowNetwork {
    pub(crate) fn new(nodes: usize) -> Self {
        FlowNetwork {
            first: vec![NONE; nodes],
            next: Vec::new(),
            head: Vec::new(),
            residual: Vec::new(),
            capacity: Vec::new(),
            level: vec![NONE; nodes],
            current: vec![NONE; nodes],
            queue: Vec::new(),
        }
    }

    /// Adds an arc of capacity `forth` and its reverse of capacity `back`.
    pub(crate) fn add(&mut self, from: u32, to: u32, forth: u32, back: u32) {
        for (tail, head, capacity) in [(from, to, forth), (to, from, back)] {
            self.next.push(self.first[tail as usize]);
            self.first[tail as usize] = narrow::<u32>(self.head.len());
            self.head.push(head);
            self.residual.push(capacity);
            self.capacity.push(capacity);
        }
    }

    /// Undoes all flow.
    pub(crate) fn reset(&mut self) {
        self.residual.copy_from_slice(&self.capacity);
    }

    /// Sends as much flow as fits and returns its value.
    pub(crate) fn max_flow(&mut self, source: u32, sink: u32) -> u32 {
        let mut total = 0;
        while self.levels(source, sink) {
            self.current.copy_from_slice(&self.first);
            loop {
                let sent = self.push(source, sink, u32::MAX);
                if sent == 0 {
                    break;
                }
                total += sent;
            }
        }
        total
    }

    /// After [`FlowNetwork::max_flow`]: whether the node is on the source's side of a minimum cut.
    pub(crate) fn on_source_side(&self, node: u32) -> bool {
        self.level[node as usize] != NONE
    }

    /// Breadth-first levels over arcs with room; whether the sink is reached.
    fn levels(&mut self, source: u32, sink: u32) -> bool {
        self.level.fill(NONE);
        self.level[source as usize] = 0;
        self.queue.clear();
        self.queue.push(source);
        let mut taken = 0;
        while taken < self.queue.len() {
            let node = self.queue[taken];
            taken += 1;
            let mut arc = self.first[node as usize];
            while arc != NONE {
                let head = self.head[arc as usize];
                if self.residual[arc as usize] > 0 && self.level[head as usize] == NONE {
                    self.level[head as usize] = self.level[node as usize] + 1;
                    self.queue.push(head);
                }
                arc = self.next[arc as usize];
            }
        }
        self.level[sink as usize] != NONE
    }

    /// Depth-first search for one augmenting path; recursion is as deep as the path is long.
    fn push(&mut self, node: u32, sink: u32, limit: u32) -> u32 {
        if node == sink {
            return limit;
        }
        while self.current[node as usize] != NONE {
            let arc = self.current[node as usize];
            let head = self.head[arc as usize];
            if self.residual[arc as usize] > 0 && self.level[head as usize] == self.level[node as usize] + 1 {
                let sent = self.push(head, sink, limit.min(self.residual[arc as usize]));
                if sent > 0 {
                    self.residual[arc as usize] -= sent;
                    self.residual[arc as usize ^ 1] += sent;
                    return sent;
                }
            }
            self.current[node as usize] = self.next[arc as usize];
        }
        0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flow_equals_the_cut_of_a_textbook_network() {
        // Two units fit through the middle, although the ends could carry five.
        let mut network = FlowNetwork::new(4);
        network.add(0, 1, 3, 0);
        network.add(0, 2, 2, 0);
        network.add(1, 2, 1, 0);
        network.add(1, 3, 1, 0);
        network.add(2, 3, 1, 0);
        assert_eq!(network.max_flow(0, 3), 2);
        assert!(network.on_source_side(2) && !network.on_source_side(3));
        network.reset();
        assert_eq!(network.max_flow(0, 2), 3);
    }
}
