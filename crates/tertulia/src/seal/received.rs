//! Keys of sealed sessions that came with bundles. A log stays as it was sent, so the key is kept beside the
//! store: wrapped for the user, named by the form that the log has.

use std::fs;
use std::path::{Path, PathBuf};

use tertulia_core::entry::Hash;

use crate::error::CommandResult;
use crate::private_file;

/// Name of the folder.
pub const FOLDER: &str = "received-keys";

fn file(folder: &Path, wrapped: &str) -> PathBuf {
    folder.join(format!("{}.key", Hash::of_text(wrapped)))
}

/// Returns the form of a wrapped key that is for the user, if one was received.
pub fn find(folder: &Path, wrapped: &str) -> Option<String> {
    fs::read_to_string(file(folder, wrapped)).ok()
}

/// Keeps the form of a wrapped key that is for the user.
pub fn keep(folder: &Path, wrapped: &str, received: &str) -> CommandResult<()> {
    private_file::make_folder(folder)?;
    private_file::replace(&file(folder, wrapped), received)
}
