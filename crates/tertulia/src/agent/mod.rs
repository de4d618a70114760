//! Agents.
pub mod process;
