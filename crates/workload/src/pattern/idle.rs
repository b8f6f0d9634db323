//! Nobody sends anything by itself.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::WorkloadError;
use crate::plan::{HostWork, Plan, Setting};

/// No traffic: hosts send only what the program that drives the run starts (see `docs/python.md`).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Idle {}

impl Idle {
    pub(super) fn build(&self, setting: &Setting) -> Result<Plan, WorkloadError> {
        Ok(setting.plan(Some(0), |_, _| HostWork::default()))
    }
}
