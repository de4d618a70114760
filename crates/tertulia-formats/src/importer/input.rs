//! Reads the files of other programs: the only place where importers touch the file system.

use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use super::{BEGINNING, ReadError};

/// Size of the buffer for reading.
const BUFFER: usize = 1 << 18;

/// First bytes of a file that was compressed with zstd.
const COMPRESSED: &[u8] = b"\x28\xb5\x2f\xfd";
/// Largest window of compressed files, as a power of two: that of zstd's highest ordinary level.
const LARGEST_WINDOW: u32 = 27;

/// A file to import, or the content of standard input.
#[derive(Clone, Copy, Debug)]
pub struct Input<'a> {
    /// Path of the file.
    pub path: &'a Path,
    /// The content, if it was read already.
    pub content: Option<&'a [u8]>,
}

impl<'a> Input<'a> {
    /// Returns a file that is still to be read.
    pub fn of(path: &'a Path) -> Input<'a> {
        Input {
            path,
            content: None,
        }
    }

    /// Opens the file for reading from its beginning. What was compressed with zstd is read as what it
    /// was before.
    pub fn open(&self) -> io::Result<Box<dyn BufRead + 'a>> {
        let mut opened: Box<dyn BufRead + 'a> = match self.content {
            Some(content) => Box::new(content),
            None => Box::new(BufReader::with_capacity(BUFFER, File::open(self.path)?)),
        };
        if !opened.fill_buf()?.starts_with(COMPRESSED) {
            return Ok(opened);
        }
        let mut decoder = zstd::Decoder::with_buffer(opened)?;
        // A damaged file must not claim all memory.
        decoder.window_log_max(LARGEST_WINDOW)?;
        Ok(Box::new(BufReader::with_capacity(BUFFER, decoder)))
    }

    /// Reads the beginning of the file.
    pub fn beginning(&self) -> Result<Vec<u8>, ReadError> {
        let mut beginning = Vec::with_capacity(BEGINNING);
        self.open()?
            .take(BEGINNING as u64)
            .read_to_end(&mut beginning)?;
        Ok(beginning)
    }

    /// Reads the whole file. Fails if it has more than `limit` bytes.
    pub fn read(&self, limit: u64) -> Result<Vec<u8>, ReadError> {
        let mut content = Vec::new();
        self.open()?.take(limit + 1).read_to_end(&mut content)?;
        if content.len() as u64 > limit {
            let limit = limit / 1_000_000;
            return Err(ReadError::Invalid(format!("it has more than {limit} MB")));
        }
        Ok(content)
    }
}

/// Returns the JSON files in a folder, sorted by name. A folder that does not exist has none.
pub fn json_files(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let mut files = Vec::new();
    for entry in entries {
        let path = entry?.path();
        if path.extension().is_some_and(|found| found == "json") {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}
