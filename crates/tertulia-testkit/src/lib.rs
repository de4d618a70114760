//! What the tests share.
//!
//! | room | what |
//! |---|---|
//! | [`clock`] | time and ids that are the same in every run |
//! | [`scratch`] | a folder that disappears |
//! | [`place`] | where a store lives, so that it can be opened again as another process would |
//! | [`logs`] | bodies, sealed entries, and a writer that remembers what a log should be |
//! | [`ask`] | questions to a store without the `await` |
//! | [`conformance`] | what every backend does, one test per promise |
//! | [`model`] | random histories, played on a backend and on plain vectors |
//! | [`provider`] | a fake of the LLM HTTP APIs, well behaved or failing as a prompt says |
//! | [`terminal`] | a program on a real pseudo-terminal, seen through a terminal emulator |

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "everything here runs inside tests, where a panic is the report"
)]

pub mod ask;
pub mod clock;
pub mod conformance;
pub mod logs;
pub mod model;
pub mod place;
pub mod provider;
pub mod scratch;
pub mod terminal;
