//! The rows of a series, one by one.

use netloom_record::Series;

use crate::run::error::RunError;

pub(crate) fn rows<R: netloom_record::SeriesRow>(
    series: &Series<R>,
) -> Result<impl Iterator<Item = Result<R, RunError>> + '_, RunError> {
    let broken = |error| RunError::Series(netloom_record::SeriesError::from(error));
    Ok(series.rows().map_err(broken)?.map(move |row| row.map_err(broken)))
}
