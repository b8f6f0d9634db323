//! Hosts, or servers with several NICs: by which hosts of the network their messages leave, and when all parts of a message have come.

use std::sync::Arc;

use netloom_sim::NicChoice;
use netloom_topology::HostId;
use netloom_units::{Bytes, narrow};
use netloom_workload::Rails;
use rustc_hash::FxHashMap;

/// Those that have work.
#[derive(Debug)]
pub(crate) enum Endpoints {
    /// Hosts of the network, with one NIC each.
    Hosts,
    /// Servers.
    Servers {
        rails: Arc<Rails>,
        /// Payload of a packet.
        mtu: Bytes,
        /// Per server.
        servers: Vec<Server>,
    },
}

/// A server and its messages.
#[derive(Debug)]
pub(crate) struct Server {
    choice: NicChoice,
    /// Messages whose sending has not ended, by number.
    sending: FxHashMap<u32, Sending>,
    /// How many parts are missing of messages that are under way to this server, by sender and number.
    missing: FxHashMap<(u32, u32), u32>,
}

#[derive(Debug)]
struct Sending {
    parts: u32,
    /// The rail and bytes of a whole message.
    whole: (u32, Bytes),
}

/// A message from one endpoint to another.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ends {
    pub(crate) src: u32,
    pub(crate) dst: u32,
    /// The message's number at its sender.
    pub(crate) number: u32,
}

impl Endpoints {
    pub(crate) fn new(rails: Option<&Arc<Rails>>, mtu: Bytes) -> Self {
        let Some(rails) = rails else { return Endpoints::Hosts };
        let server = |_| Server {
            choice: NicChoice::new(rails.rails() as usize),
            sending: FxHashMap::default(),
            missing: FxHashMap::default(),
        };
        Endpoints::Servers {
            rails: Arc::clone(rails),
            mtu,
            servers: (0..rails.endpoints()).map(server).collect(),
        }
    }

    /// The endpoint that a host of the network belongs to.
    pub(crate) fn of(&self, host: HostId) -> u32 {
        match self {
            Endpoints::Hosts => host,
            Endpoints::Servers { rails, .. } => rails.endpoint(host).0,
        }
    }

    /// A message begins, at a NIC that is given or at those that the rule chooses: its parts, by the hosts of the network from and to which they go.
    pub(crate) fn begin(
        &mut self,
        ends: Ends,
        bytes: Bytes,
        nic: Option<u16>,
    ) -> Vec<(HostId, HostId, Bytes)> {
        let Ends { src, dst, number } = ends;
        let Endpoints::Servers { rails, mtu, servers } = self else { return vec![(src, dst, bytes)] };
        let server = &mut servers[src as usize];
        let parts = match nic {
            Some(nic) => vec![(u32::from(nic), bytes)],
            None => server.choice.parts(rails, (src, dst, number), (bytes, *mtu)),
        };
        let (rail, of_first) = parts[0];
        server.choice.note_begin(rail, of_first);
        let count = narrow::<u32>(parts.len());
        server.sending.insert(number, Sending { parts: count, whole: (rail, of_first) });
        servers[dst as usize].missing.insert((src, number), count);
        let at_hosts = |(rail, bytes)| (rails.host(src, rail), rails.host(dst, rail), bytes);
        parts.into_iter().map(at_hosts).collect()
    }

    /// A part has been sent. Returns whether all of the message has.
    pub(crate) fn note_sent(&mut self, src: u32, number: u32) -> bool {
        let Endpoints::Servers { servers, .. } = self else { return true };
        let Server { choice, sending, .. } = &mut servers[src as usize];
        let Some(of) = sending.get_mut(&number) else { return false };
        of.parts -= 1;
        if of.parts > 0 {
            return false;
        }
        let (rail, bytes) = of.whole;
        sending.remove(&number);
        choice.note_end(rail, bytes);
        true
    }

    /// A part has come. Returns whether all of the message has.
    pub(crate) fn note_received(&mut self, Ends { src, dst, number }: Ends) -> bool {
        let Endpoints::Servers { servers, .. } = self else { return true };
        let missing = &mut servers[dst as usize].missing;
        let Some(parts) = missing.get_mut(&(src, number)) else { return false };
        *parts -= 1;
        let is_whole = *parts == 0;
        if is_whole {
            missing.remove(&(src, number));
        }
        is_whole
    }
}
