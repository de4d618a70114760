//! Sessions with more than messages: tools, summaries, the agents' own sessions, and resuming all
//! of that. Tests the built program in an empty home, with and without a terminal.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that cannot go on has failed"
)]

mod asking;
mod compaction;
mod dangling;
mod guarded;
#[path = "../cli/home.rs"]
#[allow(
    dead_code,
    reason = "the home of the other tests; these need a part of it"
)]
mod home;
mod keys;
mod native;
mod policy;
#[path = "../cli/pty.rs"]
#[allow(
    dead_code,
    reason = "the terminal of the other tests; these need a part of it"
)]
mod pty;
mod resuming;
#[path = "../cli/running.rs"]
#[allow(
    dead_code,
    reason = "what runs in the other tests; these need a part of it"
)]
mod running;
mod stage;
mod stopped;
mod tools;
mod unasked;
#[path = "../agents/world.rs"]
#[allow(
    dead_code,
    reason = "the world of the other tests; these need a part of it"
)]
mod world;
