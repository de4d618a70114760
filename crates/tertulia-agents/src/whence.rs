//! Where an agent's settings come from, for errors that tell the user what to change.

/// Names where the user configures an agent, so that error hints name an existing setting or flag.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Whence {
    /// Name of the section in the settings, `[agents.NAME]`. In a team the agent may speak under
    /// another name.
    pub section: String,
    /// Hint about the program, if the settings do not name it.
    pub program: Option<String>,
    /// What sets the time limit of an answer, if not the settings.
    pub limit: Option<String>,
}

impl Whence {
    /// An agent that is configured in the settings under `name`.
    pub fn settings(name: &str) -> Whence {
        Whence {
            section: name.to_owned(),
            program: None,
            limit: None,
        }
    }

    /// Formats the key with the section that holds it.
    pub(crate) fn setting(&self, key: &str) -> String {
        format!("`{key}` in [agents.{}]", self.section)
    }

    /// Returns what sets the time limit of an answer.
    pub(crate) fn limit(&self) -> String {
        let limit = self.limit.clone();
        limit.unwrap_or_else(|| self.setting("timeout"))
    }

    /// Returns the hint for a program with another path.
    pub(crate) fn program(&self) -> String {
        let program = self.program.clone();
        program.unwrap_or_else(|| format!("set {}", self.setting("command")))
    }
}
