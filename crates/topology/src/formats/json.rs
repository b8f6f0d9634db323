//! JSON in the node-link form of NetworkX and D3.

use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::cable::Cable;
use crate::error::NetworkError;
use crate::formats::graph_file::{GraphFile, graph_attributes, link_attributes, node_attributes};
use crate::formats::reader::{Reader, graph_format};
use crate::network::Network;

graph_format! {
    /// An undirected graph from a JSON file in node-link form (`networkx.node_link_data`): lists `nodes` of objects with
    /// an `id` and `links` (or `edges`) of objects with a `source` and a `target`.
    ///
    /// The same attributes are read as from GraphML. Where no node says that it is a host, the rules of `edge-list`
    /// apply.
    Json
}

#[derive(Deserialize)]
struct Document {
    #[serde(default)]
    directed: bool,
    #[serde(default)]
    graph: Value,
    nodes: Vec<JsonNode>,
    #[serde(alias = "edges")]
    links: Vec<JsonLink>,
}

#[derive(Deserialize)]
struct JsonNode {
    id: Value,
    #[serde(flatten)]
    attributes: Map<String, Value>,
}

#[derive(Deserialize)]
struct JsonLink {
    source: Value,
    target: Value,
    #[serde(flatten)]
    attributes: Map<String, Value>,
}

/// Text is taken as it is; numbers become text.
fn text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

fn parse(reader: &Reader, default: Cable) -> Result<GraphFile, NetworkError> {
    let document: Document =
        serde_json::from_str(&reader.text).map_err(|error| reader.error(error.line(), error.to_string()))?;
    if document.directed {
        return Err(reader.error(0, "expected an undirected graph: every link has both directions"));
    }
    let mut graph = GraphFile::default();
    for (key, value) in document.graph.as_object().into_iter().flatten() {
        graph.set_graph(reader, 0, key, &text(value))?;
    }
    for node in &document.nodes {
        let index = graph.node(&text(&node.id), 0);
        for (key, value) in &node.attributes {
            graph.set_node(reader, 0, index, key, &text(value))?;
        }
    }
    for link in &document.links {
        let (a, b) = (graph.node(&text(&link.source), 0), graph.node(&text(&link.target), 0));
        let index = graph.link(a, b, default, 0);
        for (key, value) in &link.attributes {
            graph.set_link(reader, 0, index, key, &text(value))?;
        }
    }
    Ok(graph)
}

impl Network {
    /// The network as node-link JSON that `json` reads back unchanged.
    pub fn to_json(&self) -> String {
        let object = |ends: &[(&str, String)], attributes: &[(&str, String)]| -> Value {
            let entries = ends.iter().chain(attributes);
            Value::Object(
                entries.map(|(key, value)| ((*key).to_owned(), Value::from(value.as_str()))).collect(),
            )
        };
        let node = |node| {
            let mut entry = object(&[("id", self.node_name(node))], &node_attributes(self, node));
            for key in ["level", "pod"] {
                // Numbers stay numbers for those who read the file elsewhere.
                if let Some(number) =
                    entry.get(key).and_then(Value::as_str).and_then(|n| n.parse::<u32>().ok())
                {
                    entry[key] = number.into();
                }
            }
            entry
        };
        let link = |link: &crate::network::Link| {
            let ends = [("source", self.node_name(link.a)), ("target", self.node_name(link.b))];
            object(&ends, &link_attributes(self, link))
        };
        let document = json!({
            "directed": false,
            "multigraph": true,
            "graph": object(&[], &graph_attributes(self)),
            "nodes": (0..self.nodes()).map(node).collect::<Vec<_>>(),
            "links": self.links().iter().map(link).collect::<Vec<_>>(),
        });
        format!("{document:#}\n")
    }
}
