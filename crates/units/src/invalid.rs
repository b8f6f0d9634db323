//! The one error for a value that makes no sense.

use std::borrow::Cow;
use std::fmt::Display;

use crate::names::shorten;

/// A value that makes no sense: which field, what would be valid, and what was found.
///
/// Every check of a parameter ends in this error, whatever crate it stands in, so that the caller that knows where the field was
/// written (a line of a scenario, an option, a row of a table) can point at it. A crate's own error type holds it as
/// one variant, `Parameter(#[from] Invalid)` with `#[error(transparent)]`, or is it altogether:
///
/// ```
/// use netloom_units::Invalid;
///
/// fn check(ack_every: u32, loss: f64) -> Result<(), Invalid> {
///     Invalid::at_least("ack_every", ack_every, 1)?;
///     Invalid::unless((0.0..1.0).contains(&loss), "loss", "0 or more, below 1", loss)
/// }
///
/// let error = check(0, 0.0).unwrap_err().within("transport");
/// assert_eq!(error.to_string(), "transport.ack_every: expected at least 1, found 0");
/// assert!(check(1, f64::NAN).is_err());
/// ```
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{field}: expected {expected}, found {found}")]
pub struct Invalid {
    /// The field as the user writes it, dotted from the table that was checked, e.g. `size.scale` or `parts.1.load`.
    pub field: Cow<'static, str>,
    /// What would be valid.
    pub expected: String,
    /// What was given.
    pub found: String,
}

impl Invalid {
    /// The error for a field. What was found is cut where it is long.
    pub fn new(
        field: impl Into<Cow<'static, str>>,
        expected: impl Into<String>,
        found: impl Display,
    ) -> Self {
        let found = shorten(&found.to_string()).into_owned();
        Invalid { field: field.into(), expected: expected.into(), found }
    }

    /// Passes if `valid` holds.
    ///
    /// # Errors
    /// The error for the field otherwise.
    pub fn unless(
        valid: bool,
        field: impl Into<Cow<'static, str>>,
        expected: impl Into<String>,
        found: impl Display,
    ) -> Result<(), Self> {
        if valid { Ok(()) } else { Err(Invalid::new(field, expected, found)) }
    }

    /// Refuses values below a least one.
    ///
    /// # Errors
    /// If `value` is below `least`, or no number.
    pub fn at_least<T: PartialOrd + Display>(
        field: impl Into<Cow<'static, str>>,
        value: T,
        least: T,
    ) -> Result<(), Self> {
        Self::unless(value >= least, field, format!("at least {least}"), value)
    }

    /// Refuses what is no number above zero: zero, negative numbers, infinity and NaN.
    ///
    /// # Errors
    /// If `value` is no number above zero.
    pub fn positive(field: impl Into<Cow<'static, str>>, value: f64) -> Result<(), Self> {
        Self::unless(value > 0.0 && value.is_finite(), field, "a number above 0", value)
    }

    /// The same error of a field inside a table `outer` of a larger whole.
    #[must_use]
    pub fn within(self, outer: &str) -> Self {
        Invalid { field: format!("{outer}.{}", self.field).into(), ..self }
    }

    /// What is wrong without the field's name, for messages that name the field themselves.
    pub fn reason(&self) -> String {
        format!("expected {}, found {}", self.expected, self.found)
    }
}
