//! Saving tables and loading them again.
//!
//! The file is little-endian: the magic bytes, then version, fingerprint of the graph, routers, edges, layers and
//! bytes per entry, then each layer's link set as 64-bit words, then the entries by layer, router and destination.

use netloom_units::narrow;
use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Write};
use std::path::Path;

use netloom_topology::RouterGraph;

use super::{Entries, ForwardingTables, Source, Strides, build};
use crate::link_set::LinkSet;

const MAGIC: [u8; 8] = *b"nlmtable";
const VERSION: u32 = 1;

/// Why tables cannot be saved or loaded.
#[derive(Debug, thiserror::Error)]
pub enum TableFileError {
    /// The file system said no, or the file ends early.
    #[error("forwarding tables: {0}")]
    Io(#[from] io::Error),
    /// The file holds something else.
    #[error("not a file of forwarding tables")]
    NotTables,
    /// The file was written by another version.
    #[error("forwarding tables of format version {found}; this program reads version {VERSION}")]
    Version {
        /// The file's version.
        found: u32,
    },
    /// The tables are for another network.
    #[error(
        "these tables are for another network ({routers} routers, {edges} links); this one has {own_routers} routers, \
         {own_edges} links"
    )]
    OtherNetwork {
        /// Routers the tables are for.
        routers: u32,
        /// Links the tables are for.
        edges: u32,
        /// Routers of this network.
        own_routers: u32,
        /// Links of this network.
        own_edges: u32,
    },
}

/// A number that two different graphs share with a probability of about 2⁻⁶⁴ (FNV-1a over the edge list).
pub(super) fn fingerprint(graph: &RouterGraph) -> u64 {
    let numbers = graph.edges().iter().flat_map(|&(a, b)| [a, b]).chain([graph.routers()]);
    let bytes = numbers.flat_map(u32::to_le_bytes);
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

impl ForwardingTables {
    /// Writes the tables; the file appears under its name only when it is whole.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn save(&self, path: &Path) -> Result<(), TableFileError> {
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
        let file = tempfile::NamedTempFile::new_in(folder.unwrap_or(Path::new(".")))?;
        let mut out = BufWriter::with_capacity(1 << 20, file);
        out.write_all(&MAGIC)?;
        out.write_all(&VERSION.to_le_bytes())?;
        out.write_all(&self.graph.to_le_bytes())?;
        let edges = narrow::<u32>(self.links.first().map_or(0, LinkSet::universe));
        let width: u32 = if matches!(self.entries, Entries::Narrow(_)) { 1 } else { 2 };
        for number in [self.routers, edges, self.layers(), width] {
            out.write_all(&number.to_le_bytes())?;
        }
        for word in self.links.iter().flat_map(LinkSet::words) {
            out.write_all(&word.to_le_bytes())?;
        }
        self.complete();
        // In the file an entry is the port, and all bits are set where there is none.
        let routers = self.routers;
        let pairs = (0..routers).flat_map(|here| (0..routers).map(move |to| (here, to)));
        for (layer, (here, to)) in (0..self.layers()).flat_map(|layer| pairs.clone().map(move |p| (layer, p)))
        {
            let port = self.entries.get(self.strides.place(layer, here, to)).wrapping_sub(1);
            out.write_all(&port.to_le_bytes()[..width as usize])?;
        }
        let file = out.into_inner().map_err(io::IntoInnerError::into_error)?;
        file.persist(path).map_err(|error| error.error)?;
        Ok(())
    }

    /// Reads tables for a graph. The entries are not followed: see [`ForwardingTables::validate`].
    ///
    /// # Errors
    /// If the file cannot be read, is no such file, is cut short, or is for another graph.
    pub fn load(graph: &RouterGraph, path: &Path) -> Result<Self, TableFileError> {
        let mut input = BufReader::with_capacity(1 << 20, File::open(path)?);
        let mut magic = [0; 8];
        input.read_exact(&mut magic)?;
        if magic != MAGIC {
            return Err(TableFileError::NotTables);
        }
        let version = read_u32(&mut input)?;
        if version != VERSION {
            return Err(TableFileError::Version { found: version });
        }
        let mut print = [0; 8];
        input.read_exact(&mut print)?;
        let [routers, edges, layers, width] = [(); 4].map(|()| read_u32(&mut input));
        let (routers, edges, layers, width) = (routers?, edges?, layers?, width?);
        let own = (graph.routers(), narrow::<u32>(graph.edges().len()));
        if u64::from_le_bytes(print) != fingerprint(graph) || (routers, edges) != own {
            let (own_routers, own_edges) = own;
            return Err(TableFileError::OtherNetwork { routers, edges, own_routers, own_edges });
        }
        let expected_width = if build::is_narrow(graph) { 1 } else { 2 };
        // The number of layers is bounded by what the file holds, so that a damaged header reserves no memory.
        let per_layer = edges.div_ceil(64) as u64 * 8 + u64::from(width) * u64::from(routers).pow(2);
        if width != expected_width || per_layer * u64::from(layers) + 36 != std::fs::metadata(path)?.len() {
            return Err(TableFileError::NotTables);
        }
        let mut links = Vec::new();
        for _ in 0..layers {
            let words: io::Result<Vec<u64>> = (0..edges.div_ceil(64)).map(|_| read_u64(&mut input)).collect();
            links.push(LinkSet::from_words(words?, edges as usize));
        }
        let mut bytes = Vec::with_capacity(layers as usize * (width * routers) as usize * routers as usize);
        input.read_to_end(&mut bytes)?;
        let entries = if width == 1 {
            Entries::Narrow(bytes.into_iter().map(|byte| byte.wrapping_add(1).into()).collect())
        } else {
            let pairs = bytes.chunks_exact(2).map(|pair| u16::from_le_bytes([pair[0], pair[1]]));
            Entries::Wide(pairs.map(|port| port.wrapping_add(1).into()).collect())
        };
        let (strides, source) = (Strides::by_router(routers), Source::Given);
        Ok(ForwardingTables { routers, links, entries, strides, source, graph: fingerprint(graph) })
    }
}

fn read_u32(input: &mut impl Read) -> io::Result<u32> {
    let mut bytes = [0; 4];
    input.read_exact(&mut bytes)?;
    Ok(u32::from_le_bytes(bytes))
}

fn read_u64(input: &mut impl Read) -> io::Result<u64> {
    let mut bytes = [0; 8];
    input.read_exact(&mut bytes)?;
    Ok(u64::from_le_bytes(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::routes::Past;
    use crate::testing::{complete, cycle, entries, petersen};

    #[test]
    fn what_is_saved_is_loaded() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("tables");
        let past = Past { layers: 2, ..Past::default() };
        for graph in [petersen(), complete(257)] {
            let layers = ForwardingTables::minimal(&graph, vec![LinkSet::full(&graph); 2], 4);
            for tables in [layers, past.build(&graph, 4).unwrap()] {
                tables.save(&path).unwrap();
                assert_eq!(entries(&ForwardingTables::load(&graph, &path).unwrap()), entries(&tables));
            }
        }
    }

    #[test]
    fn wrong_files_are_refused_with_their_reason() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("tables");
        let graph = petersen();
        let load = |graph: &RouterGraph| ForwardingTables::load(graph, &path).unwrap_err().to_string();
        assert!(load(&graph).contains("No such file"));
        std::fs::write(&path, "something else entirely").unwrap();
        assert_eq!(load(&graph), "not a file of forwarding tables");

        ForwardingTables::minimal(&graph, vec![LinkSet::full(&graph)], 4).save(&path).unwrap();
        assert!(load(&cycle(10)).starts_with("these tables are for another network (10 routers, 15 links)"));
        let whole = std::fs::read(&path).unwrap();
        std::fs::write(&path, &whole[..whole.len() - 1]).unwrap();
        assert_eq!(load(&graph), "not a file of forwarding tables");
        let mut later = whole;
        later[8] = 2;
        std::fs::write(&path, &later).unwrap();
        assert!(load(&graph).starts_with("forwarding tables of format version 2"));
    }

    #[test]
    fn a_folder_that_does_not_exist_is_an_error() {
        let graph = cycle(3);
        let tables = ForwardingTables::minimal(&graph, vec![LinkSet::full(&graph)], 1);
        assert!(tables.save(Path::new("/nonexistent/tables")).is_err());
    }
}
