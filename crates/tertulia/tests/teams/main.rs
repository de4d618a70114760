//! Teams as a user sees them: the built program in an empty home, members that are real processes,
//! with and without a terminal.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that cannot go on has failed"
)]

mod bytes;
mod cast;
mod ending;
mod file;
#[path = "../cli/home.rs"]
#[allow(
    dead_code,
    reason = "the home of the other tests; these need a part of it"
)]
mod home;
mod hostile;
mod prompts;
#[path = "../cli/pty.rs"]
#[allow(
    dead_code,
    reason = "the terminal of the other tests; these need a part of it"
)]
mod pty;
mod restore;
#[path = "../cli/running.rs"]
#[allow(
    dead_code,
    reason = "what runs in the other tests; these need a part of it"
)]
mod running;
#[path = "../cli/saves.rs"]
#[allow(
    dead_code,
    reason = "saves of the other tests; these need a part of it"
)]
mod saves;
mod screen;
mod subtle;
mod talk;
mod trouble;
