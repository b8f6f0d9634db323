//! Studies.
mod expression;
pub use expression::{Expression, ExpressionError, Metrics, Outcome, Sample, significant};
