//! Every backend against the conformance suite and the model, and the bytes of each on disk.

mod conformance;
mod files;
<<<<<<< HEAD
mod merge;
=======
mod ledger;
>>>>>>> 1c09637 (store: keep a ledger of usage, tool calls and files touched)
mod model;
mod salvage;
