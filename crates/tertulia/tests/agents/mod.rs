//! Agents behind HTTP APIs as a user sees them: the built program in an empty home, and a provider
//! on loopback that answers, or fails, as the prompt says.

mod answers;
#[cfg(target_os = "linux")]
mod confined;
mod failures;
mod keys;
mod prompts;
pub mod world;
