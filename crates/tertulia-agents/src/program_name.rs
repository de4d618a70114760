//! Names of the programs that a command line starts.

use std::path::Path;

/// Programs that run the package or script that one of their arguments names.
const RUNNERS: &[&str] = &["npx", "bunx", "pnpx", "uvx", "node", "bun", "pnpm", "deno"];

/// Returns the program's name, and for a package runner its arguments, one of which is the name.
pub(super) fn names<'a>(command: &'a Path, args: &'a [String]) -> impl Iterator<Item = &'a str> {
    let file = command.file_name().and_then(|file| file.to_str());
    let file = plain(file.unwrap_or_default());
    let args = args.iter().filter(move |_| RUNNERS.contains(&file));
    std::iter::once(file).chain(args.map(|word| plain(word)))
}

/// Returns the last part of a path or of a package's name, without version and extension.
pub(super) fn plain(word: &str) -> &str {
    let name = word.rsplit(['/', '\\']).next().unwrap_or_default();
    let name = name.split('@').next().unwrap_or_default();
    let endings = [".exe", ".cmd", ".js", ".mjs"];
    endings
        .iter()
        .find_map(|end| name.strip_suffix(end))
        .unwrap_or(name)
}
