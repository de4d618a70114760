//! The TUI as a user sees it: the built program on a real pseudo-terminal, read through a terminal
//! emulator, in an empty home.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that cannot go on has failed"
)]

mod agents;
mod asking;
mod attached;
#[path = "../teams/cast.rs"]
#[allow(
    dead_code,
    reason = "the cast of the other tests; these need a part of it"
)]
mod cast;
#[path = "../cli/home.rs"]
#[allow(
    dead_code,
    reason = "the home of the other tests; these need a part of it"
)]
mod home;
mod leaving;
mod lines;
mod load;
mod looking;
mod picking;
#[path = "../cli/pty.rs"]
#[allow(dead_code, reason = "the cast of the other tests is shown on it")]
mod pty;
mod rough;
#[path = "../cli/running.rs"]
#[allow(
    dead_code,
    reason = "what runs in the other tests; these need a part of it"
)]
mod running;
mod shape;
mod slash;
mod stage;
mod talking;
mod together;
mod writing;
