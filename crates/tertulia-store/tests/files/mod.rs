//! Tests specific to the file backend: its bytes on disk.

#![expect(clippy::unwrap_used, reason = "helpers of tests are tests")]

mod derived;
mod home;
mod hostile;
mod logs;
mod purge;
mod story;
