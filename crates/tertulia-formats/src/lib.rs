//! Import and export formats of sessions, one module each. Stores use only the line format of
//! [`tertulia_core::entry`].
//!
//! | format | export | import |
//! |---|---|---|
//! | [`json`] | yes: the object in all `--json` output | no |
//! | [`jsonl`](tertulia_core::jsonl) | yes: the log itself, line by line | yes |
//! | [`claude_master`] | no | yes: instructor and worker sessions of claude-master |
//! | [`markdown`] | yes, for people | no |
//! | [`openagent_terminal`] | no | yes: session files of openagent-terminal |
//! | [`snapshot`] | yes: a team session as one document | yes |
//!
//! An imported session is a [`foreign`](tertulia_core::foreign) session before it becomes entries.

pub mod claude_master;
pub mod json;
pub mod markdown;
pub mod openagent_terminal;
pub mod snapshot;
