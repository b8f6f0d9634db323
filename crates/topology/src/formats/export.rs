//! Every format a network can be written in, under one name each.

use std::path::Path;
use std::str::FromStr;

use netloom_units::Invalid;

use crate::error::NetworkError;
use crate::network::Network;

/// A format to write networks in; its name is that of the kind of topology that reads it.
///
/// ```
/// use netloom_topology::{BuildContext, ExportFormat, Topology};
///
/// let topology = Topology::Crossbar(Default::default());
/// let network = topology.build(&BuildContext { seed: 1, base_dir: ".".as_ref() }).unwrap();
/// assert_eq!(ExportFormat::of_path("net.graphml".as_ref()), Some(ExportFormat::GraphMl));
/// let text = network.export("edge-list".parse().unwrap()).unwrap();
/// assert!(text.contains("h0 s0 200Gbps 1us"));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExportFormat {
    /// `edge-list`, `.txt`: links, rates and latencies.
    EdgeList,
    /// `graphml`: everything.
    GraphMl,
    /// `dot`, `.gv`: everything.
    Dot,
    /// `json`: everything.
    Json,
    /// `htsim-topo`, `.topo`: fat trees of two or three levels.
    HtsimTopo,
    /// `ns3-topology`: links, rates, latencies and error rates.
    Ns3,
}

impl ExportFormat {
    /// All formats with their names and usual file extensions.
    pub const ALL: [(ExportFormat, &str, &[&str]); 6] = [
        (ExportFormat::EdgeList, "edge-list", &["txt", "edges", "csv"]),
        (ExportFormat::GraphMl, "graphml", &["graphml", "xml"]),
        (ExportFormat::Dot, "dot", &["dot", "gv"]),
        (ExportFormat::Json, "json", &["json"]),
        (ExportFormat::HtsimTopo, "htsim-topo", &["topo"]),
        (ExportFormat::Ns3, "ns3-topology", &["ns3"]),
    ];

    /// The format that a file's extension stands for.
    pub fn of_path(path: &Path) -> Option<ExportFormat> {
        let extension = path.extension()?.to_str()?.to_ascii_lowercase();
        let found = Self::ALL.into_iter().find(|(_, _, extensions)| extensions.contains(&extension.as_str()));
        found.map(|(format, ..)| format)
    }
}

impl FromStr for ExportFormat {
    type Err = NetworkError;

    fn from_str(text: &str) -> Result<Self, NetworkError> {
        let found = Self::ALL.into_iter().find(|(_, name, _)| *name == text).map(|(format, ..)| format);
        let names = Self::ALL.map(|(_, name, _)| name).join(", ");
        Ok(found.ok_or_else(|| Invalid::new("format", format!("one of {names}"), text))?)
    }
}

impl Network {
    /// The network as text in a format.
    ///
    /// # Errors
    /// If the format cannot describe this network: [`ExportFormat::HtsimTopo`] knows fat trees only, and neither it nor
    /// [`ExportFormat::EdgeList`] links that lose packets at random. None says which NICs are of one host.
    pub fn export(&self, format: ExportFormat) -> Result<String, NetworkError> {
        if self.links_per_host() > 1 {
            let expected =
                "a network whose hosts have one link each, as no format says which NICs are of one host";
            let found = format!("{} links per host", self.links_per_host());
            return Err(Invalid::new("topology", expected, found).into());
        }
        if let (ExportFormat::EdgeList | ExportFormat::HtsimTopo, Some((link, rate))) =
            (format, self.error_rates().first())
        {
            let expected = "graphml, dot, json or ns3-topology for a network whose links have error rates";
            return Err(
                Invalid::new("format", expected, format!("another, and link {link} has {rate}")).into()
            );
        }
        match format {
            ExportFormat::EdgeList => Ok(self.to_edge_list()),
            ExportFormat::GraphMl => Ok(self.to_graphml()),
            ExportFormat::Dot => Ok(self.to_dot()),
            ExportFormat::Json => Ok(self.to_json()),
            ExportFormat::HtsimTopo => self.to_htsim_topo(),
            ExportFormat::Ns3 => Ok(self.to_ns3()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topology::Topology;
    use netloom_units::kind::Kind;

    #[test]
    fn every_format_is_read_by_the_kind_of_its_name() {
        for (format, name, extensions) in ExportFormat::ALL {
            assert_eq!(name.parse(), Ok(format));
            assert!(Topology::NAMES.contains(&name));
            for extension in extensions {
                assert_eq!(ExportFormat::of_path(format!("a.b.{extension}").as_ref()), Some(format));
            }
        }
        assert_eq!(ExportFormat::of_path("net".as_ref()), None);
        let error = "pdf".parse::<ExportFormat>().unwrap_err().to_string();
        assert!(error.starts_with("format: expected one of edge-list, graphml"), "{error}");
    }
}
