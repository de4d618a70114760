//! Finds the tool calls that wrote the lines of a file: `edit` reads what a call changed, and this
//! module follows the changes from the oldest to the newest. A line belongs to the newest call that
//! put it in.

mod edit;
#[cfg(test)]
mod tests;

use std::collections::{HashMap, HashSet};

pub use edit::{FileEdit, edits_of};

/// Finds the edit that each line of a file comes from. `edits` are all recorded edits of the file,
/// oldest first; the result has an index into them for each line, or `None` if no recorded edit
/// wrote it.
pub fn authors(lines: &[&str], edits: &[FileEdit]) -> Vec<Option<usize>> {
    let mut newest: HashMap<&str, usize> = HashMap::new();
    let mut content: Option<String> = None;
    let inserted: Vec<Vec<String>> = edits
        .iter()
        .map(|edit| {
            let inserted = edit.inserted(content.as_deref());
            content = edit.applied(content.take());
            inserted
        })
        .collect();
    for (index, lines) in inserted.iter().enumerate() {
        for line in lines.iter().filter(|line| says_something(line)) {
            newest.insert(line.trim_end(), index);
        }
    }
    let mut authors: Vec<Option<usize>> = lines
        .iter()
        .map(|line| newest.get(line.trim_end()).copied())
        .collect();
    join_trivial(lines, &inserted, &mut authors);
    authors
}

/// Returns true if a line is more than brackets and spaces, which every call writes.
fn says_something(line: &str) -> bool {
    line.chars().filter(|c| c.is_alphanumeric()).count() >= 2
}

/// Gives lines such as `}` to the edit of a neighbour, if that edit wrote such a line.
fn join_trivial(lines: &[&str], inserted: &[Vec<String>], authors: &mut [Option<usize>]) {
    let trivial: Vec<HashSet<&str>> = inserted
        .iter()
        .map(|lines| {
            let lines = lines.iter().filter(|line| !says_something(line));
            lines.map(|line| line.trim_end()).collect()
        })
        .collect();
    let fits = |author: usize, line: &str| trivial[author].contains(line.trim_end());
    for place in 1..lines.len() {
        if !says_something(lines[place]) {
            authors[place] = authors[place - 1].filter(|author| fits(*author, lines[place]));
        }
    }
    for place in (0..lines.len().saturating_sub(1)).rev() {
        if !says_something(lines[place]) && authors[place].is_none() {
            authors[place] = authors[place + 1].filter(|author| fits(*author, lines[place]));
        }
    }
}

/// Returns consecutive line numbers as ranges, both ends included.
pub fn ranges(numbers: impl IntoIterator<Item = usize>) -> Vec<(usize, usize)> {
    let mut ranges: Vec<(usize, usize)> = Vec::new();
    for number in numbers {
        match ranges.last_mut() {
            Some((_, last)) if *last + 1 == number => *last = number,
            _ => ranges.push((number, number)),
        }
    }
    ranges
}
