//! The programs whose sessions can be imported.

use tertulia_formats::importer::{IMPORTERS, Importer, importer};

/// Program that wrote a file.
#[derive(Clone, Copy, Debug)]
pub enum SourceKind {
    /// tertulia's own logs.
    Tertulia,
    /// Session snapshots of agent-chatter, and our own.
    AgentChatter,
    /// Session files of openagent-terminal.
    OpenagentTerminal,
    /// Sessions of claude-master, an instructor and a worker.
    ClaudeMaster,
    /// Histories of any other program.
    Program(&'static dyn Importer),
}

impl PartialEq for SourceKind {
    fn eq(&self, other: &SourceKind) -> bool {
        self.name() == other.name()
    }
}

impl Eq for SourceKind {}

impl SourceKind {
    /// The programs whose files have a place of their own in the import.
    const OWN: [SourceKind; 4] = [
        SourceKind::Tertulia,
        SourceKind::AgentChatter,
        SourceKind::OpenagentTerminal,
        SourceKind::ClaudeMaster,
    ];

    /// Returns the value of `--from`.
    pub fn name(self) -> &'static str {
        match self {
            SourceKind::Tertulia => "tertulia",
            SourceKind::AgentChatter => "agent-chatter",
            SourceKind::OpenagentTerminal => "openagent-terminal",
            SourceKind::ClaudeMaster => "claude-master",
            SourceKind::Program(importer) => importer.name(),
        }
    }

    /// Returns all values of `--from`.
    pub fn names() -> Vec<&'static str> {
        let own = SourceKind::OWN.map(SourceKind::name).into_iter();
        own.chain(IMPORTERS.iter().map(|importer| importer.name()))
            .collect()
    }

    /// Parses a value of `--from`.
    pub fn named(name: &str) -> Result<SourceKind, String> {
        let own = SourceKind::OWN.into_iter().find(|kind| kind.name() == name);
        own.or_else(|| importer(name).map(SourceKind::Program))
            .ok_or_else(|| format!("supported: {}", SourceKind::names().join(", ")))
    }
}
