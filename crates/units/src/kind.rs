//! Closed sets of named kinds with documented parameters.
//!
//! An axis of a scenario (the selector of a routing scheme, the pattern of a workload) is an enum whose variants
//! each hold a config struct. [`kinds!`](crate::kinds) declares such an enum; from the one declaration come the
//! names a user may write, the reader of each kind's table, and the reference that `netloom list` prints
//! (descriptions and defaults are taken from the config struct's doc comments and `Default`).
//!
//! ```
//! use netloom_units::kind::Kind;
//! use netloom_units::{Time, kinds};
//!
//! /// Re-decides after an idle gap.
//! #[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
//! #[serde(deny_unknown_fields, default)]
//! pub struct Flowlet {
//!     /// Idle time after which a new path may be taken.
//!     pub gap: Time,
//! }
//! impl Default for Flowlet {
//!     fn default() -> Self {
//!         Flowlet { gap: Time::from_us(100) }
//!     }
//! }
//!
//! kinds! {
//!     /// When a scheme may decide anew.
//!     pub enum Granularity: "granularity" {
//!         "flowlet" => Flowlet(Flowlet),
//!     }
//! }
//!
//! let info = &Granularity::kinds()[0];
//! assert_eq!((info.name, info.fields[0].default.as_str()), ("flowlet", "\"100us\""));
//! ```

use serde::Deserializer;

/// The reference entry of one kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KindInfo {
    /// The name a user writes as `kind = "…"`.
    pub name: &'static str,
    /// What it does and which paper it comes from.
    pub doc: String,
    /// Its parameters, in declaration order.
    pub fields: Vec<FieldInfo>,
}

/// The reference entry of one parameter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldInfo {
    /// The name a user writes.
    pub name: String,
    /// What it means, with its unit.
    pub doc: String,
    /// The default as JSON, or an empty string where the field is required or absent by default.
    pub default: String,
}

/// An axis: a closed set of named kinds. Implemented by [`kinds!`](crate::kinds).
pub trait Kind: Sized {
    /// What the axis is called in a scenario, e.g. `selector`.
    const AXIS: &'static str;
    /// Every name, in declaration order.
    const NAMES: &'static [&'static str];

    /// The name of this value's kind.
    fn name(&self) -> &'static str;

    /// The reference entries of all kinds.
    fn kinds() -> Vec<KindInfo>;

    /// Reads the parameters of the kind `name` from a table without its `kind` key.
    ///
    /// Returns `None` if there is no such kind.
    fn read<'de, D: Deserializer<'de>>(name: &str, table: D) -> Option<Result<Self, D::Error>>;
}

/// Extracts the reference entry of a config struct from its schema.
pub fn describe<T: schemars::JsonSchema>(name: &'static str) -> KindInfo {
    let schema = schemars::schema_for!(T).to_value();
    let text = |value: &serde_json::Value, key: &str| {
        value.get(key).and_then(|v| v.as_str()).unwrap_or_default().to_owned()
    };
    let properties = schema.get("properties").and_then(|p| p.as_object());
    let fields = properties.into_iter().flatten().map(|(name, field)| FieldInfo {
        name: name.clone(),
        doc: text(field, "description"),
        default: match field.get("default") {
            None | Some(serde_json::Value::Null) => String::new(),
            Some(value) => value.to_string(),
        },
    });
    KindInfo { name, doc: text(&schema, "description"), fields: fields.collect() }
}

/// Declares an axis: an enum of config structs, one per named kind. See the [module](crate::kind).
///
/// Each config struct must implement `Clone`, `Debug`, `PartialEq`, `Serialize`, `Deserialize` (with
/// `deny_unknown_fields`) and `JsonSchema`; the crate that calls the macro must depend on `serde`.
#[macro_export]
macro_rules! kinds {
    (
        $(#[$meta:meta])*
        $vis:vis enum $Name:ident: $axis:literal {
            $($name:literal => $Variant:ident($Config:ty)),+ $(,)?
        }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Debug, PartialEq, serde::Serialize)]
        #[serde(tag = "kind")]
        $vis enum $Name {
            $(
                #[doc = concat!("`", $name, "`")]
                #[serde(rename = $name)]
                $Variant($Config),
            )+
        }

        impl $crate::kind::Kind for $Name {
            const AXIS: &'static str = $axis;
            const NAMES: &'static [&'static str] = &[$($name),+];

            fn name(&self) -> &'static str {
                match self {
                    $($Name::$Variant(_) => $name,)+
                }
            }

            fn kinds() -> Vec<$crate::kind::KindInfo> {
                vec![$($crate::kind::describe::<$Config>($name)),+]
            }

            fn read<'de, D: serde::Deserializer<'de>>(
                name: &str,
                table: D,
            ) -> Option<Result<Self, D::Error>> {
                match name {
                    $($name => Some(<$Config as serde::Deserialize>::deserialize(table).map($Name::$Variant)),)+
                    _ => None,
                }
            }
        }
    };
}
