//! Tool permissions: the risk of a tool, the modes, and what the user allowed for the rest of
//! the session. This module neither asks the user nor runs tools.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde::{Deserialize, Serialize};

pub use tertulia_core::approval::Approval;
use tertulia_core::entry::ToolCall;

/// How much harm a tool can do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Risk {
    /// Only reads.
    Low,
    /// Makes changes that can be seen.
    Medium,
    /// Destroys data, or runs arbitrary commands.
    High,
}

impl Risk {
    /// Name of the risk as it is serialised.
    pub const fn name(self) -> &'static str {
        match self {
            Risk::Low => "low",
            Risk::Medium => "medium",
            Risk::High => "high",
        }
    }
}

/// Decision about a tool request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ruling {
    /// Run the tool.
    Run,
    /// Ask the user.
    Ask,
    /// Do not run the tool, and tell the agent.
    Refuse,
}

/// A tool call for which an agent needs permission, as it is shown to the user.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ToolRequest {
    /// The call.
    pub call: ToolCall,
    /// How much harm the call can do.
    pub risk: Risk,
    /// What the call would do, for the user: a command, a diff.
    pub preview: String,
    /// Folder that the session works in.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub folder: String,
    /// What "always" would allow: other calls with the same key run without asking.
    pub key: String,
    /// Whether the call is known to do nothing but edit a file of the working folder.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_edit: bool,
}

/// The user's answer to a permission request. It is serialised as `yes`, `always` or `no`; the words
/// of a denial are a field of their own beside it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "VerdictName", from = "VerdictName")]
pub enum Verdict {
    /// Allow this call.
    Yes,
    /// Allow this call, and all with the same key in this session.
    Always,
    /// Deny this call.
    No,
    /// Deny this call, and tell the agent what to do instead.
    Instead(String),
    /// Deny this call because no user could be asked about it.
    Unanswered,
}

/// [`Verdict`] as it is serialised.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum VerdictName {
    Yes,
    Always,
    No,
}

impl Verdict {
    /// Creates a denial: with words for the agent, if there are any.
    pub fn denied(reason: &str) -> Verdict {
        match reason.trim() {
            "" => Verdict::No,
            words => Verdict::Instead(words.to_owned()),
        }
    }

    /// Returns true if the call runs.
    pub fn allows(&self) -> bool {
        matches!(self, Verdict::Yes | Verdict::Always)
    }

    /// Words of the user for the agent.
    pub fn reason(&self) -> Option<&str> {
        match self {
            Verdict::Instead(words) => Some(words),
            Verdict::Yes | Verdict::Always | Verdict::No | Verdict::Unanswered => None,
        }
    }
}

impl From<Verdict> for VerdictName {
    fn from(verdict: Verdict) -> VerdictName {
        match verdict {
            Verdict::Yes => VerdictName::Yes,
            Verdict::Always => VerdictName::Always,
            Verdict::No | Verdict::Instead(_) | Verdict::Unanswered => VerdictName::No,
        }
    }
}

impl From<VerdictName> for Verdict {
    fn from(name: VerdictName) -> Verdict {
        match name {
            VerdictName::Yes => Verdict::Yes,
            VerdictName::Always => Verdict::Always,
            VerdictName::No => Verdict::No,
        }
    }
}

/// Permissions of a session: the mode, and the keys that the user always allows.
#[derive(Clone, Debug, Default)]
pub struct Rules {
    mode: Approval,
    /// Whether the user set the mode; else it is a default.
    is_said: bool,
    always: BTreeSet<String>,
}

impl Rules {
    /// Creates rules that allow nothing beyond the mode.
    pub fn new(mode: Approval) -> Rules {
        Rules {
            mode,
            is_said: false,
            always: BTreeSet::new(),
        }
    }

    /// The mode.
    pub fn mode(&self) -> Approval {
        self.mode
    }

    /// Decides whether a tool call needs permission: it runs at once, the user is asked, or it is
    /// refused.
    pub fn ruling(&self, request: &ToolRequest) -> Ruling {
        match self.mode {
            Approval::None => Ruling::Refuse,
            Approval::All => Ruling::Run,
            _ if request.risk == Risk::Low || self.always.contains(&request.key) => Ruling::Run,
            Approval::Edits if request.is_edit => Ruling::Run,
            Approval::Ask | Approval::Edits => Ruling::Ask,
            Approval::Low => Ruling::Refuse,
        }
    }

    /// Records the user's answer. Returns whether the tool runs.
    pub fn settle(&mut self, request: &ToolRequest, verdict: &Verdict) -> bool {
        if *verdict == Verdict::Always {
            self.always.insert(request.key.clone());
        }
        verdict.allows()
    }

    /// Changes the permissions. Returns whether that made a difference.
    pub fn change(&mut self, change: &PermissionChange) -> bool {
        match change {
            PermissionChange::Mode(mode) => {
                let differs = self.mode != *mode || !self.always.is_empty();
                self.mode = *mode;
                self.is_said = true;
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
    /// Keys of the tool calls that run without asking until the session ends or they are revoked.
    #[serde(default)]
    pub always: Vec<String>,
}

type Callback = Arc<dyn Fn() + Send + Sync>;

/// What is called after a change.
#[derive(Clone, Default)]
struct Listener(Arc<Mutex<Option<Callback>>>);

impl Listener {
    fn locked(&self) -> MutexGuard<'_, Option<Callback>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl std::fmt::Debug for Listener {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Listener")
    }
}

/// The tool permissions of a running session. Clones share one state: all participants of a session
/// use it, and a frontend can change it at any time, also while an agent answers.
#[derive(Clone, Debug, Default)]
pub struct Permissions {
    rules: Arc<Mutex<Rules>>,
    listener: Listener,
    /// Whether the modes `all` and `edits` count as `low`.
    at_most_low: bool,
}

impl Permissions {
    /// Creates permissions that allow nothing beyond the mode.
    pub fn new(mode: Approval) -> Permissions {
        Permissions {
            rules: Arc::new(Mutex::new(Rules::new(mode))),
            listener: Listener::default(),
            at_most_low: false,
        }
    }

    /// Creates permissions whose mode the user set.
    pub fn said(mode: Approval) -> Permissions {
        let permissions = Permissions::new(mode);
        permissions.locked().is_said = true;
        permissions
    }

    /// Returns the same permissions for a participant for which `all` and `edits` mean `low`.
    #[must_use]
    pub fn at_most_low(&self) -> Permissions {
        Permissions {
            rules: self.rules.clone(),
            listener: self.listener.clone(),
            at_most_low: true,
        }
    }

    /// The mode.
    pub fn mode(&self) -> Approval {
        match self.locked().mode() {
            Approval::All | Approval::Edits if self.at_most_low => Approval::Low,
            mode => mode,
        }
    }

    /// The mode that the user set, if it is no default.
    pub fn said_mode(&self) -> Option<Approval> {
        let rules = self.locked();
        rules.is_said.then_some(rules.mode)
    }

    /// Sets what is called after a change, to record it.
    pub fn on_change(&self, call: impl Fn() + Send + Sync + 'static) {
        *self.listener.locked() = Some(Arc::new(call));
    }

    /// Decides about a request.
    pub fn ruling(&self, request: &ToolRequest) -> Ruling {
        match self.mode() {
            Approval::Low if self.at_most_low => Rules::new(Approval::Low).ruling(request),
            _ => self.locked().ruling(request),
        }
    }

    /// Records the user's answer. Returns whether the tool runs.
    pub fn settle(&self, request: &ToolRequest, verdict: &Verdict) -> bool {
        self.locked().settle(request, verdict)
    }

    /// Changes the permissions. Returns whether that made a difference.
    pub fn change(&self, change: &PermissionChange) -> bool {
        let differs = self.locked().change(change);
        let listener = self.listener.locked().clone();
        if let Some(call) = listener {
            call();
        }
        differs
    }

    /// Returns the permissions in force.
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
            folder: String::new(),
            key: key.into(),
            is_edit: false,
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
        check(Approval::Edits, [Ruling::Run, Ruling::Ask, Ruling::Ask]);
        let edit = ToolRequest {
            is_edit: true,
            ..request(Risk::Medium, "file_edit")
        };
        assert_eq!(Rules::new(Approval::Edits).ruling(&edit), Ruling::Run);
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
        assert!(rules.settle(&ls, &Verdict::Yes));
        assert_eq!(rules.ruling(&ls), Ruling::Ask);
        assert!(rules.settle(&ls, &Verdict::Always));
        assert_eq!(rules.ruling(&ls), Ruling::Run);
        assert_eq!(rules.ruling(&rm), Ruling::Ask);
        assert!(!rules.settle(&rm, &Verdict::No));
        assert!(!rules.settle(&rm, &Verdict::Instead("ls".into())));
        assert_eq!(rules.ruling(&rm), Ruling::Ask);
    }

    #[test]
    fn a_denial_with_words_is_a_no_to_programs_that_know_no_words() {
        let told = |verdict: &Verdict| serde_json::to_value(verdict).unwrap();
        assert_eq!(told(&Verdict::Always), "always");
        assert_eq!(told(&Verdict::denied("use ls")), "no");
        assert_eq!(
            serde_json::from_str::<Verdict>("\"no\"").unwrap(),
            Verdict::No
        );
        assert_eq!(Verdict::denied(" \n"), Verdict::No);
        assert_eq!(Verdict::denied(" use ls ").reason(), Some("use ls"));
    }

    #[test]
    fn what_was_allowed_for_the_session_is_listed_and_revoked() {
        let permissions = Permissions::new(Approval::Ask);
        let (edit, shell) = (
            request(Risk::Medium, "file_edit"),
            request(Risk::High, "shell ls"),
        );
        // A clone shares the state.
        let seen = permissions.clone();
        for request in [&edit, &shell] {
            permissions.settle(request, &Verdict::Always);
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
            permissions.settle(&edit, &Verdict::Always);
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
        permissions.change(&PermissionChange::Mode(Approval::Edits));
        assert_eq!(looks.ruling(&edit), Ruling::Refuse);
        permissions.change(&PermissionChange::Mode(Approval::Ask));
        assert_eq!(looks.ruling(&edit), Ruling::Ask);
    }
}
