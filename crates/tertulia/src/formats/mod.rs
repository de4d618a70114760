//! Foreign forms of a session, one file each. At rest there is only the line of [`crate::entry`].
//!
//! | form | written | read |
//! |---|---|---|
//! | [`json`] | yes: the object that every `--json` answer shows | no |
//! | [`jsonl`] | yes: the log itself, line by line | yes |
//! | [`claude_master`] | no | yes: what claude-master kept of an instructor and a worker |
//! | [`markdown`] | yes, for people | no |
//! | [`openagent_terminal`] | no | yes: the session files of openagent-terminal |
//! | [`snapshot`] | yes: a team's talk as one document | yes |
//!
//! What another program kept is a [`foreign`] talk before it becomes entries.

pub mod claude_master;
pub mod foreign;
pub mod json;
pub mod jsonl;
pub mod markdown;
pub mod openagent_terminal;
pub mod snapshot;
