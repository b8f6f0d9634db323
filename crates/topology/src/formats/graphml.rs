//! GraphML, the XML format of NetworkX, igraph, yEd and Gephi.

use std::collections::HashMap;
use std::fmt::Write as _;

use roxmltree::{Document, Node};

use crate::cable::Cable;
use crate::error::NetworkError;
use crate::formats::graph_file::{GraphFile, graph_attributes, link_attributes, node_attributes};
use crate::formats::reader::{Reader, graph_format};
use crate::network::Network;

graph_format! {
    /// An undirected graph from a GraphML file.
    ///
    /// Attributes are read by their names: `kind` (`host` or `switch`), `level` and `pod` of nodes; `rate`, `latency` and
    /// `tier` of edges; others are ignored. If no node is marked as a host, the rules of `edge-list` apply.
    GraphMl
}

/// The children of that name.
fn named<'a, 'input: 'a>(
    parent: Node<'a, 'input>,
    tag: &'static str,
) -> impl Iterator<Item = Node<'a, 'input>> + use<'a, 'input> {
    parent.children().filter(move |child| child.is_element() && child.tag_name().name() == tag)
}

fn parse(reader: &Reader, default: Cable) -> Result<GraphFile, NetworkError> {
    let document = Document::parse(&reader.text)
        .map_err(|error| reader.error(error.pos().row as usize, format!("malformed XML: {error}")))?;
    let line_ends: Vec<usize> = reader.text.match_indices('\n').map(|(at, _)| at).collect();
    let line = |node: &Node<'_, '_>| line_ends.partition_point(|&end| end < node.range().start) + 1;
    let required = |node: &Node<'_, '_>, attribute: &str| match node.attribute(attribute) {
        Some(value) => Ok(value.to_owned()),
        None => Err(reader.error(line(node), format!("{} without {attribute}", node.tag_name().name()))),
    };
    let root = document.root_element();
    let keys: HashMap<&str, &str> = named(root, "key")
        .filter_map(|key| Some((key.attribute("id")?, key.attribute("attr.name")?)))
        .collect();
    // The attributes of an element: (name, value, line).
    let data = |element: Node<'_, '_>| -> Vec<(String, String, usize)> {
        let entries = named(element, "data").filter_map(|data| {
            let key = data.attribute("key")?;
            let name = keys.get(key).copied().unwrap_or(key);
            Some((name.to_owned(), data.text().unwrap_or_default().trim().to_owned(), line(&data)))
        });
        entries.collect()
    };

    let element =
        named(root, "graph").next().ok_or_else(|| reader.error(0, "no graph element in the file"))?;
    if element.attribute("edgedefault") == Some("directed") {
        return Err(
            reader.error(line(&element), "expected an undirected graph: every link has both directions")
        );
    }
    let mut graph = GraphFile::default();
    for (key, value, line) in data(element) {
        graph.set_graph(reader, line, &key, &value)?;
    }
    for node in named(element, "node") {
        let index = graph.node(&required(&node, "id")?, line(&node));
        for (key, value, line) in data(node) {
            graph.set_node(reader, line, index, &key, &value)?;
        }
    }
    for edge in named(element, "edge") {
        let line_of_edge = line(&edge);
        let a = graph.node(&required(&edge, "source")?, line_of_edge);
        let b = graph.node(&required(&edge, "target")?, line_of_edge);
        let link = graph.link(a, b, default, line_of_edge);
        for (key, value, line) in data(edge) {
            graph.set_link(reader, line, link, &key, &value)?;
        }
    }
    Ok(graph)
}

impl Network {
    /// The network as GraphML that `graphml` reads back unchanged.
    pub fn to_graphml(&self) -> String {
        let mut text = String::from(
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<graphml xmlns=\"http://graphml.graphdrawing.org/xmlns\">\n",
        );
        let keys = [
            ("graph", "name", "string"),
            ("graph", "up_strides", "string"),
            ("graph", "global_tier", "string"),
            ("node", "kind", "string"),
            ("node", "level", "int"),
            ("node", "pod", "long"),
            ("edge", "rate", "string"),
            ("edge", "latency", "string"),
            ("edge", "tier", "string"),
            ("edge", "error_rate", "double"),
        ];
        let is_used = |name: &str| name != "error_rate" || !self.error_rates().is_empty();
        for (element, name, kind) in keys.into_iter().filter(|(_, name, _)| is_used(name)) {
            writeln!(
                text,
                "  <key id=\"{name}\" for=\"{element}\" attr.name=\"{name}\" attr.type=\"{kind}\"/>"
            )
            .expect("writing to a string");
        }
        text += "  <graph edgedefault=\"undirected\">\n";
        let data = |attributes: &[(&str, String)]| -> String {
            attributes
                .iter()
                .map(|(key, value)| format!("<data key=\"{key}\">{}</data>", escape(value)))
                .collect()
        };
        writeln!(text, "    {}", data(&graph_attributes(self))).expect("writing to a string");
        for node in 0..self.nodes() {
            let (name, data) = (escape(&self.node_name(node)), data(&node_attributes(self, node)));
            writeln!(text, "    <node id=\"{name}\">{data}</node>").expect("writing to a string");
        }
        for (id, link) in (0..).zip(self.links()) {
            let (a, b) = (escape(&self.node_name(link.a)), escape(&self.node_name(link.b)));
            let data = data(&link_attributes(self, id));
            writeln!(text, "    <edge source=\"{a}\" target=\"{b}\">{data}</edge>")
                .expect("writing to a string");
        }
        text + "  </graph>\n</graphml>\n"
    }
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
