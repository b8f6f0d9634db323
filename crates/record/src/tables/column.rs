//! Columns: what a record's field looks like in a table, and how it comes back.

use netloom_parquet::{Cell, Error, RowGroup};

use crate::records::Records;

/// The names that stand in the tables where records hold numbers.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Names {
    /// Kinds of traffic.
    pub(crate) groups: Vec<String>,
    /// Measured intervals of time.
    pub(crate) windows: Vec<String>,
    /// Jobs.
    pub(crate) jobs: Vec<String>,
    /// Whether the numbers themselves stand there, as nobody reads the table but who wrote it.
    pub(crate) are_numbers: bool,
}

impl Names {
    /// The names of a run.
    pub(crate) fn of(records: &Records) -> Self {
        Names {
            groups: records.groups.clone(),
            windows: records.windows.iter().map(|window| window.name.clone()).collect(),
            jobs: records.jobs.jobs.iter().map(|job| job.name.clone()).collect(),
            are_numbers: false,
        }
    }

    /// Those of temporary tables: numbers in their stead.
    pub(crate) fn numbers() -> Self {
        Names { are_numbers: true, ..Names::default() }
    }
}

/// How a field of a record comes back from a column.
pub(super) trait Column<V> {
    fn read(&self, group: &RowGroup<'_>, names: &Names) -> Result<Vec<V>, Error>;
}

/// A column that holds a field's value itself.
pub(super) struct Plain(pub(super) &'static str);

impl<C: Cell> Column<C> for Plain {
    fn read(&self, group: &RowGroup<'_>, _: &Names) -> Result<Vec<C>, Error> {
        group.column(self.0)
    }
}

/// A column that lacks a value where the field has none.
pub(super) struct Optional(pub(super) &'static str);

impl<C: Cell> Column<Option<C>> for Optional {
    fn read(&self, group: &RowGroup<'_>, _: &Names) -> Result<Vec<Option<C>>, Error> {
        group.optional_column(self.0)
    }
}

/// A column of names, where the record holds a place in a list of them.
pub(super) struct Name(pub(super) &'static str, pub(super) fn(&Names) -> &[String]);

impl Column<u16> for Name {
    fn read(&self, group: &RowGroup<'_>, names: &Names) -> Result<Vec<u16>, Error> {
        if names.are_numbers {
            let number = |text: String| {
                text.parse().map_err(|_| Error::Unknown { column: self.0.to_owned(), name: text })
            };
            return group.column::<String>(self.0)?.into_iter().map(number).collect();
        }
        let places = group.places(self.0, (self.1)(names))?;
        let narrow = |place: usize| {
            let name = || (self.1)(names).get(place).cloned().unwrap_or_default();
            u16::try_from(place).map_err(|_| Error::Unknown { column: self.0.to_owned(), name: name() })
        };
        places.into_iter().map(narrow).collect()
    }
}
