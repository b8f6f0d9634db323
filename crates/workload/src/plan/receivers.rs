//! To whom a host may send.

use netloom_topology::HostId;
use netloom_units::Bytes;

use super::{HostWork, Source};
use crate::program::RankWork;

impl HostWork {
    /// Whether calculations of some program take times that are drawn.
    pub fn draws_times(&self) -> bool {
        self.programs().any(RankWork::draws)
    }

    /// Calls with every host, server or GPU of the plan to which messages may go, with some of them several times. Returns the largest message, as far as that is known beforehand.
    pub fn each_receiver(&self, visit: &mut dyn FnMut(HostId)) -> Bytes {
        match &self.source {
            Source::Idle => Bytes(0),
            Source::List(messages) => {
                let messages = messages.as_slice();
                messages.iter().for_each(|message| visit(message.dst));
                messages.iter().map(|message| message.bytes).max().unwrap_or(Bytes(0))
            }
            Source::Arrivals(arrivals) => {
                arrivals.partners.each(visit);
                Bytes(0)
            }
            Source::Frames(frames) => {
                frames.partners.each(visit);
                Bytes(0)
            }
            Source::Closed { work, .. } => {
                work.partners.each(visit);
                Bytes(0)
            }
            Source::Program(rank) => {
                rank.each_receiver(visit);
                rank.largest_message()
            }
            Source::Merge(works) => {
                let largest = works.parts().map(|(_, work, upcoming)| {
                    upcoming.iter().for_each(|message| visit(message.dst));
                    let bytes = upcoming.map_or(Bytes(0), |message| message.bytes);
                    bytes.max(work.each_receiver(visit))
                });
                largest.max().unwrap_or(Bytes(0))
            }
        }
    }
}
