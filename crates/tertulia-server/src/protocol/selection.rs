//! [`Selection`]: which sessions a client lists or searches.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tertulia_core::entry::Kind;

use super::names::KindName;

/// Which sessions to list or search.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Selection {
    /// Only sessions whose title contains this, in upper or lower case.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Only sessions of this kind: `chat`, `team` or `pair`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<KindName>")]
    pub kind: Option<Kind>,
    /// Only sessions with this tag.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tag: Option<String>,
    /// Only sessions of this project: a `project_id`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project: Option<String>,
    /// Only sessions of this team.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub team: Option<String>,
    /// Only sessions in the trash.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub trash: bool,
}

impl Selection {
    /// Returns true if a title is selected.
    pub fn has_title(&self, title: Option<&str>) -> bool {
        let Some(wanted) = &self.title else {
            return true;
        };
        let title = title.unwrap_or_default().to_lowercase();
        title.contains(&wanted.to_lowercase())
    }
}
