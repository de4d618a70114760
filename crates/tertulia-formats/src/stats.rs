//! Usage statistics as a JSON document, a CSV table, and a page of their own.

mod csv;
mod figures;
mod html;
mod json;
mod plot;
#[cfg(test)]
mod tests;

pub use csv::csv;
pub use figures::{compact, dollars, money};
pub use html::html;
pub use json::{json, usd};
