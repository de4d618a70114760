//! Keys that a settings file may have: all others are warned about.

/// Keys before the first table, and names of tables.
pub(super) const TOP_KEYS: &[&str] = &[
    "store",
    "redact",
    "lock_timeout",
    "agent",
    "agents",
    "approve",
    "retention",
    "prices",
    "auto_tags",
    "project_instructions",
    "team_summary",
    "shell_timeout",
    "author",
    "seal",
    "postgres",
    "sync",
    "notify",
    "theme",
    "keys",
    "vim",
];
/// Keys of `[postgres]`.
pub(super) const POSTGRES_KEYS: &[&str] = &["password_command"];
/// Keys of `[redact]`.
pub(super) const REDACT_KEYS: &[&str] = &["enabled", "rules"];
/// Keys of `[retention]`.
pub(super) const RETENTION_KEYS: &[&str] = &[
    "max_age",
    "max_count",
    "max_count_per_team",
    "min_age",
    "trash",
    "compress_after",
];
