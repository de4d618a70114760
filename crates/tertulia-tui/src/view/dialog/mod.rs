//! Draws dialogs in front of everything else.

pub mod failure;
pub mod question;
