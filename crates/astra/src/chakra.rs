//! What is read of an execution trace's messages (MLCommons Chakra, `et_def.proto`); other fields are skipped.
//!
//! A file has one message after the other, a length before each: [`GlobalMetadata`] first, then every [`Node`].

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
#[derive(Clone, Copy, Debug, PartialEq, Eq, prost::Enumeration)]
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

impl Value {
    /// A whole number that is not negative.
    pub fn whole(&self) -> Option<u64> {
        match *self {
            Value::Int32(value) | Value::Sint32(value) | Value::Sfixed32(value) => value.try_into().ok(),
            Value::Int64(value) | Value::Sint64(value) | Value::Sfixed64(value) => value.try_into().ok(),
            Value::Uint32(value) | Value::Fixed32(value) => Some(value.into()),
            Value::Uint64(value) | Value::Fixed64(value) => Some(value),
            Value::Bool(value) => Some(value.into()),
            Value::Double(_) | Value::Float(_) | Value::Bools(_) | Value::Text(_) => None,
        }
    }
}

impl Node {
    /// An attribute by name; of several the first.
    pub fn attribute(&self, name: &str) -> Option<&Value> {
        self.attr.iter().find(|attribute| attribute.name == name)?.value.as_ref()
    }
}
