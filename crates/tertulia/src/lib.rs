//! Sessions of people and AI agents: one durable, hashed, append-only log per conversation.
//!
//! The flow is the table of contents:
//!
//! ```text
//! input → conversation → agent → entry → store → query / session / formats
//! ```
//!
//! Deciding is pure and lives in [`id`], [`entry`], [`session`], [`query`], [`words`], [`formats`],
//! [`redact`], [`approval`], [`team`] and [`conversation`]; doing (disk, network, processes) lives in [`agent`],
//! [`tool`], [`store`] and
//! [`conversation::run`]. The library knows no terminal, no environment, no home directory and no
//! clock: whoever embeds it passes these in as values.

pub mod agent;
pub mod approval;
pub mod conversation;
pub mod entry;
pub mod formats;
mod preview;
pub mod redact;

pub mod id;
pub mod query;

pub mod session;
pub mod stamp;
pub mod store;
pub mod team;
pub mod tokens;
pub mod tool;
pub mod words;
