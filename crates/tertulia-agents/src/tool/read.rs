//! `file_read` and `directory_list`: read one file or folder.

use std::io::{BufRead, BufReader, Read, Seek};
use std::path::Path;

use rustix::fs::FileType;
use serde_json::json;

use super::arguments::Arguments;
use super::confine::Place;
use super::folder::OpenFile;
use super::walk::{Found, Halt, Watch, walk};
use crate::ToolSpec;
use tertulia_core::preview::one_line;

/// Number of bytes searched for a NUL, which marks a binary file.
const SNIFF: u64 = 8 * 1024;
/// Number of bytes reserved for the mark that says where to read on.
const MARK: usize = 160;
/// Maximum number of names listed.
const MOST_LISTED: usize = 500;

pub(super) fn specs() -> [ToolSpec; 2] {
    [
        ToolSpec {
            name: "file_read".to_owned(),
            description: "Reads a text file and gives its text as it is, without line numbers. A long file is cut \
                          at the output limit, and a mark at the end says which line to read on from with \
                          `offset`. Files that are not UTF-8 text are refused."
                .to_owned(),
            parameters: json!({
                "type": "object",
                "properties": {
                    "path": {"type": "string", "description": "The file, relative to the work folder."},
                    "offset": {"type": "integer", "minimum": 1, "description": "The first line to read, counted from 1. Default: 1."},
                    "limit": {"type": "integer", "minimum": 1, "description": "How many lines to read. Default: as many as fit."}
                },
                "required": ["path"],
                "additionalProperties": false
            }),
        },
        ToolSpec {
            name: "directory_list".to_owned(),
            description: "Lists one folder by name: folders end in `/`, files have their size, links say where they \
                          lead. What .gitignore names is left out. To look further down use `glob`."
                .to_owned(),
            parameters: json!({
                "type": "object",
                "properties": {
                    "path": {"type": "string", "description": "The folder, relative to the work folder. Default: the work folder."}
                },
                "additionalProperties": false
            }),
        },
    ]
}

#[derive(Debug)]
pub(super) struct FileRead {
    place: Place,
    offset: u64,
    limit: Option<u64>,
}

impl FileRead {
    pub(super) fn parse(arguments: &Arguments<'_>, root: &Path) -> Result<FileRead, String> {
        Ok(FileRead {
            place: Place::resolve(root, &arguments.required::<String>("path")?)?,
            offset: arguments.whole("offset", 1)?.unwrap_or(1),
            limit: arguments.whole("limit", 1)?,
        })
    }

    pub(super) fn preview(&self) -> String {
        let name = self.place.shown();
        match (self.offset, self.limit) {
            (1, None) => format!("read {name}"),
            (offset, None) => format!("read {name} from line {offset}"),
            (offset, Some(limit)) => format!("read {name}, {limit} lines from line {offset}"),
        }
    }

    pub(super) fn run(&self, watch: &Watch, output: usize) -> Result<String, String> {
        let mut opened = self.place.file()?;
        let (name, size) = (self.place.shown(), opened.size());
        let cannot = |error| format!("cannot read {name}: {error}");
        if is_binary(&mut opened).map_err(cannot)? {
            return Err(format!("{name} is a binary file of {size} bytes, not text"));
        }
        let wanted = Wanted {
            offset: self.offset,
            limit: self.limit.unwrap_or(u64::MAX),
            most: output.saturating_sub(MARK.min(output / 2)),
        };
        let mut reader = BufReader::with_capacity(64 * 1024, opened.file);
        let page =
            page(&mut reader, &wanted, watch)
                .map_err(cannot)?
                .map_err(|halt| match halt {
                    Halt::OutOfTime => format!(
                        "{name} has {size} bytes: line {} is too far down to be reached in time",
                        self.offset
                    ),
                    _ => "stopped".to_owned(),
                })?;
        page.told(&name, size, self.offset)
    }
}

/// Returns whether the file has a NUL near its beginning; rewinds the file.
fn is_binary(opened: &mut OpenFile) -> std::io::Result<bool> {
    let mut start = Vec::new();
    opened.file.by_ref().take(SNIFF).read_to_end(&mut start)?;
    opened.file.rewind()?;
    Ok(start.contains(&0))
}

/// Requested part of a file.
struct Wanted {
    offset: u64,
    limit: u64,
    most: usize,
}

/// The part of a file that was read.
#[derive(Debug, Default, PartialEq)]
struct Page {
    bytes: Vec<u8>,
    /// End of the last whole line in `bytes`.
    whole: usize,
    /// Number of lines skipped, without an incomplete last line of the file.
    before: u64,
    /// Whether the file ended within a skipped line.
    mid_line: bool,
    /// Number of whole lines, the last one possibly without its line end.
    lines: u64,
    end: PageEnd,
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
enum PageEnd {
    /// The file ended.
    #[default]
    File,
    /// There are more lines than requested.
    Limit,
    /// There is more than fits.
    Room,
}

/// Reads the requested part and no more, however long the file and its lines are.
fn page(
    reader: &mut impl BufRead,
    wanted: &Wanted,
    watch: &Watch,
) -> std::io::Result<Result<Page, Halt>> {
    let mut page = Page::default();
    loop {
        if let Err(halt) = watch.check() {
            return Ok(Err(halt));
        }
        let chunk = reader.fill_buf()?;
        if chunk.is_empty() {
            break;
        }
        let line_end = chunk.iter().position(|byte| *byte == b'\n');
        let part = &chunk[..line_end.map_or(chunk.len(), |at| at + 1)];
        let used = part.len();
        if page.before + 1 < wanted.offset {
            page.before += u64::from(line_end.is_some());
            page.mid_line = line_end.is_none();
        } else if page.lines == wanted.limit {
            page.end = PageEnd::Limit;
            break;
        } else if page.bytes.len() + used > wanted.most {
            let room = wanted.most - page.bytes.len();
            page.bytes.extend_from_slice(&part[..room]);
            page.end = PageEnd::Room;
            break;
        } else {
            page.bytes.extend_from_slice(part);
            if line_end.is_some() {
                page.lines += 1;
                page.whole = page.bytes.len();
            }
        }
        reader.consume(used);
    }
    if page.end == PageEnd::File && page.whole < page.bytes.len() {
        page.lines += 1;
        page.whole = page.bytes.len();
    }
    Ok(Ok(page))
}

impl Page {
    fn told(mut self, name: &str, size: u64, offset: u64) -> Result<String, String> {
        let next = offset + self.lines;
        // A line that does not fit is left for the next call, unless it is the only one.
        let torn = self.end == PageEnd::Room && self.lines == 0;
        if torn {
            self.bytes.truncate(border(&self.bytes));
        } else {
            self.bytes.truncate(self.whole);
        }
        let shown = self.bytes.len();
        let mut text = String::from_utf8(self.bytes)
            .map_err(|_| format!("{name} is not UTF-8 text ({size} bytes): it cannot be shown"))?;
        match self.end {
            _ if size == 0 && text.is_empty() => text.push_str("[the file is empty]"),
            PageEnd::File if text.is_empty() => {
                let lines = self.before + u64::from(self.mid_line);
                return Err(format!("{name} has only {lines} lines"));
            }
            PageEnd::File => {}
            PageEnd::Limit => {
                text.push_str(&format!("[there is more: read on with offset {next}]"));
            }
            PageEnd::Room if torn => text.push_str(&format!(
                "\n[cut: line {next} is longer than these {shown} bytes; the next line is offset {}]",
                next + 1
            )),
            PageEnd::Room => text.push_str(&format!(
                "[cut at the output limit: read on with offset {next}]"
            )),
        }
        Ok(text)
    }
}

/// Returns the end of the last complete character of a cut text.
fn border(bytes: &[u8]) -> usize {
    match str::from_utf8(bytes) {
        Err(error) if error.error_len().is_none() => error.valid_up_to(),
        _ => bytes.len(),
    }
}

#[derive(Debug)]
pub(super) struct DirectoryList {
    place: Place,
}

impl DirectoryList {
    pub(super) fn parse(arguments: &Arguments<'_>, root: &Path) -> Result<DirectoryList, String> {
        let path: Option<String> = arguments.optional("path")?;
        Ok(DirectoryList {
            place: Place::resolve(root, path.as_deref().unwrap_or("."))?,
        })
    }

    pub(super) fn preview(&self) -> String {
        format!("list {}", self.place.shown())
    }

    pub(super) fn run(&self, watch: &Watch) -> Result<String, String> {
        let mut lines = Vec::new();
        let mut more = 0_usize;
        let seen = walk(&self.place, 1, watch, &mut |found| {
            match lines.len() < MOST_LISTED {
                true => lines.push(row(found)),
                false => more += 1,
            }
            Ok(())
        })?;
        match seen {
            Ok(left_out) => more += usize::from(left_out.names),
            Err(Halt::Cancelled) => return Err("stopped".to_owned()),
            Err(_) => lines.push(watch.overdue()),
        }
        if more > 0 {
            lines.push(format!("[{more} or more are not listed: use glob]"));
        }
        if lines.is_empty() {
            lines.push("[nothing in it]".to_owned());
        }
        Ok(lines.join("\n"))
    }
}

/// Formats one row of the listing.
fn row(found: &Found<'_>) -> String {
    let name = one_line(&found.name.to_string_lossy());
    match found.kind {
        FileType::Directory => format!("{name}/"),
        FileType::Symlink => match found.folder.link(found.name) {
            Ok(target) => format!("{name} -> {}", one_line(&target.to_string_lossy())),
            Err(_) => name,
        },
        FileType::RegularFile => match found.folder.stat(found.name) {
            Ok(stat) => format!("{name} ({} bytes)", stat.st_size),
            Err(_) => name,
        },
        _ => format!("{name} (not a regular file)"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;
    use tokio_util::sync::CancellationToken;

    fn read(text: &[u8], offset: u64, limit: u64, most: usize) -> Result<String, String> {
        let wanted = Wanted {
            offset,
            limit,
            most,
        };
        let watch = Watch::start(&CancellationToken::new(), Duration::from_secs(5));
        // A small buffer, so that lines arrive in chunks.
        let mut reader = BufReader::with_capacity(3, text);
        let page = page(&mut reader, &wanted, &watch).unwrap().unwrap();
        page.told("f", text.len() as u64, offset)
    }

    #[test]
    fn a_page_is_what_was_asked_for() {
        let all = u64::MAX;
        let check = |text: &str, offset, limit, most, expected: &str| {
            assert_eq!(
                read(text.as_bytes(), offset, limit, most).unwrap(),
                expected,
                "{text:?} {offset} {limit} {most}"
            );
        };
        check("one\ntwo\n", 1, all, 100, "one\ntwo\n");
        check("one\ntwo", 1, all, 100, "one\ntwo");
        check("one\ntwo", 2, all, 100, "two");
        check("one\ntwo\n", 1, 2, 100, "one\ntwo\n");
        check("a\r\nb\r\n", 2, 1, 100, "b\r\n");
        check("", 1, all, 100, "[the file is empty]");
        check(
            "one\ntwo\nthree\n",
            1,
            2,
            100,
            "one\ntwo\n[there is more: read on with offset 3]",
        );
        check(
            "one\ntwo\nthree\n",
            2,
            all,
            8,
            "two\n[cut at the output limit: read on with offset 3]",
        );
        check(
            "x\n€€€€\ny\n",
            2,
            all,
            8,
            "€€\n[cut: line 2 is longer than these 6 bytes; the next line is offset 3]",
        );
    }

    #[test]
    fn what_cannot_be_read_says_why() {
        let error = read(b"one\n", 7, 1, 100).unwrap_err();
        assert_eq!(error, "f has only 1 lines");
        let error = read(b"one\ntwo", 3, 1, 100).unwrap_err();
        assert_eq!(error, "f has only 2 lines");
        let error = read(b"caf\xe9\n", 1, 1, 100).unwrap_err();
        assert!(error.contains("not UTF-8"), "{error}");
    }
}
