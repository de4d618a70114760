//! Questions and messages that stand before everything else until somebody answers them.

pub mod approval;
pub mod confirm;
pub mod failure;
pub mod quiet;
pub mod restore;
#[cfg(test)]
mod tests;
