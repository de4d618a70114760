use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::process::{Command, ExitCode, Stdio};

use clap::{Args, Subcommand};
use jiff::Timestamp;
use qrcode::{Color, QrCode};
use serde_json::{Value, json};
use tertulia_server::web::access::PublicUrl;
use tertulia_server::web::credentials::{self, Credentials};

use crate::args::{ApproveMode, GlobalArgs};
use crate::env;
use crate::error::{CommandError, CommandResult, ErrorKind};
use crate::moment::{ago, span};
use crate::open;
use crate::serve::web::{self, CredentialFile, WebOptions, WebPage};
use crate::serve::{Manner, over_socket, place};
use crate::ui::Ui;

/// Where the page is served unless another address is given.
const ADDRESS: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 7417);
/// Maximum length of the name of a token.
const LONGEST_NAME: usize = 50;

/// Show sessions in a browser, on this machine or on a phone
///
/// Starts the server of `tertulia serve` with a web page, and prints its address with a one-time code. The same
/// sessions are live in terminals and browsers: each sees every word, and each can answer. Nothing is served
/// without a login, not even on this machine.
#[derive(Debug, Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "Examples:\n  \
    tertulia web                                    on http://127.0.0.1:7417, and opens a browser\n  \
    tertulia web --no-open                          only prints the address\n  \
    tertulia web code                               another code, for the next browser\n  \
    tertulia web token create phone --expires 30d   a token instead of codes\n  \
    ssh -L 7417:127.0.0.1:7417 HOST                 the page of another machine\n  \
    tertulia web --bind 0.0.0.0:7417 --tls-cert cert.pem --tls-key key.pem --public-url https://sessions.example.org:7417\n  \
    tertulia web --behind-proxy --public-url https://sessions.example.org"
)]
pub struct WebArgs {
    #[command(subcommand)]
    action: Option<Action>,
    #[command(flatten)]
    page: PageArgs,
    /// Don't open a browser
    #[arg(long)]
    no_open: bool,
    /// On this Unix socket, too [default: as `tertulia serve`]
    #[arg(long, value_name = "PATH")]
    socket: Option<PathBuf>,
    /// Tool policy: read-only tools always run; others ask (ask), are denied (low) or all run (all); none
    /// turns tools off [default: ask]
    #[arg(long, value_enum, value_name = "MODE")]
    approve: Option<ApproveMode>,
}

/// Where the page is served.
#[derive(Debug, Args)]
pub struct PageArgs {
    /// Listen on this address [default: 127.0.0.1:7417]
    #[arg(long, value_name = "ADDR:PORT")]
    bind: Option<SocketAddr>,
    /// Address that browsers use, behind a proxy or a forwarded port
    #[arg(long, value_name = "URL")]
    public_url: Option<String>,
    /// Certificate chain, as PEM
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    tls_cert: Option<PathBuf>,
    /// Key of the certificate, as PEM
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    tls_key: Option<PathBuf>,
    /// TLS is handled by a proxy in front
    #[arg(long, conflicts_with = "tls_cert")]
    behind_proxy: bool,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Print another one-time code
    #[command(after_help = "Examples:\n  \
        tertulia web code\n  \
        tertulia web code --read-only")]
    Code {
        /// Only for reading
        #[arg(long)]
        read_only: bool,
    },
    /// Tokens for devices and scripts
    #[command(
        subcommand,
        after_help = "Examples:\n  \
        tertulia web token create phone --expires 30d\n  \
        tertulia web token list\n  \
        tertulia web token revoke phone"
    )]
    Token(TokenAction),
}

#[derive(Debug, Subcommand)]
enum TokenAction {
    /// Create a token; it is printed only once
    #[command(after_help = "Examples:\n  \
        tertulia web token create phone --expires 30d\n  \
        tertulia web token create wall --read-only\n  \
        curl -H \"Authorization: Bearer TOKEN\" http://127.0.0.1:7417/")]
    Create {
        /// Its name
        name: String,
        /// Only for reading
        #[arg(long)]
        read_only: bool,
        /// How long it works: 12h, 30d, 4w [default: until it is revoked]
        #[arg(long, value_name = "TIME")]
        expires: Option<String>,
    },
    /// List tokens and logged-in browsers
    #[command(after_help = "Examples:\n  tertulia web token list --json")]
    List,
    /// End a token, or the login of a browser
    #[command(after_help = "Examples:\n  \
        tertulia web token revoke phone\n  \
        tertulia web token revoke login-5f3a9c1e")]
    Revoke {
        /// Name of the token or login
        name: String,
    },
}

impl PageArgs {
    /// Returns true if an option is given.
    pub fn is_given(&self) -> bool {
        let files = [&self.tls_cert, &self.tls_key];
        self.bind.is_some()
            || self.public_url.is_some()
            || files.into_iter().any(Option::is_some)
            || self.behind_proxy
    }

    /// Returns the options, if words cannot be read by others on their way.
    pub fn options(&self) -> CommandResult<WebOptions> {
        let public = self.public_url.as_deref().map(|url| {
            PublicUrl::parse(url).ok_or_else(|| {
                CommandError::new(ErrorKind::Usage, format!("'{url}' is no address of a page"))
                    .hint("write it as https://sessions.example.org or http://localhost:9000")
            })
        });
        let options = WebOptions {
            bind: self.bind.unwrap_or(ADDRESS),
            public: public.transpose()?,
            tls: self.tls_cert.clone().zip(self.tls_key.clone()),
            behind_proxy: self.behind_proxy,
            opens: false,
        };
        options.check()?;
        Ok(options)
    }
}

pub fn run(args: &WebArgs, global: &GlobalArgs, ui: &mut Ui) -> CommandResult<ExitCode> {
    match &args.action {
        Some(Action::Code { read_only }) => code(*read_only, global, ui),
        Some(Action::Token(action)) => token(action, global, ui),
        None => serve(args, global, ui),
    }
}

fn serve(args: &WebArgs, global: &GlobalArgs, ui: &mut Ui) -> CommandResult<ExitCode> {
    let opens = !args.no_open && ui.has_screen() && !ui.json;
    let manner = Manner {
        approve: args.approve,
        web: Some(WebOptions {
            opens,
            ..args.page.options()?
        }),
        ..Manner::default()
    };
    let settings = open::settings(global, ui)?;
    let named = args.socket.as_deref();
    let path = place::socket(named, global, &settings);
    ui.invocation.socket = place::flag(named, &path);
    let workspace = open::workspace(global, ui)?;
    let ready = |page: Option<&WebPage>, ui: &mut Ui| {
        if let Some(page) = page {
            tell(page, &path, ui);
            if opens && let Some(url) = &page.to_open {
                open_browser(url);
            }
        }
    };
    let served = over_socket(workspace, &manner, &path, ready, ui);
    served.map_err(|error| match error.kind() {
        ErrorKind::Conflict => {
            error.hint("`tertulia web code` prints a code for a page that is served already")
        }
        _ => error,
    })
}

/// Prints the address of the page, and on a terminal its QR code, unless that leads a phone to itself.
pub fn tell(page: &WebPage, socket: &std::path::Path, ui: &mut Ui) {
    if ui.json {
        ui.document(&json!({
            "url": page.url,
            "socket": socket.display().to_string(),
            "pid": std::process::id(),
        }));
        return;
    }
    show_code(&page.url, ui);
    ui.note(&format!(
        "Listening on {}, too (process {})",
        socket.display(),
        std::process::id()
    ));
}

fn show_code(url: &str, ui: &mut Ui) {
    if ui.has_screen() && !is_loopback(url) {
        qr(url).iter().for_each(|line| ui.line(line));
    }
    ui.line(url);
    ui.note(
        "The code in it works once, within 15 minutes. `tertulia web code` prints another one.",
    );
    if is_loopback(url) {
        let port = host(url).1.unwrap_or(ADDRESS.port());
        ways_to_phone(port).iter().for_each(|words| ui.note(words));
    }
}

/// Returns how a phone reaches a page that is served on this machine only.
fn ways_to_phone(port: u16) -> [String; 2] {
    [
        format!(
            "For a phone with an SSH app: `ssh -L {port}:127.0.0.1:{port} THIS_MACHINE`, then open the address there."
        ),
        "For any phone: a proxy with TLS, and `tertulia web --behind-proxy --public-url https://NAME`.".to_owned(),
    ]
}

/// Returns the host of an address, and its port, if it names one.
fn host(url: &str) -> (&str, Option<u16>) {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let authority = rest.split('/').next().unwrap_or_default();
    match authority.rsplit_once(':') {
        Some((host, port)) if !port.ends_with(']') => (host, port.parse().ok()),
        _ => (authority, None),
    }
}

/// Returns true if only this machine can open an address.
fn is_loopback(url: &str) -> bool {
    let (host, _) = host(url);
    let address = host.trim_matches(['[', ']']).parse::<IpAddr>();
    host == "localhost" || address.is_ok_and(|address| address.is_loopback())
}

/// Draws a QR code with half blocks, dark on light whatever the colours of the terminal are.
fn qr(text: &str) -> Vec<String> {
    let Ok(code) = QrCode::new(text) else {
        return Vec::new();
    };
    let (width, colors) = (code.width(), code.to_colors());
    const QUIET: usize = 2;
    let is_dark = |x: usize, y: usize| {
        let inside = |at: usize| at.checked_sub(QUIET).filter(|at| *at < width);
        let place = inside(x).zip(inside(y));
        place.is_some_and(|(x, y)| colors[y * width + x] == Color::Dark)
    };
    let all = width + 2 * QUIET;
    let line = |y: usize| {
        let cell = |x: usize| match (is_dark(x, y), is_dark(x, y + 1)) {
            (true, true) => ' ',
            (true, false) => '▄',
            (false, true) => '▀',
            (false, false) => '█',
        };
        (0..all).map(cell).collect::<String>()
    };
    let lines = (0..all).step_by(2).map(line);
    // White blocks on black: readable on dark and light terminals.
    lines
        .map(|line| format!("\u{1b}[97;40m{line}\u{1b}[0m"))
        .collect()
}

/// Opens the page in the user's browser, where there is one.
fn open_browser(url: &str) {
    let program = match cfg!(target_os = "macos") {
        true => "open",
        false if env::text("DISPLAY").is_none() && env::text("WAYLAND_DISPLAY").is_none() => return,
        false => "xdg-open",
    };
    // Without a browser, the printed address is there.
    let _ = Command::new(program)
        .arg(url)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
}

/// Prints the address of the page that was served last, with another code.
pub fn code(read_only: bool, global: &GlobalArgs, ui: &mut Ui) -> CommandResult<ExitCode> {
    let file = CredentialFile::of(&open::settings(global, ui)?);
    let Some(address) = file.load()?.address else {
        return Err(
            CommandError::new(ErrorKind::NotFound, "no page was served here yet")
                .hint("`tertulia web` serves it"),
        );
    };
    let url = web::with_code(&address, &file.new_code(read_only)?);
    match ui.json {
        true => ui.document(&json!({ "url": url })),
        false => show_code(&url, ui),
    }
    Ok(ExitCode::SUCCESS)
}

fn token(action: &TokenAction, global: &GlobalArgs, ui: &mut Ui) -> CommandResult<ExitCode> {
    let file = CredentialFile::of(&open::settings(global, ui)?);
    match action {
        TokenAction::Create {
            name,
            read_only,
            expires,
        } => {
            check_name(name)?;
            let now = web::now();
            let expires = expires.as_deref().map(span).transpose()?;
            let expires = expires.map(|span| now.saturating_add(span).unwrap_or(Timestamp::MAX));
            let made = credentials::token(&web::random()?);
            let added = file.change(|credentials| {
                credentials.add_token(name, &made, *read_only, (now, expires))
            })?;
            if !added {
                let words = format!("there is a token '{name}' already");
                return Err(CommandError::new(ErrorKind::Conflict, words)
                    .hint(format!("`tertulia web token revoke {name}` ends it")));
            }
            if ui.json {
                ui.document(&json!({
                    "name": name, "token": made, "read_only": read_only, "expires_at": expires,
                }));
            } else {
                ui.line(&made);
                ui.note("It is shown only now. Only its hash is kept.");
            }
        }
        TokenAction::List => list(&file.load()?, ui),
        TokenAction::Revoke { name } => {
            if !file.change(|credentials| credentials.revoke(name))? {
                let words = format!("there is no token or login '{name}'");
                return Err(CommandError::new(ErrorKind::NotFound, words)
                    .hint("`tertulia web token list` lists them"));
            }
            match ui.json {
                true => ui.document(&json!({ "revoked": name })),
                false => ui.note(&format!("{name} is revoked, with all its logins")),
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn check_name(name: &str) -> CommandResult<()> {
    let known = |c: char| c.is_alphanumeric() || "-_.".contains(c);
    let fits = !name.is_empty()
        && name.chars().count() <= LONGEST_NAME
        && name.chars().all(known)
        && !name.starts_with("login-");
    match fits {
        true => Ok(()),
        false => Err(CommandError::new(
            ErrorKind::Usage,
            format!("'{name}' is no name for a token"),
        )
        .hint("a name has up to 50 letters, digits, '-', '_' and '.'")),
    }
}

fn list(credentials: &Credentials, ui: &mut Ui) {
    let now = web::now();
    let lives = |end: Option<Timestamp>| end.is_none_or(|end| now < end);
    if ui.json {
        let tokens = credentials.tokens.iter().map(|token| {
            json!({
                "name": token.name, "read_only": token.read_only, "created_at": token.created_at,
                "expires_at": token.expires_at, "expired": !lives(token.expires_at),
            })
        });
        let logins = credentials.grants.iter().map(|grant| {
            json!({
                "name": grant.name(), "token": grant.token, "read_only": grant.read_only,
                "created_at": grant.created_at, "expires_at": grant.expires_at,
            })
        });
        let (tokens, logins): (Vec<Value>, Vec<Value>) = (tokens.collect(), logins.collect());
        return ui.document(&json!({ "tokens": tokens, "logins": logins }));
    }
    let access = |read_only| if read_only { "read-only" } else { "full" }.to_owned();
    let end = |end: Option<Timestamp>| match end {
        Some(end) if now >= end => "expired".to_owned(),
        Some(end) => format!("until {}", crate::moment::dated(end)),
        None => "until revoked".to_owned(),
    };
    let tokens = credentials.tokens.iter().map(|token| {
        let made = ago(token.created_at, now);
        let kind = "token".to_owned();
        vec![
            token.name.clone(),
            kind,
            access(token.read_only),
            made,
            end(token.expires_at),
        ]
    });
    let grants = credentials
        .grants
        .iter()
        .filter(|grant| lives(Some(grant.expires_at)));
    let logins = grants.map(|grant| {
        let made = ago(grant.created_at, now);
        let with = grant.token.as_deref().unwrap_or("a code");
        let kind = format!("login with {with}");
        vec![
            grant.name(),
            kind,
            access(grant.read_only),
            made,
            end(Some(grant.expires_at)),
        ]
    });
    let rows: Vec<Vec<String>> = tokens.chain(logins).collect();
    match rows.is_empty() {
        true => ui.note("There are no tokens and no logins."),
        false => ui.table(&["NAME", "KIND", "ACCESS", "MADE", "WORKS"], &rows),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_qr_code_has_a_quiet_border() {
        let lines = qr("http://127.0.0.1:7417/#code=0123456789ABCDEFGHJK");
        let width = |line: &String| line.chars().filter(|c| " ▄▀█".contains(*c)).count();
        assert!(lines.len() > 10 && lines.iter().all(|line| width(line) == width(&lines[0])));
        let border = lines[0].trim_start_matches("\u{1b}[97;40m");
        assert!(border.starts_with("██") && lines[0].contains('█'));
    }

    #[test]
    fn a_phone_is_not_sent_to_itself() {
        for here in [
            "http://127.0.0.1:7417/#code=X",
            "http://localhost:7417/",
            "http://[::1]:7417/",
            "http://127.8.0.1",
        ] {
            assert!(is_loopback(here), "{here}");
        }
        for elsewhere in [
            "https://sessions.example.org/#code=X",
            "https://192.168.1.7:7417/",
            "https://localhost.example.org",
        ] {
            assert!(!is_loopback(elsewhere), "{elsewhere}");
        }
        assert_eq!(host("http://[::1]:8000/#code=X"), ("[::1]", Some(8000)));
        assert!(ways_to_phone(8000)[0].contains("-L 8000:127.0.0.1:8000"));
    }

    #[test]
    fn names_of_tokens_are_words() {
        for fits in ["phone", "Ana's".trim_end_matches("'s"), "a.b-c_d", "電話"] {
            assert!(check_name(fits).is_ok(), "{fits}");
        }
        for wrong in ["", "a b", "login-1", "a/b", &"x".repeat(51)] {
            assert!(check_name(wrong).is_err(), "{wrong}");
        }
    }
}
