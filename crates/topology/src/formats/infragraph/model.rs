//! What stands in a file of InfraGraph: its messages under the names of the schema.
//!
//! Descriptions are read past, everything else is used or refused.

use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_saphyr::Spanned;

/// What `get_graph` of InfraGraph's service returns: the infrastructure with annotations beside it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Annotated {
    pub(super) infrastructure: Infrastructure,
    pub(super) annotations: Option<Annotations>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Infrastructure {
    pub(super) name: Option<String>,
    #[serde(rename = "description")]
    _description: Option<IgnoredAny>,
    #[serde(default)]
    pub(super) devices: Vec<Device>,
    #[serde(default)]
    pub(super) links: Vec<Link>,
    #[serde(default)]
    pub(super) instances: Vec<Instance>,
    #[serde(default)]
    pub(super) edges: Vec<Edge>,
    /// Of older forms.
    pub(super) connections: Option<Spanned<IgnoredAny>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Device {
    pub(super) name: Spanned<String>,
    #[serde(rename = "description")]
    _description: Option<IgnoredAny>,
    #[serde(default)]
    pub(super) components: Vec<Component>,
    #[serde(default)]
    pub(super) links: Vec<Link>,
    #[serde(default)]
    pub(super) edges: Vec<DeviceEdge>,
    /// Of older forms.
    pub(super) connections: Option<Spanned<IgnoredAny>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Component {
    pub(super) name: Spanned<String>,
    #[serde(rename = "description")]
    _description: Option<IgnoredAny>,
    pub(super) count: Spanned<u32>,
    pub(super) choice: Choice,
    /// What the choice says in more words: the type of a custom component, or nothing.
    #[serde(rename = "custom")]
    _custom: Option<IgnoredAny>,
    #[serde(rename = "device")]
    _device: Option<IgnoredAny>,
    #[serde(rename = "cpu")]
    _cpu: Option<IgnoredAny>,
    #[serde(rename = "xpu")]
    _xpu: Option<IgnoredAny>,
    #[serde(rename = "nic")]
    _nic: Option<IgnoredAny>,
    #[serde(rename = "memory")]
    _memory: Option<IgnoredAny>,
    #[serde(rename = "port")]
    _port: Option<IgnoredAny>,
    #[serde(rename = "switch")]
    _switch: Option<IgnoredAny>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Choice {
    Custom,
    Device,
    Cpu,
    Xpu,
    Nic,
    Memory,
    Port,
    Switch,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Instance {
    pub(super) name: Spanned<String>,
    #[serde(rename = "description")]
    _description: Option<IgnoredAny>,
    pub(super) device: Spanned<String>,
    pub(super) count: Spanned<u32>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Link {
    pub(super) name: Spanned<String>,
    #[serde(rename = "description")]
    _description: Option<IgnoredAny>,
    pub(super) physical: Option<Physical>,
    /// Of older forms, where it stands in `physical` now.
    pub(super) bandwidth: Option<Spanned<IgnoredAny>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Physical {
    pub(super) bandwidth: Option<Spanned<Bandwidth>>,
    pub(super) latency: Option<Spanned<Latency>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Bandwidth {
    #[serde(rename = "choice")]
    _choice: Option<String>,
    pub(super) gigabits_per_second: Option<f64>,
    pub(super) gigabytes_per_second: Option<f64>,
    pub(super) gigatransfers_per_second: Option<f64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Latency {
    #[serde(rename = "choice")]
    _choice: Option<String>,
    pub(super) ms: Option<f64>,
    pub(super) us: Option<f64>,
    pub(super) ns: Option<f64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct DeviceEdge {
    pub(super) ep1: DeviceEndpoint,
    pub(super) ep2: DeviceEndpoint,
    /// Only how often an edge inside a device is there depends on it, and that is not read.
    #[serde(rename = "scheme")]
    _scheme: Option<Scheme>,
    pub(super) link: Spanned<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct DeviceEndpoint {
    pub(super) device: Option<String>,
    pub(super) component: Spanned<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Edge {
    pub(super) ep1: Endpoint,
    pub(super) ep2: Endpoint,
    pub(super) scheme: Option<Spanned<Scheme>>,
    pub(super) link: Spanned<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Endpoint {
    pub(super) instance: Spanned<String>,
    pub(super) component: Spanned<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Scheme {
    One2one,
    Many2many,
    Ring,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Annotations {
    #[serde(default)]
    pub(super) nodes: Vec<NodeAnnotation>,
    /// Attributes of edges, links and the graph have no meaning for a network.
    #[serde(rename = "edges")]
    _edges: Option<IgnoredAny>,
    #[serde(rename = "links")]
    _links: Option<IgnoredAny>,
    #[serde(rename = "graph")]
    _graph: Option<IgnoredAny>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct NodeAnnotation {
    pub(super) name: Spanned<String>,
    #[serde(default)]
    pub(super) attributes: Vec<Attribute>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Attribute {
    pub(super) attribute: String,
    pub(super) value: Spanned<String>,
}
