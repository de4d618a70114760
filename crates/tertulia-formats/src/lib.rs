//! Foreign forms of a session, one file each. At rest there is only the line of [`tertulia_core::entry`].
//!
//! | form | written | read |
//! |---|---|---|
//! | [`json`] | yes: the object that every `--json` answer shows | no |
//! | [`jsonl`](tertulia_core::jsonl) | yes: the log itself, line by line | yes |
//! | [`claude_master`] | no | yes: what claude-master kept of an instructor and a worker |
//! | [`markdown`] | yes, for people | no |
//! | [`openagent_terminal`] | no | yes: the session files of openagent-terminal |
//! | [`snapshot`] | yes: a team's talk as one document | yes |
//!
//! What another program kept is a [`foreign`](tertulia_core::foreign) talk before it becomes entries.

pub mod claude_master;
pub mod json;
pub mod markdown;
pub mod openagent_terminal;
pub mod snapshot;
