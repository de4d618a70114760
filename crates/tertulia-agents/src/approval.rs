//! Tool permissions: how risky a tool is, the four modes, and what the user allowed for the rest of the session.
//! Nothing here asks or runs anything.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde::{Deserialize, Serialize};

use tertulia_core::entry::ToolCall;

/// How much harm a tool can do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Risk {
    /// It only looks.
    Low,
    /// It changes what can be seen to be changed.
    Medium,
    /// It destroys, or does whatever it is told.
    High,
}

impl Risk {
    /// Its name as it is written.
    pub const fn name(self) -> &'static str {
        match self {
            Risk::Low => "low",
            Risk::Medium => "medium",
            Risk::High => "high",
        }
    }
}

/// How a person wants to be asked about tools.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Approval {
    /// What only looks runs at once, the rest is asked about.
    Ask,
    /// What only looks runs at once, the rest is refused.
    #[default]
    Low,
    /// Everything runs.
    All,
    /// There are no tools.
    None,
}

impl Approval {
    /// All modes, in the order of the help.
    pub const ALL: [Approval; 4] = [Approval::Ask, Approval::Low, Approval::All, Approval::None];

    /// The mode of this name.
    pub fn named(name: &str) -> Option<Approval> {
        let mut modes = Approval::ALL.into_iter();
        modes.find(|mode| mode.name().eq_ignore_ascii_case(name))
    }

    /// Its name as it is written.
    pub const fn name(self) -> &'static str {
        match self {
            Approval::Ask => "ask",
            Approval::Low => "low",
            Approval::All => "all",
            Approval::None => "none",
        }
    }
}

/// What is to be done about a tool that an agent wants to use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ruling {
    /// Run it.
    Run,
    /// Ask the person.
    Ask,
    /// Do not run it, and tell the agent.
    Refuse,
}

/// A tool that an agent wants to use, as a person is asked about it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ToolRequest {
    /// The call.
    pub call: ToolCall,
    /// How much harm it can do.
    pub risk: Risk,
    /// What it would do, in lines that a person reads: a command, a diff.
    pub preview: String,
    /// What "always" would allow: other calls with the same key are not asked about.
    pub key: String,
}

/// What a person answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// This once.
    Yes,
    /// This one, and all like it in this session.
    Always,
    /// No.
    No,
}

/// The rule of a talk: its mode, and what a person allowed for good.
#[derive(Clone, Debug, Default)]
pub struct Rules {
    mode: Approval,
    always: BTreeSet<String>,
}

impl Rules {
    /// Rules under which nothing is allowed yet beyond the mode.
    pub fn new(mode: Approval) -> Rules {
        Rules {
            mode,
            always: BTreeSet::new(),
        }
    }

    /// The mode.
    pub fn mode(&self) -> Approval {
        self.mode
    }

    /// What is to be done about a request.
    pub fn ruling(&self, request: &ToolRequest) -> Ruling {
        match self.mode {
            Approval::None => Ruling::Refuse,
            Approval::All => Ruling::Run,
            _ if request.risk == Risk::Low || self.always.contains(&request.key) => Ruling::Run,
            Approval::Ask => Ruling::Ask,
            Approval::Low => Ruling::Refuse,
        }
    }

    /// Takes in an answer. Whether the tool runs.
    pub fn settle(&mut self, request: &ToolRequest, verdict: Verdict) -> bool {
        if verdict == Verdict::Always {
            self.always.insert(request.key.clone());
        }
        verdict != Verdict::No
    }

    /// Changes what is allowed. Returns whether that made a difference.
    pub fn change(&mut self, change: &PermissionChange) -> bool {
        match change {
            PermissionChange::Mode(mode) => {
                let differs = self.mode != *mode || !self.always.is_empty();
                self.mode = *mode;
                self.always.clear();
                differs
            }
            PermissionChange::Revoke(key) => self.always.remove(key),
            PermissionChange::RevokeAll => !std::mem::take(&mut self.always).is_empty(),
        }
    }
}

/// A change of the tool permissions that the user asks for while the session runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PermissionChange {
    /// Switches the mode. Everything that was always allowed asks again.
    Mode(Approval),
    /// Revokes one permanent permission.
    Revoke(String),
    /// Revokes all permanent permissions; the mode stays.
    RevokeAll,
}

/// The tool permissions in force, as frontends show them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PermissionState {
    /// The mode.
    pub mode: Approval,
    /// The keys of the tool calls that run unasked until the session is left or they are revoked.
    #[serde(default)]
    pub always: Vec<String>,
}

/// The tool permissions of a running session. Clones share one state: the participants of a session go by it,
/// and a frontend changes it at any time, also while an agent answers.
#[derive(Clone, Debug, Default)]
pub struct Permissions {
    rules: Arc<Mutex<Rules>>,
    /// Under the mode `all`, only what is of low risk runs.
    at_most_low: bool,
}

impl Permissions {
    /// Permissions under which nothing is allowed yet beyond the mode.
    pub fn new(mode: Approval) -> Permissions {
        Permissions {
            rules: Arc::new(Mutex::new(Rules::new(mode))),
            at_most_low: false,
        }
    }

    /// The same permissions for a participant that `all` does not free: for it `all` means `low`.
    #[must_use]
    pub fn at_most_low(&self) -> Permissions {
        Permissions {
            rules: self.rules.clone(),
            at_most_low: true,
        }
    }

    /// The mode.
    pub fn mode(&self) -> Approval {
        match self.locked().mode() {
            Approval::All if self.at_most_low => Approval::Low,
            mode => mode,
        }
    }

    /// What is to be done about a request.
    pub fn ruling(&self, request: &ToolRequest) -> Ruling {
        match self.mode() {
            Approval::Low if self.at_most_low => Rules::new(Approval::Low).ruling(request),
            _ => self.locked().ruling(request),
        }
    }

    /// Takes in an answer. Returns whether the tool runs.
    pub fn settle(&self, request: &ToolRequest, verdict: Verdict) -> bool {
        self.locked().settle(request, verdict)
    }

    /// Changes what is allowed. Returns whether that made a difference.
    pub fn change(&self, change: &PermissionChange) -> bool {
        self.locked().change(change)
    }

    /// What is in force now.
    pub fn state(&self) -> PermissionState {
        let rules = self.locked();
        PermissionState {
            mode: rules.mode,
            always: rules.always.iter().cloned().collect(),
        }
    }

    fn locked(&self) -> MutexGuard<'_, Rules> {
        self.rules.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(risk: Risk, key: &str) -> ToolRequest {
        ToolRequest {
            call: ToolCall {
                id: "1".into(),
                name: "shell".into(),
                arguments: serde_json::json!({}),
            },
            risk,
            preview: String::new(),
            key: key.into(),
        }
    }

    #[test]
    fn each_mode_rules_by_risk() {
        let check = |mode, expected: [Ruling; 3]| {
            let rules = Rules::new(mode);
            let found =
                [Risk::Low, Risk::Medium, Risk::High].map(|risk| rules.ruling(&request(risk, "k")));
            assert_eq!(found, expected, "{mode:?}");
        };
        check(Approval::Ask, [Ruling::Run, Ruling::Ask, Ruling::Ask]);
        check(Approval::Low, [Ruling::Run, Ruling::Refuse, Ruling::Refuse]);
        check(Approval::All, [Ruling::Run; 3]);
        check(Approval::None, [Ruling::Refuse; 3]);
    }

    #[test]
    fn always_means_this_key_only_and_yes_means_once() {
        let mut rules = Rules::new(Approval::Ask);
        let (ls, rm) = (
            request(Risk::High, "shell ls"),
            request(Risk::High, "shell rm"),
        );
        assert!(rules.settle(&ls, Verdict::Yes));
        assert_eq!(rules.ruling(&ls), Ruling::Ask);
        assert!(rules.settle(&ls, Verdict::Always));
        assert_eq!(rules.ruling(&ls), Ruling::Run);
        assert_eq!(rules.ruling(&rm), Ruling::Ask);
        assert!(!rules.settle(&rm, Verdict::No));
        assert_eq!(rules.ruling(&rm), Ruling::Ask);
    }

    #[test]
    fn what_was_allowed_for_the_session_is_listed_and_revoked() {
        let permissions = Permissions::new(Approval::Ask);
        let (edit, shell) = (
            request(Risk::Medium, "file_edit"),
            request(Risk::High, "shell ls"),
        );
        // A clone is the same permission, not a copy of it.
        let seen = permissions.clone();
        for request in [&edit, &shell] {
            permissions.settle(request, Verdict::Always);
        }
        assert_eq!(seen.state().always, ["file_edit", "shell ls"]);
        assert!(seen.change(&PermissionChange::Revoke("file_edit".into())));
        assert!(!seen.change(&PermissionChange::Revoke("file_edit".into())));
        assert_eq!(permissions.ruling(&edit), Ruling::Ask);
        assert_eq!(permissions.ruling(&shell), Ruling::Run);
        assert!(seen.change(&PermissionChange::RevokeAll));
        assert_eq!(permissions.ruling(&shell), Ruling::Ask);
        assert!(!seen.change(&PermissionChange::RevokeAll));
    }

    #[test]
    fn another_mode_revokes_what_was_allowed_before() {
        for mode in Approval::ALL {
            let permissions = Permissions::new(Approval::Ask);
            let edit = request(Risk::Medium, "file_edit");
            permissions.settle(&edit, Verdict::Always);
            assert!(permissions.change(&PermissionChange::Mode(mode)));
            let expected = PermissionState {
                mode,
                always: Vec::new(),
            };
            assert_eq!(permissions.state(), expected);
            assert_eq!(
                permissions.ruling(&edit),
                Permissions::new(mode).ruling(&edit)
            );
        }
        assert_eq!(Approval::named("ALL"), Some(Approval::All));
        assert_eq!(Approval::named("every"), None);
    }

    #[test]
    fn all_does_not_free_a_participant_that_only_looks() {
        let permissions = Permissions::new(Approval::All);
        let looks = permissions.at_most_low();
        let edit = request(Risk::Medium, "file_edit");
        assert_eq!(permissions.ruling(&edit), Ruling::Run);
        assert_eq!(
            (looks.mode(), looks.ruling(&edit)),
            (Approval::Low, Ruling::Refuse)
        );
        permissions.change(&PermissionChange::Mode(Approval::Ask));
        assert_eq!(looks.ruling(&edit), Ruling::Ask);
    }
}
