//! The built program in an empty home, as users and other programs see it, and the rules for its
//! sources. One test binary; each module is a subject, so `cargo nextest run -p tertulia cli::` runs
//! a part.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that cannot go on has failed"
)]

mod agents;
#[cfg(feature = "web")]
mod browser;
mod cli;
mod durability;
mod fuzz;
mod home;
#[cfg(feature = "web")]
mod http;
mod pairs;
mod pty;
mod running;
mod saves;
mod screen;
mod serve;
mod talks;
mod teams;
mod tidy;
