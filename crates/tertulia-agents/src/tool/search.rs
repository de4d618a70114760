//! `glob` and `grep`: find files by name and lines by content.

use std::cmp::Reverse;
use std::io::Read;
use std::path::{Path, PathBuf};

use globset::{GlobBuilder, GlobMatcher};
use regex::bytes::{Regex, RegexBuilder};
use rustix::fs::FileType;
use serde_json::json;

use super::arguments::Arguments;
use super::confine::{Place, shown};
use super::folder::OpenFile;
use super::lines::{Hits, search};
use super::walk::{ALL_LEVELS, Halt, LeftOut, Watch, walk};
use crate::ToolSpec;
use tertulia_core::preview::one_line;

/// Maximum number of files listed.
const MOST_FILES: usize = 200;
/// Maximum size in bytes of a file that is searched.
const MOST_BYTES: u64 = 32 << 20;
/// Maximum number of lines around a match.
const MOST_CONTEXT: u64 = 20;

pub(super) fn specs() -> [ToolSpec; 2] {
    [
        ToolSpec {
            name: "glob".to_owned(),
            description: "Finds files by name, the newest first, at most 200. `*` stays within one folder, `**` \
                          goes through folders, `{a,b}` and `[a-z]` work too; a pattern without `/` finds names \
                          at any depth. What .gitignore names is left out."
                .to_owned(),
            parameters: json!({
                "type": "object",
                "properties": {
                    "pattern": {"type": "string", "description": "For example `*.rs` or `src/**/test_*.py`."},
                    "path": {"type": "string", "description": "The folder to look in, to which the pattern is relative. Default: the work folder."}
                },
                "required": ["pattern"],
                "additionalProperties": false
            }),
        },
        ToolSpec {
            name: "grep".to_owned(),
            description: "Finds lines that match a regular expression (Rust syntax: no look-around, no back \
                          references; it looks at one line at a time). Gives `path:line:text`, and \
                          `path-line-text` for lines around a match, at most 200 matches. Binary files, files \
                          above 32 MiB and what .gitignore names are left out."
                .to_owned(),
            parameters: json!({
                "type": "object",
                "properties": {
                    "pattern": {"type": "string", "description": "The regular expression. Escape what shall be taken literally, such as `\\(`."},
                    "path": {"type": "string", "description": "The file or folder to look in. Default: the work folder."},
                    "glob": {"type": "string", "description": "Look only into files whose names match, for example `*.rs`."},
                    "case_insensitive": {"type": "boolean", "description": "Whether case does not matter. Default: false."},
                    "context": {"type": "integer", "minimum": 0, "description": "How many lines to show before and after each match. Default: 0, at most 20."}
                },
                "required": ["pattern"],
                "additionalProperties": false
            }),
        },
    ]
}

/// A pattern for file names, relative to some folder.
#[derive(Debug)]
struct Names {
    matcher: GlobMatcher,
    /// Folder to which the pattern is relative, itself relative to the work folder.
    base: PathBuf,
}

impl Names {
    /// Parses a pattern that is relative to `base`, or begins with the absolute path of the work
    /// folder.
    fn parse(argument: &str, pattern: &str, base: &Place) -> Result<Names, String> {
        let wrong = |why: String| format!("the argument `{argument}` is wrong: {why}");
        let root = base.root().to_string_lossy();
        let (pattern, base) = match pattern.strip_prefix(&*root) {
            Some(rest) if rest.starts_with('/') => (&rest[1..], PathBuf::new()),
            _ => (
                pattern.strip_prefix("./").unwrap_or(pattern),
                base.inside().to_owned(),
            ),
        };
        if pattern.starts_with('/') || pattern.split('/').any(|part| part == "..") {
            return Err(wrong(format!(
                "'{pattern}' leads out of the work folder {root}"
            )));
        }
        let pattern = match pattern.contains('/') {
            true => pattern.to_owned(),
            false => format!("**/{pattern}"),
        };
        let matcher = GlobBuilder::new(&pattern)
            .literal_separator(true)
            .build()
            .map_err(|error| wrong(error.to_string()))?
            .compile_matcher();
        Ok(Names { matcher, base })
    }

    fn match_path(&self, inside: &Path) -> bool {
        inside
            .strip_prefix(&self.base)
            .is_ok_and(|path| self.matcher.is_match(path))
    }
}

#[derive(Debug)]
pub(super) struct Glob {
    pattern: String,
    names: Names,
    place: Place,
}

impl Glob {
    pub(super) fn parse(arguments: &Arguments<'_>, root: &Path) -> Result<Glob, String> {
        let pattern: String = arguments.required("pattern")?;
        let place = place(arguments, root)?;
        Ok(Glob {
            names: Names::parse("pattern", &pattern, &place)?,
            pattern,
            place,
        })
    }

    pub(super) fn preview(&self) -> String {
        let pattern = one_line(&self.pattern);
        format!("find files {pattern} in {}", self.place.shown())
    }

    pub(super) fn run(&self, watch: &Watch) -> Result<String, String> {
        let mut newest = Newest::default();
        let seen = walk(&self.place, ALL_LEVELS, watch, &mut |found| {
            let wanted = found.kind == FileType::RegularFile && self.names.match_path(found.inside);
            if let Some(stat) = wanted.then(|| found.folder.stat(found.name).ok()).flatten() {
                newest.push((stat.st_mtime, stat.st_mtime_nsec), found.inside);
            }
            Ok(())
        })?;
        let mut lines = newest.finish();
        if lines.is_empty() {
            lines.push("[no files match]".to_owned());
        }
        ended(seen, watch, &mut lines)?;
        Ok(lines.join("\n"))
    }
}

/// Keeps the newest files in bounded memory.
#[derive(Default)]
struct Newest<T: Ord> {
    files: Vec<(Reverse<T>, PathBuf)>,
    count: usize,
}

impl<T: Ord> Newest<T> {
    fn push(&mut self, changed: T, path: &Path) {
        self.count += 1;
        self.files.push((Reverse(changed), path.to_owned()));
        if self.files.len() > 2 * MOST_FILES {
            self.drop_oldest();
        }
    }

    fn drop_oldest(&mut self) {
        self.files.sort();
        self.files.truncate(MOST_FILES);
    }

    fn finish(mut self) -> Vec<String> {
        self.drop_oldest();
        let mut lines: Vec<String> = self.files.iter().map(|(_, path)| shown(path)).collect();
        if self.count > lines.len() {
            let more = self.count - lines.len();
            lines.push(format!(
                "[{more} older files match too: narrow the pattern]"
            ));
        }
        lines
    }
}

#[derive(Debug)]
pub(super) struct Grep {
    pattern: String,
    regex: Regex,
    place: Place,
    names: Option<Names>,
    context: usize,
}

impl Grep {
    pub(super) fn parse(arguments: &Arguments<'_>, root: &Path) -> Result<Grep, String> {
        let pattern: String = arguments.required("pattern")?;
        let ignore_case: Option<bool> = arguments.optional("case_insensitive")?;
        let regex = RegexBuilder::new(&pattern)
            .case_insensitive(ignore_case.unwrap_or(false))
            .build()
            .map_err(|error| format!("the argument `pattern` is wrong: {error}"))?;
        let place = place(arguments, root)?;
        let names = match arguments.optional::<String>("glob")? {
            Some(glob) => Some(Names::parse("glob", &glob, &place)?),
            None => None,
        };
        let context = arguments.whole("context", 0)?.unwrap_or(0);
        Ok(Grep {
            pattern,
            regex,
            place,
            names,
            context: context.min(MOST_CONTEXT) as usize,
        })
    }

    pub(super) fn preview(&self) -> String {
        let pattern = one_line(&self.pattern);
        format!("search for {pattern} in {}", self.place.shown())
    }

    pub(super) fn run(&self, watch: &Watch, output: usize) -> Result<String, String> {
        let mut hits = Hits::new(self.context, output);
        let mut too_large = 0_u32;
        let seen = match self.place.kind() {
            Ok(FileType::Directory) => self.search_folder(watch, &mut hits, &mut too_large)?,
            Ok(_) => {
                let opened = self.place.file()?;
                self.search_file(
                    opened,
                    self.place.inside(),
                    watch,
                    &mut hits,
                    &mut too_large,
                )
                .map(|()| LeftOut::default())
            }
            Err(error) => {
                return Err(format!("cannot look at {}: {error}", self.place.shown()));
            }
        };
        let mut lines = hits.finish();
        if too_large > 0 {
            lines.push(format!(
                "[{too_large} files above 32 MiB were not searched]"
            ));
        }
        ended(seen, watch, &mut lines)?;
        Ok(lines.join("\n"))
    }

    fn search_folder(
        &self,
        watch: &Watch,
        hits: &mut Hits,
        too_large: &mut u32,
    ) -> Result<Result<LeftOut, Halt>, String> {
        walk(&self.place, ALL_LEVELS, watch, &mut |found| {
            let wanted = found.kind == FileType::RegularFile
                && self
                    .names
                    .as_ref()
                    .is_none_or(|names| names.match_path(found.inside));
            // A file that cannot be read, or is gone again, is skipped.
            match wanted.then(|| found.folder.file(found.name)) {
                Some(Ok(opened)) => self.search_file(opened, found.inside, watch, hits, too_large),
                _ => Ok(()),
            }
        })
    }

    fn search_file(
        &self,
        opened: OpenFile,
        inside: &Path,
        watch: &Watch,
        hits: &mut Hits,
        too_large: &mut u32,
    ) -> Result<(), Halt> {
        if opened.size() > MOST_BYTES {
            *too_large += 1;
            return Ok(());
        }
        // Bounded, because the file may be growing.
        let file = opened.file.take(MOST_BYTES);
        search(file, &shown(inside), &self.regex, watch, hits)
    }
}

fn place(arguments: &Arguments<'_>, root: &Path) -> Result<Place, String> {
    let path: Option<String> = arguments.optional("path")?;
    Place::resolve(root, path.as_deref().unwrap_or("."))
}

/// Adds how a search ended, if it was incomplete.
fn ended(
    seen: Result<LeftOut, Halt>,
    watch: &Watch,
    lines: &mut Vec<String>,
) -> Result<(), String> {
    match seen {
        Ok(left_out) => lines.extend(left_out.told()),
        Err(Halt::Enough) => {}
        Err(Halt::OutOfTime) => lines.push(watch.overdue()),
        Err(Halt::Cancelled) => return Err("stopped".to_owned()),
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_are_relative_to_their_folder() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        std::fs::create_dir(root.join("src")).unwrap();
        let matches = |base: &str, pattern: &str, path: &str| {
            let base = Place::resolve(&root, base).unwrap();
            Names::parse("pattern", pattern, &base).map(|names| names.match_path(Path::new(path)))
        };
        let check = |base, pattern, path, expected| {
            assert_eq!(
                matches(base, pattern, path),
                Ok(expected),
                "{pattern} {path}"
            );
        };
        check(".", "*.rs", "src/deep/a.rs", true);
        check(".", "./*.rs", "a.rs", true);
        check(".", "src/*.rs", "src/deep/a.rs", false);
        check(".", "src/**/*.rs", "src/a.rs", true);
        check(".", "**/*.{rs,toml}", "Cargo.toml", true);
        check("src", "*.rs", "a.rs", false);
        check("src", "deep/*.rs", "src/deep/a.rs", true);
        let whole = format!("{}/src/*.rs", root.display());
        check("src", &whole, "src/a.rs", true);
        for wrong in ["../*.rs", "src/../../*", "/etc/*", "[", "{a"] {
            let error = matches(".", wrong, "a").unwrap_err();
            assert!(error.contains("`pattern`"), "{error}");
        }
    }

    #[test]
    fn the_newest_are_kept() {
        let mut newest = Newest::default();
        for n in 0..1000_u32 {
            newest.push(
                (n * 7919) % 1000,
                &PathBuf::from(format!("{}", (n * 7919) % 1000)),
            );
        }
        let lines = newest.finish();
        assert_eq!(lines.len(), MOST_FILES + 1);
        assert_eq!((lines[0].as_str(), lines[199].as_str()), ("999", "800"));
        assert!(lines[200].starts_with("[800 older"), "{}", lines[200]);
    }
}
