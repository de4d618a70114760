//! Who may do what: how risky a tool is, the four ways of being asked, and what was allowed for good.
//! Nothing here asks or runs anything.

use serde::{Deserialize, Serialize};

use crate::entry::ToolCall;

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
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
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
    always: std::collections::BTreeSet<String>,
}

impl Rules {
    /// Rules under which nothing is allowed yet beyond the mode.
    pub fn new(mode: Approval) -> Rules {
        Rules {
            mode,
            always: std::collections::BTreeSet::new(),
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
}
