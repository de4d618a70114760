//! Edits text in the user's editor.

use std::io::{Read, Seek, SeekFrom, Write};
use std::process::Command;

/// Maximum size of the edited text in bytes.
const MOST: u64 = 16 << 20;

/// Opens the editor, a shell command, and returns the edited text or the reason for the failure.
pub fn edit(editor: &str, text: &str) -> Result<String, String> {
    let wrong = |error: std::io::Error| format!("the editor ({editor}) cannot be used: {error}");
    let mut file = tempfile::Builder::new()
        .prefix("tertulia-")
        .suffix(".md")
        .tempfile()
        .map_err(wrong)?;
    file.write_all(text.as_bytes()).map_err(wrong)?;
    // Through a shell: the variable may contain arguments.
    let status = Command::new("sh")
        .arg("-c")
        .arg(format!("{editor} \"$1\""))
        .arg("sh")
        .arg(file.path())
        .status()
        .map_err(wrong)?;
    if !status.success() {
        return Err(format!(
            "the editor ({editor}) ended with {status}: nothing was changed"
        ));
    }
    // The editor may have replaced the file: open it again.
    let mut written = std::fs::File::open(file.path()).map_err(wrong)?;
    written.seek(SeekFrom::Start(0)).map_err(wrong)?;
    let mut bytes = Vec::new();
    written
        .take(MOST + 1)
        .read_to_end(&mut bytes)
        .map_err(wrong)?;
    if bytes.len() as u64 > MOST {
        return Err("the text is too long".to_owned());
    }
    String::from_utf8(bytes).map_err(|_| "the text is not UTF-8: nothing was changed".to_owned())
}
