//! How large messages are: one size, or a distribution of sizes.

mod cdf;
mod tables;

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use netloom_units::{Bytes, memory};
use schemars::JsonSchema;
use serde::de::{
    self, Deserialize, Deserializer, IntoDeserializer, MapAccess, Visitor, value::MapAccessDeserializer,
};
use serde::{Deserialize as DeriveDeserialize, Serialize};

use crate::random::{RngExt, Stream};
use crate::{PlanContext, WorkloadError};
use cdf::Cdf;

pub use cdf::Sampling;
pub use tables::Table;

/// How large messages are. A user writes
///
/// - a size: `size = "8MiB"`,
/// - the name of a published distribution: `size = "web-search"`,
/// - or a distribution in full: `size = { table = "web-search", sampling = "lower", max = "10MB" }`,
///   `size = { file = "mine.cdf", scale = 0.5 }`.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Size {
    /// Every message has the same size.
    Fixed(Bytes),
    /// Sizes are drawn from a distribution.
    Distribution(SizeDistribution),
}

/// A distribution of message sizes: a published table or a file, one of them.
///
/// A file holds lines of `BYTES SHARE` with the cumulative share from 0 to 1, or 0 to 100 percent.
#[derive(Clone, Debug, PartialEq, Serialize, DeriveDeserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct SizeDistribution {
    /// Name of a published distribution.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub table: Option<Table>,
    /// A file; relative names start from the scenario's folder.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<PathBuf>,
    /// What a draw between two points gives: `interpolate`, `lower` or `upper`.
    pub sampling: Sampling,
    /// Factor on all sizes.
    pub scale: f64,
    /// Sizes above this one (after scaling) become this one; no limit if not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max: Option<Bytes>,
}

impl Default for SizeDistribution {
    fn default() -> Self {
        SizeDistribution { table: None, file: None, sampling: Sampling::default(), scale: 1.0, max: None }
    }
}

impl From<Bytes> for Size {
    fn from(size: Bytes) -> Self {
        Size::Fixed(size)
    }
}

impl From<Table> for Size {
    fn from(table: Table) -> Self {
        Size::Distribution(SizeDistribution { table: Some(table), ..Default::default() })
    }
}

impl<'de> Deserialize<'de> for Size {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Written;
        impl<'de> Visitor<'de> for Written {
            type Value = Size;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(
                    "a size such as \"8MiB\", the name of a distribution, or a table that describes one",
                )
            }
            fn visit_str<E: de::Error>(self, text: &str) -> Result<Size, E> {
                if text.trim() == "enterprise" {
                    return Err(E::custom(
                        "the sizes that CONGA and LetFlow call enterprise were never published as numbers: expected another distribution, or a \
                         file of your own (`size = { file = \"enterprise.cdf\" }`)",
                    ));
                }
                if text.trim_start().starts_with(|c: char| c.is_ascii_alphabetic()) {
                    return Table::deserialize(text.into_deserializer()).map(Size::from);
                }
                text.parse().map(Size::Fixed).map_err(E::custom)
            }
            fn visit_i64<E: de::Error>(self, number: i64) -> Result<Size, E> {
                Bytes::deserialize(number.into_deserializer()).map(Size::Fixed)
            }
            fn visit_u64<E: de::Error>(self, number: u64) -> Result<Size, E> {
                Ok(Size::Fixed(Bytes(number)))
            }
            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Size, A::Error> {
                SizeDistribution::deserialize(MapAccessDeserializer::new(map)).map(Size::Distribution)
            }
        }
        deserializer.deserialize_any(Written)
    }
}

impl JsonSchema for Size {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Size".into()
    }
    fn inline_schema() -> bool {
        true
    }
    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({
            "anyOf": [
                generator.subschema_for::<Bytes>(),
                generator.subschema_for::<Table>(),
                generator.subschema_for::<SizeDistribution>(),
            ]
        })
    }
}

impl Size {
    /// Checks the size and reads the file, if there is one.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "positive; saturates, and check_message refuses that"
    )]
    pub(crate) fn sampler(&self, context: &PlanContext) -> Result<Sampler, WorkloadError> {
        match self {
            Size::Fixed(Bytes(0)) => Err(WorkloadError::parameter("size", "at least one byte", 0)),
            Size::Fixed(size) => match context.check_message(*size) {
                Ok(()) => Ok(Sampler::Fixed(*size)),
                Err(expected) => Err(WorkloadError::parameter("size", expected, size)),
            },
            Size::Distribution(distribution) => {
                let cdf = distribution.cdf(context)?;
                let largest = Bytes(cdf.largest().ceil() as u64);
                match context.check_message(largest) {
                    Ok(()) => Ok(Sampler::Cdf(Arc::new(cdf))),
                    Err(expected) => Err(WorkloadError::parameter(
                        "size",
                        format!("a largest size of {expected}"),
                        largest,
                    )),
                }
            }
        }
    }

    /// The mean size in bytes, by which a load becomes an arrival rate.
    ///
    /// # Errors
    /// If the size is zero, or a distribution or its file is wrong.
    pub fn mean(&self, context: &PlanContext) -> Result<f64, WorkloadError> {
        self.sampler(context).map(|sampler| sampler.mean())
    }
}

impl SizeDistribution {
    fn cdf(&self, context: &PlanContext) -> Result<Cdf, WorkloadError> {
        if !(self.scale > 0.0 && self.scale.is_finite()) {
            return Err(WorkloadError::parameter("size.scale", "a number above 0", self.scale));
        }
        if self.max == Some(Bytes(0)) {
            return Err(WorkloadError::parameter("size.max", "at least one byte", 0));
        }
        let max = self.max.map_or(f64::INFINITY, |max| max.0 as f64);
        let parse = |text: &str, file: &Path| Cdf::parse(text, file, self.sampling, self.scale, max);
        match (&self.table, &self.file) {
            (Some(table), None) => parse(table.text(), Path::new(table.name())),
            (None, Some(file)) => {
                let file = context.file(file);
                // The text and its points.
                let text = memory::read_text(&file, 16);
                parse(&text.map_err(|source| WorkloadError::Read { file: file.clone(), source })?, &file)
            }
            (table, _) => {
                let found = if table.is_some() { "both" } else { "neither" };
                Err(WorkloadError::parameter("size", "either `table` or `file`", found))
            }
        }
    }
}

/// Draws sizes; cheap to clone.
#[derive(Clone, Debug)]
pub(crate) enum Sampler {
    Fixed(Bytes),
    Cdf(Arc<Cdf>),
}

impl Sampler {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "positive, and at most the largest size, which Size::sampler checks"
    )]
    pub(crate) fn draw(&self, rng: &mut Stream) -> Bytes {
        match self {
            Sampler::Fixed(size) => *size,
            // Some tables begin at zero, and no message is empty.
            Sampler::Cdf(cdf) => Bytes((cdf.quantile(rng.random()).round() as u64).max(1)),
        }
    }

    pub(crate) fn mean(&self) -> f64 {
        match self {
            Sampler::Fixed(size) => size.0 as f64,
            Sampler::Cdf(cdf) => cdf.mean(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Work;

    /// Name, mean when interpolated, lower, upper; median and 90th percentile when interpolated.
    const PUBLISHED: [(&str, [f64; 5]); 13] = [
        ("web-search", [1711250.0, 987600.0, 2434900.0, 73077.0, 5000000.0]),
        ("web-search-ns2", [1710004.0, 986954.0, 2433055.0, 68571.0, 5000000.0]),
        ("fb-hadoop", [120421.0, 56945.0, 183897.0, 700.0, 120000.0]),
        ("fb-hadoop-2015", [121849.0, 115901.0, 127797.0, 655.0, 119336.0]),
        ("ali-storage-2019", [40869.8, 14690.0, 67050.0, 6340.0, 31237.0]),
        ("google-rpc-2008", [2967.9, 2536.0, 3400.0, 246.0, 1716.0]),
        ("solar-2022", [39423.5, 31743.0, 47104.0, 16384.0, 65536.0]),
        ("data-mining", [12658199.0, 2116599.0, 23199799.0, 1100.0, 400000.0]),
        ("data-mining-ns2", [7487884.0, 1147974.0, 13827793.0, 6288.0, 390541.0]),
        ("vl2", [7674900.0, 1149150.0, 14200650.0, 1500.0, 400500.0]),
        ("hadoop-hkust", [4248592.0, 1286670.0, 7210515.0, 75000.0, 240000.0]),
        ("cache-follower", [712574.0, 622205.0, 802942.0, 30000.0, 2400000.0]),
        ("web-server", [66121.0, 46372.0, 85870.0, 3100.0, 300000.0]),
    ];

    fn read(written: &str) -> Result<Size, toml::de::Error> {
        #[derive(Debug, DeriveDeserialize)]
        struct Scenario {
            size: Size,
        }
        toml::from_str::<Scenario>(&format!("size = {written}")).map(|scenario| scenario.size)
    }

    #[test]
    fn sizes_without_published_numbers_are_refused_by_name() {
        let message = read("\"enterprise\"").unwrap_err().to_string();
        assert!(message.contains("never published as numbers"), "{message}");
    }

    fn close(found: f64, expected: f64) -> bool {
        (found / expected - 1.0).abs() < 1e-3
    }

    #[test]
    fn every_table_has_its_published_figures() {
        assert_eq!(
            PUBLISHED.map(|(name, _)| name)[..],
            Table::ALL.iter().map(|t| t.name()).collect::<Vec<_>>()
        );
        for (table, (name, [mean, lower, upper, median, p90])) in Table::ALL.iter().zip(PUBLISHED) {
            let cdf = |sampling| {
                let distribution = SizeDistribution { table: Some(*table), sampling, ..Default::default() };
                distribution.cdf(&PlanContext::new(0)).unwrap()
            };
            assert!(close(cdf(Sampling::Interpolate).mean(), mean), "{name}");
            assert!(close(cdf(Sampling::Lower).mean(), lower), "{name}");
            assert!(close(cdf(Sampling::Upper).mean(), upper), "{name}");
            let cdf = cdf(Sampling::Interpolate);
            // Quantiles are published in whole bytes.
            assert!(close(cdf.quantile(0.5).round(), median), "{name}");
            assert!(close(cdf.quantile(0.9).round(), p90), "{name}");
            assert!(table.source().len() > 20);
        }
    }

    #[test]
    fn draws_have_the_mean_of_the_table() {
        let sampler = Size::from(Table::WebSearch).sampler(&PlanContext::new(0)).unwrap();
        let mut rng = Work::Host.stream(1, 0);
        let draws = 200_000;
        let sum: u64 = (0..draws).map(|_| sampler.draw(&mut rng).0).sum();
        // Standard deviation of one size 4.6 MB, of the mean 10 kB.
        assert!((sum as f64 / f64::from(draws) - 1_711_250.0).abs() < 40_000.0);
    }

    #[test]
    fn no_draw_is_empty() {
        let size = read("{ table = 'web-search', sampling = 'lower' }").unwrap();
        let sampler = size.sampler(&PlanContext::new(0)).unwrap();
        let mut rng = Work::Host.stream(1, 0);
        assert_eq!((0..100).map(|_| sampler.draw(&mut rng)).min(), Some(Bytes(1)));
    }

    #[test]
    fn a_size_is_written_in_several_ways() {
        assert_eq!(read("'8MiB'").unwrap(), Size::Fixed(Bytes(8 << 20)));
        assert_eq!(read("1500").unwrap(), Size::Fixed(Bytes(1500)));
        assert_eq!(read("'vl2'").unwrap(), Size::from(Table::Vl2));
        let full = SizeDistribution {
            table: Some(Table::FbHadoop2015),
            sampling: Sampling::Upper,
            scale: 0.5,
            max: Some(Bytes(1000)),
            file: None,
        };
        let written = "{ table = 'fb-hadoop-2015', sampling = 'upper', scale = 0.5, max = '1KB' }";
        assert_eq!(read(written).unwrap(), Size::Distribution(full));
    }

    #[test]
    fn wrong_sizes_are_refused() {
        for (written, expected) in [
            ("'8 parsecs'", "units: GiB"),
            ("-1", "a size"),
            ("'web-serch'", "expected one of `web-search`"),
            ("{ tabel = 'vl2' }", "unknown field `tabel`"),
            ("true", "the name of a distribution"),
        ] {
            let error = read(written).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
        for written in [
            "0",
            "{ sampling = 'lower' }",
            "{ table = 'vl2', file = 'x' }",
            "{ table = 'vl2', scale = 0.0 }",
            "{ table = 'vl2', scale = nan }",
            "{ table = 'vl2', max = 0 }",
            "{ file = 'absent.cdf' }",
        ] {
            assert!(read(written).unwrap().sampler(&PlanContext::new(0)).is_err(), "{written}");
        }
    }
}
