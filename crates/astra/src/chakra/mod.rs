//! What is read of an execution trace's messages (MLCommons Chakra, `et_def.proto`, of all versions up to 1.0.0); other fields are skipped.
//!
//! A file has one message after the other, a length before each: [`GlobalMetadata`] first, then every [`Node`]. [`read`] takes that, the same messages in
//! JSON, and either compressed by gzip.
//!
//! Traces that `chakra_converter` made of PyTorch's and Kineto's are read as they come: a node without `comm_type` does what its name says, by the
//! converter's own rule; operations of the CPU that only launch a collective, send or receive ([`Node::is_launch`]) take their time on the CPU; numbers may be text.

mod file;
mod json;

use std::fmt::Display;
use std::path::Path;

use netloom_units::names::shorten;
use serde::Deserialize;
use serde::de::IntoDeserializer;
use serde::de::value::Error as Unknown;

pub use self::file::{Trace, encode, note, read};
use crate::error::JobError;

/// Begins a file.
#[derive(Clone, PartialEq, prost::Message)]
pub struct GlobalMetadata {
    /// Version of the format.
    #[prost(string, tag = "1")]
    pub version: String,
}

/// A node of the trace: something that a rank does.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Node {
    /// Its number, unique in the file.
    #[prost(uint64, tag = "1")]
    pub id: u64,
    /// What it is called.
    #[prost(string, tag = "2")]
    pub name: String,
    /// What it does: a [`NodeType`].
    #[prost(enumeration = "NodeType", tag = "3")]
    pub kind: i32,
    /// Nodes that it waits for.
    #[prost(uint64, repeated, tag = "4")]
    pub ctrl_deps: Vec<u64>,
    /// Nodes whose results it waits for.
    #[prost(uint64, repeated, tag = "5")]
    pub data_deps: Vec<u64>,
    /// How long it takes, in microseconds.
    #[prost(uint64, tag = "7")]
    pub duration_micros: u64,
    /// What it takes in.
    #[prost(message, optional, tag = "8")]
    pub inputs: Option<Values>,
    /// Attributes by name.
    #[prost(message, repeated, tag = "10")]
    pub attr: Vec<Attribute>,
}

/// What a node does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, prost::Enumeration, serde::Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
#[repr(i32)]
pub enum NodeType {
    /// Nothing.
    Invalid = 0,
    /// Says something of the training, such as its process groups.
    Metadata = 1,
    /// Loads from remote memory.
    MemLoad = 2,
    /// Stores to remote memory.
    MemStore = 3,
    /// Computes.
    Comp = 4,
    /// Sends a message.
    CommSend = 5,
    /// Receives a message.
    CommRecv = 6,
    /// Takes part in a collective operation.
    CommColl = 7,
    /// Reads or writes files.
    Storage = 8,
    /// Loads training data.
    Batch = 9,
    /// Writes a checkpoint.
    Checkpoint = 10,
}

/// A named value of a node.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Attribute {
    /// Its name.
    #[prost(string, tag = "1")]
    pub name: String,
    /// Its value; `None` if it has a type that is not read.
    #[prost(oneof = "Value", tags = "3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 28, 29")]
    pub value: Option<Value>,
}

/// The values that are read; of lists those of truth values only.
#[derive(Clone, PartialEq, prost::Oneof)]
#[expect(missing_docs, reason = "the types of protobuf")]
pub enum Value {
    #[prost(double, tag = "3")]
    Double(f64),
    #[prost(float, tag = "5")]
    Float(f32),
    #[prost(int32, tag = "7")]
    Int32(i32),
    #[prost(int64, tag = "9")]
    Int64(i64),
    #[prost(uint32, tag = "11")]
    Uint32(u32),
    #[prost(uint64, tag = "13")]
    Uint64(u64),
    #[prost(sint32, tag = "15")]
    Sint32(i32),
    #[prost(sint64, tag = "17")]
    Sint64(i64),
    #[prost(fixed32, tag = "19")]
    Fixed32(u32),
    #[prost(fixed64, tag = "21")]
    Fixed64(u64),
    #[prost(sfixed32, tag = "23")]
    Sfixed32(i32),
    #[prost(sfixed64, tag = "25")]
    Sfixed64(i64),
    #[prost(bool, tag = "27")]
    Bool(bool),
    #[prost(message, tag = "28")]
    Bools(BoolList),
    #[prost(string, tag = "29")]
    Text(String),
}

/// A list of truth values.
#[derive(Clone, PartialEq, prost::Message)]
pub struct BoolList {
    /// The values.
    #[prost(bool, repeated, tag = "1")]
    pub values: Vec<bool>,
}

/// What a node takes in or gives.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Values {
    /// The values as text.
    #[prost(string, tag = "1")]
    pub values: String,
}

/// A collective operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, prost::Enumeration, serde::Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
#[repr(i32)]
#[expect(missing_docs, reason = "the operations of MPI")]
pub enum CommType {
    AllReduce = 0,
    Reduce = 1,
    AllGather = 2,
    Gather = 3,
    Scatter = 4,
    Broadcast = 5,
    AllToAll = 6,
    ReduceScatter = 7,
    ReduceScatterBlock = 8,
    Barrier = 9,
}

impl CommType {
    fn number(self) -> u8 {
        self as u8
    }

    /// What the kernel of a collective operation is called, in lower case without `_` and `-`: by this `chakra_converter` knows the operation.
    const KERNELS: [(&'static str, CommType); 5] = [
        ("allreduce", CommType::AllReduce),
        ("alltoall", CommType::AllToAll),
        ("allgather", CommType::AllGather),
        ("reducescatter", CommType::ReduceScatter),
        ("broadcast", CommType::Broadcast),
    ];

    /// The operation of a kernel of this name. Collectives of NCCL's sends and receives are all-to-alls.
    fn of_kernel(name: &str) -> Option<Self> {
        let plain = name.replace(['_', '-'], "").to_lowercase();
        let found = CommType::KERNELS.into_iter().find(|(kernel, _)| plain.contains(kernel));
        let is_pairwise = || name.contains("ncclDevKernel_SendRecv");
        found.map(|(_, operation)| operation).or_else(|| is_pairwise().then_some(CommType::AllToAll))
    }
}

/// The variant of an enumeration that has this name.
fn named<'a, T: Deserialize<'a>>(name: &'a str) -> Option<T> {
    let found: Result<T, Unknown> = T::deserialize(name.into_deserializer());
    found.ok()
}

impl Value {
    /// A whole number that is not negative, as a number or as text.
    pub fn whole(&self) -> Option<u64> {
        match self {
            Value::Int32(value) | Value::Sint32(value) | Value::Sfixed32(value) => (*value).try_into().ok(),
            Value::Int64(value) | Value::Sint64(value) | Value::Sfixed64(value) => (*value).try_into().ok(),
            Value::Uint32(value) | Value::Fixed32(value) => Some((*value).into()),
            Value::Uint64(value) | Value::Fixed64(value) => Some(*value),
            Value::Bool(value) => Some((*value).into()),
            Value::Text(text) => text.trim().parse().ok(),
            Value::Double(_) | Value::Float(_) | Value::Bools(_) => None,
        }
    }
}

impl Node {
    /// An attribute by name; of several the first.
    pub fn attribute(&self, name: &str) -> Option<&Value> {
        self.attr.iter().find(|attribute| attribute.name == name)?.value.as_ref()
    }

    /// What is wrong with this node of a file.
    pub fn fail(&self, file: &Path, problem: impl Display) -> JobError {
        JobError::file(file, format!("node {} \"{}\": {problem}", self.id, shorten(&self.name)))
    }

    /// The nodes that it waits for, ascending.
    pub fn waits(&self) -> Vec<u64> {
        let mut waits = [&self.ctrl_deps[..], &self.data_deps].concat();
        waits.sort_unstable();
        waits.dedup();
        waits
    }

    /// Whether it has `is_cpu_op`.
    ///
    /// # Errors
    /// If that is no truth value.
    pub fn is_on_cpu(&self) -> Result<bool, String> {
        let Some(value) = self.attribute("is_cpu_op") else { return Ok(false) };
        match (value, value.whole()) {
            (_, Some(number)) => Ok(number != 0),
            (Value::Text(text), _) if text.eq_ignore_ascii_case("true") => Ok(true),
            (Value::Text(text), _) if text.eq_ignore_ascii_case("false") => Ok(false),
            _ => Err(format!("is_cpu_op: expected a truth value, found {value:?}")),
        }
    }

    /// Whether it is an operation of the CPU that launches communication, of which another node is the transfer: it says neither what nor how much.
    pub fn is_launch(&self) -> bool {
        let is_communication = matches!(
            NodeType::try_from(self.kind),
            Ok(NodeType::CommColl | NodeType::CommSend | NodeType::CommRecv)
        );
        let says = |name| self.attribute(name).is_some();
        is_communication && self.is_on_cpu() == Ok(true) && !says("comm_type") && !says("comm_size")
    }

    /// The number of its [`CommType`]: `comm_type`, or what its name says.
    ///
    /// # Errors
    /// If neither says it.
    pub fn comm_type(&self) -> Result<u64, String> {
        let of = |operation: CommType| u64::from(operation.number());
        match self.attribute("comm_type") {
            Some(value) => {
                let named = || match value {
                    Value::Text(name) => named(&name.trim().to_uppercase()).map(of),
                    _ => None,
                };
                let wrong = || {
                    format!(
                        "comm_type: expected a number such as 0, or a name such as \"ALL_REDUCE\", found {value:?}"
                    )
                };
                value.whole().or_else(named).ok_or_else(wrong)
            }
            None => {
                let missing = "expected an attribute `comm_type`, or a name with the operation, such as ncclDevKernel_AllReduce_Sum_f32_RING_LL";
                CommType::of_kernel(&self.name).map(of).ok_or_else(|| missing.to_owned())
            }
        }
    }

    /// The name of its process group, from the first of these attributes that it has.
    ///
    /// # Errors
    /// If that is neither text nor a number.
    pub fn group_name(&self, attributes: &[&str]) -> Result<String, String> {
        let Some((name, value)) = attributes.iter().find_map(|name| Some((name, self.attribute(name)?)))
        else {
            return Ok(String::new());
        };
        match (value, value.whole()) {
            (Value::Text(text), _) => Ok(text.clone()),
            (_, Some(number)) => Ok(number.to_string()),
            _ => Err(format!("{name}: expected the name of a group, found {value:?}")),
        }
    }
}
