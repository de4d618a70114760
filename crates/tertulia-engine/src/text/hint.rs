//! Completes the commands in hints with the flags of this run, so that they use the same store and
//! server.

/// Commands that connect to a server.
const OF_SERVERS: &[&str] = &["serve", "attach", "ps", "stop"];

/// How this run was started, as far as commands in hints must repeat it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Invocation {
    /// The program with the flags that chose the store.
    pub program: String,
    /// Value of `--socket`, quoted for a shell.
    pub socket: Option<String>,
}

impl Default for Invocation {
    fn default() -> Invocation {
        Invocation {
            program: "tertulia".to_owned(),
            socket: None,
        }
    }
}

impl Invocation {
    /// Creates an invocation with this program and these flags.
    pub fn of(program: &str) -> Invocation {
        Invocation {
            program: program.to_owned(),
            socket: None,
        }
    }

    /// Completes the commands of a hint, which stand in backticks.
    pub fn complete(&self, hint: &str) -> String {
        let mut parts = hint.split('`');
        let mut text = parts.next().unwrap_or_default().to_owned();
        // Every second part stands between backticks.
        let mut inside = true;
        for part in parts {
            text.push('`');
            match inside {
                true => text.push_str(&self.command(part)),
                false => text.push_str(part),
            }
            inside = !inside;
        }
        text
    }

    fn command(&self, command: &str) -> String {
        let rest = match command.strip_prefix("tertulia") {
            // A command that names a store is complete.
            Some(rest) if !rest.contains("--store ") => rest,
            _ => return command.to_owned(),
        };
        let verb = rest.trim_start().split(' ').next().unwrap_or_default();
        match &self.socket {
            Some(socket) if OF_SERVERS.contains(&verb) => {
                let rest = rest.trim_start().trim_start_matches(verb);
                format!("{} {verb} --socket {socket}{rest}", self.program)
            }
            _ if rest.is_empty() || rest.starts_with(' ') => format!("{}{rest}", self.program),
            _ => command.to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_in_hints_carry_the_flags_of_this_run() {
        let here = Invocation {
            program: "tertulia --store files:x".to_owned(),
            socket: Some("/tmp/s".to_owned()),
        };
        let check = |hint: &str, expected: &str| assert_eq!(here.complete(hint), expected);
        check(
            "`tertulia undo` takes it back",
            "`tertulia --store files:x undo` takes it back",
        );
        check(
            "`tertulia ps` lists them, `tertulia stop --all` ends the server",
            "`tertulia --store files:x ps --socket /tmp/s` lists them, \
             `tertulia --store files:x stop --socket /tmp/s --all` ends the server",
        );
        check("`tertulia`", "`tertulia --store files:x`");
        for same in [
            "add --fork",
            "`tertulia --store files:y doctor` finds it",
            "`max_age` of tertulia undo",
            "`tertulia.db` is damaged",
            "",
            "`",
        ] {
            check(same, same);
        }
        let plain = Invocation::default();
        assert_eq!(plain.complete("`tertulia undo`"), "`tertulia undo`");
    }
}
