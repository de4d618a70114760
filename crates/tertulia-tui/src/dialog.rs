//! Dialogs in front of everything else, which stay until they are answered.

pub mod approval;
pub mod confirm;
pub mod failure;
pub mod held;
pub mod quiet;
pub mod restore;
#[cfg(test)]
mod tests;
