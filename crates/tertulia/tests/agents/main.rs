//! Agents behind HTTP APIs as a user sees them: the built program in an empty home, and a provider
//! on loopback that answers, or fails, as the prompt says.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that cannot go on has failed"
)]

mod answers;
mod failures;
#[path = "../cli/home.rs"]
#[allow(
    dead_code,
    reason = "the home of the other tests; these need a part of it"
)]
mod home;
mod keys;
mod world;
