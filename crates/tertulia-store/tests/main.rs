//! Every backend against the conformance suite and the model, and the bytes of each on disk.

mod conformance;
mod files;
mod merge;
mod ledger;
mod model;
mod salvage;
