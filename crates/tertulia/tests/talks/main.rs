//! Talks in which more happens than words: tools, summaries, sessions of the agents' own, and going on
//! with all of that. The built program in an empty home, off a terminal and on one.

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
