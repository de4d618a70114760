//! Names of values whose types are elsewhere, for the JSON Schema.

use schemars::JsonSchema;

/// Kinds of sessions.
#[derive(JsonSchema)]
#[serde(rename_all = "snake_case")]
#[expect(dead_code, reason = "only its schema is used")]
pub(super) enum KindName {
    Chat,
    Team,
    Pair,
}

/// The tool policies.
#[derive(JsonSchema)]
#[serde(rename_all = "snake_case")]
#[expect(dead_code, reason = "only its names count: the library has the type")]
pub(super) enum ApproveName {
    /// Low risk runs at once, the rest is asked about.
    Ask,
    /// Low risk runs at once, the rest is refused.
    Low,
    /// Everything runs.
    All,
    /// There are no tools.
    None,
}
