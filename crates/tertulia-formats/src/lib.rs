//! Import and export formats of sessions, one module each. Stores use only the line format of
//! [`tertulia_core::entry`].
//!
//! ```
//! use tertulia_core::id::SessionId;
//! use tertulia_core::session::{Log, SessionMeta};
//! use tertulia_formats::markdown;
//!
//! let id: SessionId = "01890000-0000-7000-8000-000000000001".parse().unwrap();
//! let page = markdown::transcript(&SessionMeta::of(id, &[]), &Log::default());
//! assert!(page.contains("01890000-0000-7000-8000-000000000001"));
//! ```
//!
//! | format | export | import |
//! |---|---|---|
//! | [`json`] | yes: the object in all `--json` output | no |
//! | [`jsonl`](tertulia_core::jsonl) | yes: the log itself, line by line | yes |
//! | [`atif`](exporter::atif) | yes: a trajectory for evaluation and training programs | no |
//! | [`claude_code`], [its exporter](exporter::claude_code) | yes: a file that Claude Code resumes | yes: session files of Claude Code |
//! | [`aider`] | no | yes: chat histories of aider |
//! | [`claude_master`] | no | yes: instructor and worker sessions of claude-master |
//! | [`codex`], [its exporter](exporter::codex) | yes: a file that Codex resumes | yes: session files of Codex |
//! | [`gemini_cli`] | no | yes: session files of Gemini CLI |
//! | [`comparison`] | yes: the difference of two sessions, as JSON and as a page | no |
//! | [`html`] | yes: one page for people | no |
//! | [`copilot`] | no | yes: session files of GitHub Copilot CLI |
//! | `crush` | no | yes: databases of Crush |
//! | [`goose`] | no | yes: session files and database of goose |
//! | `llm` | no | yes: the database of LLM |
//! | [`markdown`] | yes, for people | no |
//! | [`openagent_terminal`] | no | yes: session files of openagent-terminal |
//! | [`opencode`] | no | yes: exports, files and databases of opencode |
//! | [`stats`] | yes: usage statistics as JSON, CSV and HTML | no |
//! | [`snapshot`] | yes: a team session as one document | yes |
//!
//! An imported session is a [`foreign`](tertulia_core::foreign) session before it becomes entries.

pub mod aider;
pub mod claude_code;
pub mod claude_master;
pub mod codex;
pub mod comparison;
pub mod copilot;
#[cfg(feature = "sqlite")]
pub mod crush;
pub mod exporter;
pub mod gemini_cli;
pub mod goose;
pub mod html;
pub mod importer;
pub mod json;
#[cfg(feature = "sqlite")]
pub mod llm;
pub mod markdown;
pub mod openagent_terminal;
pub mod opencode;
pub mod snapshot;
pub mod stats;
