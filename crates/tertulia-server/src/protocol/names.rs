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
    /// Low-risk tools and edits of files run; others need permission.
    Edits,
    /// Low-risk tools run; others are denied.
    Low,
    /// All tools run.
    All,
    /// There are no tools.
    None,
}

/// Answers to a permission request.
#[derive(JsonSchema)]
#[serde(rename_all = "snake_case")]
#[expect(dead_code, reason = "only its names count: the library has the type")]
pub(super) enum VerdictName {
    /// Allow this tool call.
    Yes,
    /// Allow this tool call and all similar ones in this session.
    Always,
    /// Deny this tool call.
    No,
}
