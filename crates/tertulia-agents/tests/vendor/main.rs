//! The vendors' programs: recorded output, and scripts that print it again.

#![cfg(target_os = "linux")]
#![allow(
    clippy::unwrap_used,
    reason = "a test that cannot read or run should stop"
)]

mod asking;
mod recorded;
mod running;
mod stage;
