//! Agent programs that are neither a vendor's own nor an adapter: how each is started as an agent.

use std::path::Path;

use super::{ACP, COMMAND};

/// A program, and the settings with which it is an agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KnownProgram {
    /// Name of the program, and of the agent.
    pub name: &'static str,
    /// Agent type.
    pub kind: &'static str,
    /// Arguments with which it is an agent of this type.
    pub args: &'static [&'static str],
    /// Whether it asks before it uses a tool although none of its modes shows that.
    pub asks: bool,
}

/// All known programs.
pub const KNOWN: [KnownProgram; 5] = [
    program("qwen", ACP, &["--acp"]),
    KnownProgram {
        asks: true,
        ..program("copilot", ACP, &["--acp"])
    },
    program("cline", COMMAND, &[]),
    program("cn", COMMAND, &["-p"]),
    program("pi", COMMAND, &["-p"]),
];

const fn program(
    name: &'static str,
    kind: &'static str,
    args: &'static [&'static str],
) -> KnownProgram {
    KnownProgram {
        name,
        kind,
        args,
        asks: false,
    }
}

impl KnownProgram {
    /// Returns the known program that a command starts.
    pub fn of(command: &str) -> Option<&'static KnownProgram> {
        let file = Path::new(command).file_name()?;
        KNOWN.iter().find(|known| file == known.name)
    }

    /// Returns the known program that a command starts as an agent of its type.
    pub fn started_by(command: &str, args: &[String]) -> Option<&'static KnownProgram> {
        let is_given = |wanted: &&str| args.iter().any(|arg| arg == wanted);
        KnownProgram::of(command).filter(|known| known.args.iter().all(is_given))
    }

    /// Returns the arguments with which it is an agent.
    pub fn arguments(&self) -> Vec<String> {
        self.args.iter().map(|arg| (*arg).to_owned()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_known_by_their_files_and_arguments() {
        let check = |line: &str, expected: Option<&str>| {
            let mut words = line.split(' ').map(str::to_owned);
            let command = words.next().unwrap();
            let args: Vec<String> = words.collect();
            let known = KnownProgram::started_by(&command, &args);
            assert_eq!(known.map(|known| known.name), expected, "{line}");
        };
        check("/opt/bin/qwen --acp", Some("qwen"));
        check("qwen --acp --model x", Some("qwen"));
        check("qwen", None);
        check("qwen-wrapper --acp", None);
        check("copilot --acp", Some("copilot"));
        check("cline", Some("cline"));
        check("cn -p", Some("cn"));
        check("pi", None);
        check("/home/pi/bin/tr a b", None);
    }
}
