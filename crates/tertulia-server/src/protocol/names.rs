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

/// Tool policies.
#[derive(JsonSchema)]
#[serde(rename_all = "snake_case")]
#[expect(dead_code, reason = "only its names count: the library has the type")]
pub(super) enum ApproveName {
    /// Low-risk tools run; others need permission.
    Ask,
    /// Low-risk tools run; others are denied.
    Low,
    /// All tools run.
    All,
    /// There are no tools.
    None,
}
