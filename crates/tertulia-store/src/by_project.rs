//! SQL for rows of a project that has had several ids.

use rusqlite::types::Value;

use tertulia_core::query::ProjectIds;

/// Maximum number of project ids with one select each.
const FEW: usize = 16;

/// Returns the select `every`, which ends in an open `WHERE`, narrowed to a project; adds the
/// project ids to `values`.
///
/// A few ids become one ordered select each, which SQLite merges by the index instead of sorting
/// all rows.
pub(super) fn of_project(
    every: &str,
    project: Option<&ProjectIds>,
    values: &mut Vec<Value>,
) -> String {
    let Some(ids) = project else {
        return every.to_owned();
    };
    let places: Vec<String> = ids
        .iter()
        .map(|id| {
            values.push(id.to_owned().into());
            format!("?{}", values.len())
        })
        .collect();
    if places.is_empty() || places.len() > FEW {
        return format!("{every} AND project IN ({})", places.join(", "));
    }
    places
        .iter()
        .map(|place| format!("{every} AND project = {place}"))
        .collect::<Vec<_>>()
        .join(" UNION ALL ")
}
