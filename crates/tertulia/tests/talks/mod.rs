//! Sessions with more than messages: tools, summaries, the agents' own sessions, and resuming all
//! of that. Tests the built program in an empty home, with and without a terminal.

mod any_order;
mod asking;
mod attached;
mod compaction;
mod dangling;
mod guarded;
mod keys;
mod native;
mod own_files;
mod policy;
mod requests;
mod resuming;
pub mod stage;
mod stopped;
mod tools;
mod typed_commands;
mod unasked;
