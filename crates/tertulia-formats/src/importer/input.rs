//! Reads the files of other programs: the only place where importers touch the file system.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

use super::{BEGINNING, ReadError};

/// Size of the buffer for reading.
const BUFFER: usize = 1 << 18;

/// A file to import, or the content of standard input.
#[derive(Clone, Copy, Debug)]
pub struct Input<'a> {
    /// Path of the file.
    pub path: &'a Path,
    /// The content, if it was read already.
    pub content: Option<&'a [u8]>,
}

impl<'a> Input<'a> {
    /// Opens the file for reading from its beginning.
    pub fn open(&self) -> io::Result<Box<dyn BufRead + 'a>> {
        Ok(match self.content {
            Some(content) => Box::new(content),
            None => Box::new(BufReader::with_capacity(BUFFER, File::open(self.path)?)),
        })
    }

    /// Reads the beginning of the file.
    pub fn beginning(&self) -> io::Result<Vec<u8>> {
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
