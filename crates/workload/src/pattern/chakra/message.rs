//! What is read of an execution trace's messages (MLCommons Chakra, `et_def.proto`); other fields are skipped.

use std::collections::HashMap;

/// Begins a file.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct GlobalMetadata {
    #[prost(string, tag = "1")]
    pub(super) version: String,
}

/// A node of the trace: something that a rank does.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct Node {
    #[prost(uint64, tag = "1")]
    pub(super) id: u64,
    #[prost(string, tag = "2")]
    pub(super) name: String,
    #[prost(enumeration = "NodeType", tag = "3")]
    pub(super) kind: i32,
    #[prost(uint64, repeated, tag = "4")]
    pub(super) ctrl_deps: Vec<u64>,
    #[prost(uint64, repeated, tag = "5")]
    pub(super) data_deps: Vec<u64>,
    #[prost(uint64, tag = "7")]
    pub(super) duration_micros: u64,
    #[prost(message, repeated, tag = "10")]
    pub(super) attr: Vec<Attribute>,
}

/// What a node does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, prost::Enumeration)]
#[repr(i32)]
pub(super) enum NodeType {
    Invalid = 0,
    Metadata = 1,
    MemLoad = 2,
    MemStore = 3,
    Comp = 4,
    CommSend = 5,
    CommRecv = 6,
    CommColl = 7,
    Storage = 8,
    Batch = 9,
    Checkpoint = 10,
}

/// A named value of a node.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct Attribute {
    #[prost(string, tag = "1")]
    pub(super) name: String,
    #[prost(oneof = "Value", tags = "7, 11, 13, 27, 29, 3, 5, 9")]
    pub(super) value: Option<Value>,
}

/// The values that are read; lists are not.
#[derive(Clone, PartialEq, prost::Oneof)]
pub(super) enum Value {
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
    #[prost(bool, tag = "27")]
    Bool(bool),
    #[prost(string, tag = "29")]
    Text(String),
}

impl Value {
    /// A whole number that is not negative.
    pub(super) fn whole(&self) -> Option<u64> {
        match *self {
            Value::Int32(value) => value.try_into().ok(),
            Value::Int64(value) => value.try_into().ok(),
            Value::Uint32(value) => Some(value.into()),
            Value::Uint64(value) => Some(value),
            Value::Bool(value) => Some(value.into()),
            Value::Double(_) | Value::Float(_) | Value::Text(_) => None,
        }
    }
}

impl Node {
    /// The attributes by name.
    pub(super) fn attributes(&self) -> HashMap<&str, Option<&Value>> {
        self.attr.iter().map(|attribute| (attribute.name.as_str(), attribute.value.as_ref())).collect()
    }
}
