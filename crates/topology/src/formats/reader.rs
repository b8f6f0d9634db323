//! What every import has in common: a file whose errors name the line, and the settings of graph formats.

use std::fmt::Display;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use netloom_units::memory;

use crate::error::NetworkError;
use crate::topology::BuildContext;

/// An input file in memory.
pub(crate) struct Reader {
    path: PathBuf,
    pub(crate) text: String,
}

impl Reader {
    /// Reads the whole file.
    pub(crate) fn open(path: &Path, context: &BuildContext<'_>) -> Result<Reader, NetworkError> {
        // The text, its tree or tokens, and the graph: the most that was measured is 24 times the file, for XML.
        const TIMES: u64 = 32;
        let path = context.base_dir.join(path);
        match memory::read_text(&path, TIMES) {
            Ok(text) => Ok(Reader { path, text }),
            Err(error) => Err(NetworkError::File { path, line: None, message: error.to_string() }),
        }
    }

    /// Lines with their numbers, counted from 1.
    pub(crate) fn lines(&self) -> impl Iterator<Item = (usize, &str)> {
        (1..).zip(self.text.lines())
    }

    /// An error at a line; line 0 stands for the file as a whole.
    pub(crate) fn error(&self, line: usize, message: impl Into<String>) -> NetworkError {
        let line = (line > 0).then_some(line);
        NetworkError::File { path: self.path.clone(), line, message: message.into() }
    }

    /// Reads a value, naming the line if it is malformed.
    pub(crate) fn parse<T: FromStr<Err: Display>>(&self, line: usize, word: &str) -> Result<T, NetworkError> {
        word.parse().map_err(|error: T::Err| {
            // Of numbers, what Rust says is about digits.
            let problem = error.to_string();
            let is_of_digits = problem.contains("found in string") || problem.starts_with("invalid float");
            self.error(
                line,
                format!("\"{word}\": {}", if is_of_digits { "expected a number" } else { &problem }),
            )
        })
    }

    /// Refuses a number of nodes of which the file is too short to name each, as every node is named by a link.
    pub(crate) fn check_nodes(&self, line: usize, nodes: u32) -> Result<(), NetworkError> {
        if nodes as usize <= self.text.len() {
            return Ok(());
        }
        Err(self.error(line, format!("{nodes} nodes, but the file is too short to name them")))
    }

    /// Reads the id of a node, below the number of nodes.
    pub(crate) fn node(&self, line: usize, word: &str, nodes: u32) -> Result<usize, NetworkError> {
        match self.parse::<u32>(line, word)? {
            id if id < nodes => Ok(id as usize),
            id => Err(self.error(line, format!("expected a node below {nodes}, found {id}"))),
        }
    }

    /// The file's name without its directories, for the network's name.
    pub(crate) fn file_name(&self) -> String {
        self.path.file_name().unwrap_or_default().to_string_lossy().into_owned()
    }
}

/// Declares the config struct of a graph format.
macro_rules! graph_format {
    ($(#[$meta:meta])* $Name:ident) => {
        $(#[$meta])*
        #[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
        #[serde(deny_unknown_fields)]
        pub struct $Name {
            /// The file; relative paths start at the directory of the scenario.
            pub path: std::path::PathBuf,
            /// Hosts added to every node of a file that lists only switches.
            #[serde(default)]
            pub hosts_per_switch: u32,
            /// Whether two links may join the same two nodes; otherwise a repeated pair is an error.
            #[serde(default)]
            pub parallel_links: bool,
            /// Rate of links that name none, and of added host links.
            #[serde(default = "default_rate")]
            pub rate: netloom_units::Rate,
            /// Propagation delay of links that name none, and of added host links.
            #[serde(default = "default_latency")]
            pub latency: netloom_units::Time,
        }

        fn default_rate() -> netloom_units::Rate {
            $crate::cable::Cable::DEFAULT.rate
        }

        fn default_latency() -> netloom_units::Time {
            $crate::cable::Cable::DEFAULT.latency
        }

        impl $Name {
            /// The file with default rate and latency.
            pub fn new(path: impl Into<std::path::PathBuf>) -> Self {
                $Name {
                    path: path.into(),
                    hosts_per_switch: 0,
                    parallel_links: false,
                    rate: default_rate(),
                    latency: default_latency(),
                }
            }

            pub(crate) fn build(
                &self,
                context: &$crate::topology::BuildContext<'_>,
            ) -> Result<$crate::network::Network, $crate::error::NetworkError> {
                let reader = $crate::formats::Reader::open(&self.path, context)?;
                let cable = $crate::cable::Cable { rate: self.rate, latency: self.latency };
                let graph = parse(&reader, cable)?;
                let (hosts_per_switch, parallel_links) = (self.hosts_per_switch, self.parallel_links);
                graph.build(&reader, $crate::formats::Reading { hosts_per_switch, parallel_links, cable })
            }
        }
    };
}
pub(crate) use graph_format;
