//! Reads the description of a session, `workspace.yaml`: flat lines of `key: value`.

use std::path::Path;

use crate::importer::Input;

/// Name of the file beside the log.
const FILE: &str = "workspace.yaml";
/// Maximum size of the file.
const LIMIT: u64 = 1_000_000;

/// What the description says.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Workspace {
    pub(super) session: Option<String>,
    pub(super) cwd: Option<String>,
    pub(super) branch: Option<String>,
    pub(super) title: Option<String>,
}

impl Workspace {
    /// Reads the description beside a log, if there is one.
    pub(super) fn beside(log: &Path) -> Workspace {
        let path = log.with_file_name(FILE);
        let input = Input {
            path: &path,
            content: None,
        };
        // A log without it is complete in itself.
        let content = input.read(LIMIT).unwrap_or_default();
        Workspace::read(&String::from_utf8_lossy(&content))
    }

    fn read(content: &str) -> Workspace {
        let mut workspace = Workspace::default();
        let mut summary = None;
        let mut lines = content.lines().peekable();
        while let Some(line) = lines.next() {
            let Some((key, value)) = line.split_once(": ").or(line.split_once(":")) else {
                continue;
            };
            let block = value.trim().starts_with(['|', '>']);
            let value = match block {
                // The first line of a text of several.
                true => lines.next_if(|next| next.starts_with(' ')).map(str::trim),
                false => Some(plain(value.trim())),
            };
            let value = value.filter(|value| !value.is_empty() && *value != "null");
            let slot = match key {
                "id" => &mut workspace.session,
                "cwd" => &mut workspace.cwd,
                "branch" => &mut workspace.branch,
                "name" => &mut workspace.title,
                "summary" => &mut summary,
                _ => continue,
            };
            *slot = value.map(str::to_owned);
        }
        workspace.title = workspace.title.or(summary);
        workspace
    }
}

/// Removes the quotes around a value.
fn plain(value: &str) -> &str {
    let quotes = ['"', '\''];
    let inner = quotes.iter().find_map(|quote| {
        let rest = value.strip_prefix(*quote)?;
        rest.strip_suffix(*quote)
    });
    inner.unwrap_or(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flat_lines_are_read() {
        let content = "id: abc\ncwd: \"/home/user/app\"\nbranch:\nuser_named: false\n\
                       summary_count: 0\nsummary: |-\n  Fix the: test\n  more\nx\n: y\n";
        let workspace = Workspace::read(content);
        assert_eq!(workspace.session.as_deref(), Some("abc"));
        assert_eq!(workspace.cwd.as_deref(), Some("/home/user/app"));
        assert_eq!(workspace.branch, None);
        assert_eq!(workspace.title.as_deref(), Some("Fix the: test"));
        let named = Workspace::read("name: 'A name'\nsummary: other");
        assert_eq!(named.title.as_deref(), Some("A name"));
        assert_eq!(Workspace::read(""), Workspace::default());
    }
}
