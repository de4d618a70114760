//! The fake provider, as a real client of the four APIs meets it.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that cannot go on has failed"
)]

mod answers;
mod client;
mod failures;
mod line;
mod refusals;
