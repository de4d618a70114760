//! Sessions of people and AI agents as data: one hashed, append-only log per session, and
//! everything derived from it.
//!
//! Everything here is pure: no IO, no async, no clock, no environment. Embedders pass time and ids
//! in as a [`clock::Clock`].
//!
//! ```
//! use tertulia_core::team::markers;
//!
//! let read = markers::parse("Looks good. [NEXT: ben!P1] [TEAM_TASK: plan a bird table]");
//! assert_eq!(read.next[0].name, "ben");
//! assert_eq!(read.task.as_deref(), Some("plan a bird table"));
//! ```
//!
//! | module | contents |
//! |---|---|
//! | [`id`] | session and entry ids, references |
//! | [`entry`] | one line of the log: its fields, its hash, its JSON |
//! | [`session`] | metadata folded from a log, and reading a whole log |
//! | [`query`] | filters, pages, cursors, search queries and their results |
//! | [`sizes`] | bytes of sessions: their own, and shared with forks |
//! | [`search_text`] | tokenisation of text for search |
//! | [`redact`] | detection and replacement of secrets |
//! | [`team`] | team files, their schemas, and the markers in team messages |
//! | [`pair`] | state of a pair session, folded from its log |
//! | [`diff`] | difference of two sessions, by messages and by words |
//! | [`merge`] | one session of two |
//! | [`align`] | alignment of two sequences |
//! | [`text_diff`] | difference of two lists of texts, such as lines |
//! | [`jsonl`] | export and import of a whole log as text |
//! | [`foreign`] | a session of another program before it becomes entries |
//! | [`preview`] | text made safe and short for one line or a diff |
//! | [`price`] | prices of models, and the cost of usage |
//! | [`project`] | names of projects |
//! | [`replay`] | the turns of a log to play again, and where a replay diverges |
//! | [`stats`] | usage statistics, priced and grouped |
//! | [`tool_files`] | files that a tool call reads or changes |
//! | [`clock`] | source of time and ids |

pub mod align;
pub mod approval;
pub mod blame;
pub mod clock;
pub mod diff;
pub mod entry;
pub mod foreign;
pub mod id;
pub mod jsonl;
pub mod merge;
pub mod pair;
pub mod preview;
pub mod price;
pub mod project;
pub mod query;
pub mod redact;
pub mod replay;
pub mod seal;
pub mod search_text;
pub mod session;
pub mod sizes;
pub mod stats;
pub mod team;
pub mod text_diff;
pub mod tool_files;
