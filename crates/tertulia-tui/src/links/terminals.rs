//! Detects terminals that support hyperlinks.

/// First version of tmux that passes links on.
const TMUX: (u32, u32) = (3, 4);
/// First version of VTE with working links; the one before had broken ones.
const VTE: u32 = 5001;
/// First version of Konsole with links.
const KONSOLE: u32 = 201_200;

/// Values of `TERM_PROGRAM` of programs that support links.
const PROGRAMS: [&str; 9] = [
    "ghostty",
    "Hyper",
    "iTerm.app",
    "mintty",
    "rio",
    "Tabby",
    "vscode",
    "WezTerm",
    "zed",
];
/// Prefixes of `TERM` of terminals that support links.
const TERMS: [&str; 8] = [
    "alacritty",
    "contour",
    "foot",
    "rio",
    "wezterm",
    "xterm-ghostty",
    "xterm-kitty",
    "xterm-rio",
];
/// Variables set only by terminals that support links.
const MARKS: [&str; 5] = [
    "ALACRITTY_WINDOW_ID",
    "DOMTERM",
    "KITTY_WINDOW_ID",
    "WEZTERM_PANE",
    "WT_SESSION",
];

/// Determines from the environment whether the terminal supports links. An unknown terminal gets
/// none: most would ignore them, but some print the sequences.
pub fn can(env: &dyn Fn(&str) -> Option<String>) -> bool {
    let value = |name: &str| env(name).filter(|value| !value.is_empty());
    let number = |name: &str| value(name).and_then(|value| value.parse::<u32>().ok());
    let term = value("TERM").unwrap_or_default();
    // Explicit override, as other programs support it.
    if let Some(force) = value("FORCE_HYPERLINK") {
        return force != "0";
    }
    if term == "dumb" || term == "linux" {
        return false;
    }
    let program = value("TERM_PROGRAM").unwrap_or_default();
    // Multiplexers first: the variables of the outer terminal are still set inside them.
    if value("TMUX").is_some() || program == "tmux" {
        return program == "tmux" && value("TERM_PROGRAM_VERSION").is_some_and(|it| is_new(&it));
    }
    if value("STY").is_some() {
        return false;
    }
    value("ZELLIJ").is_some()
        || number("VTE_VERSION").is_some_and(|version| version >= VTE)
        || number("KONSOLE_VERSION").is_some_and(|version| version >= KONSOLE)
        || PROGRAMS.contains(&program.as_str())
        || TERMS.iter().any(|known| term.starts_with(known))
        || MARKS.iter().any(|mark| value(mark).is_some())
        || value("COLORTERM").is_some_and(|value| value == "xfce4-terminal")
}

/// Returns true if a version of tmux (`3.4`, `3.5a`, `next-3.6`) is new enough.
fn is_new(version: &str) -> bool {
    let version = version.strip_prefix("next-").unwrap_or(version);
    let mut numbers = version
        .split(|letter: char| !letter.is_ascii_digit())
        .map(|number| number.parse::<u32>().unwrap_or_default());
    let mut next = || numbers.next().unwrap_or_default();
    (next(), next()) >= TMUX
}

#[cfg(test)]
mod tests {
    use super::*;

    fn knows(variables: &[(&str, &str)]) -> bool {
        can(&|name| {
            let found = variables.iter().find(|(variable, _)| *variable == name);
            found.map(|(_, value)| (*value).to_owned())
        })
    }

    #[test]
    fn only_terminals_that_know_links_get_them() {
        let xterm = ("TERM", "xterm-256color");
        for variables in [
            &[("TERM", "xterm-kitty")][..],
            &[("TERM", "alacritty")],
            &[("TERM", "foot-extra")],
            &[xterm, ("VTE_VERSION", "7006")],
            &[xterm, ("TERM_PROGRAM", "iTerm.app")],
            &[xterm, ("WT_SESSION", "a-b-c")],
            &[xterm, ("KONSOLE_VERSION", "230805")],
            &[xterm, ("COLORTERM", "xfce4-terminal")],
            &[xterm, ("ZELLIJ", "0")],
            &[xterm, ("FORCE_HYPERLINK", "1")],
        ] {
            assert!(knows(variables), "{variables:?}");
        }
        for variables in [
            &[][..],
            &[xterm],
            &[xterm, ("COLORTERM", "truecolor")],
            &[("TERM", "dumb"), ("VTE_VERSION", "7006")],
            &[("TERM", "linux"), ("WT_SESSION", "x")],
            &[xterm, ("VTE_VERSION", "5000")],
            &[xterm, ("VTE_VERSION", "new")],
            &[xterm, ("KONSOLE_VERSION", "200400")],
            &[xterm, ("TERM_PROGRAM", "Apple_Terminal")],
            &[xterm, ("WT_SESSION", "")],
            &[("TERM", "xterm-kitty"), ("FORCE_HYPERLINK", "0")],
        ] {
            assert!(!knows(variables), "{variables:?}");
        }
    }

    #[test]
    fn what_is_between_decides() {
        let tmux = |version| {
            let (term, program) = (("TERM", "tmux-256color"), ("TERM_PROGRAM", "tmux"));
            let version = ("TERM_PROGRAM_VERSION", version);
            knows(&[term, program, version, ("TMUX", "/tmp/x,1,0")])
        };
        assert!(tmux("3.4") && tmux("3.5a") && tmux("next-3.6") && tmux("4.0"));
        assert!(!tmux("3.3a") && !tmux("2.9") && !tmux("") && !tmux("new"));
        let old = [("TMUX", "x"), ("VTE_VERSION", "7006")];
        assert!(!knows(&old));
        let screen = [
            ("STY", "1.pts"),
            ("VTE_VERSION", "7006"),
            ("TERM", "screen"),
        ];
        assert!(!knows(&screen));
    }
}
