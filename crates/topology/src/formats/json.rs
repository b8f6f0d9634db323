//! JSON in the node-link form of NetworkX and D3.

use serde::Deserialize;
use serde_json::{Map, Value};

use crate::cable::Cable;
use crate::error::NetworkError;
use crate::formats::graph_file::{GraphFile, graph_attributes, link_attributes, node_attributes};
use crate::formats::reader::{Reader, graph_format};
use crate::network::{Link, LinkId, Network};

graph_format! {
    /// An undirected graph from a JSON file in node-link form (`networkx.node_link_data`): lists `nodes` of objects with
    /// an `id` and `links` (or `edges`) of objects with a `source` and a `target`.
    ///
    /// The same attributes are read as from GraphML. If no node is marked as a host, the rules of `edge-list` apply.
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
    /// The network as node-link JSON that `json` reads back unchanged, one node or link per line.
    pub fn to_json(&self) -> String {
        // Written line by line: as one value in memory, a million hosts would take gigabytes.
        let object = |attributes: &[(&str, String)]| -> String {
            let entry = |(key, value): &(&str, String)| match (*key, value.parse::<u32>()) {
                ("level" | "pod", Ok(number)) => format!("\"{key}\": {number}"),
                _ => format!("\"{key}\": {}", Value::from(value.as_str())),
            };
            format!("{{{}}}", attributes.iter().map(entry).collect::<Vec<_>>().join(", "))
        };
        let node = |node| object(&[vec![("id", self.node_name(node))], node_attributes(self, node)].concat());
        let link = |(id, link): (LinkId, &Link)| {
            let ends = [("source", self.node_name(link.a)), ("target", self.node_name(link.b))];
            object(&[&ends[..], &link_attributes(self, id)].concat())
        };
        let mut text = format!(
            "{{\"directed\": false, \"multigraph\": true, \"graph\": {},\n",
            object(&graph_attributes(self))
        );
        append_list(&mut text, "nodes", (0..self.nodes()).map(node));
        text += ",\n";
        append_list(&mut text, "links", (0..).zip(self.links()).map(link));
        text + "}\n"
    }
}

fn append_list(text: &mut String, name: &str, entries: impl Iterator<Item = String>) {
    text.extend(["\"", name, "\": ["]);
    for (index, entry) in entries.enumerate() {
        text.push_str(if index == 0 { "\n" } else { ",\n" });
        text.push_str(&entry);
    }
    text.push_str("\n]");
}
