//! Dialogs in front of everything else, which stay until they are answered.

pub mod failure;
pub mod question;
pub mod quiet;
pub mod subject;
#[cfg(test)]
mod tests;
