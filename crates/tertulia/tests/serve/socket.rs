//! The socket: private, never in place of another file, one server at a time.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::net::{UnixListener, UnixStream};
use std::process::Command;

use serde_json::json;

use super::stage::Server;
use crate::home::{Home, until};

fn mode(path: &std::path::Path) -> u32 {
    fs::symlink_metadata(path).unwrap().permissions().mode() & 0o777
}

#[test]
fn the_socket_is_private_whatever_the_umask_is() {
    let home = Home::new();
    let path = home.path().join("run/t.sock");
    let mut child = home
        .prepare(&["serve", "--socket", path.to_str().unwrap()])
        .umask("000")
        .command()
        .spawn()
        .unwrap();
    until("it listens", || UnixStream::connect(&path).ok());
    assert_eq!((mode(&path), mode(path.parent().unwrap())), (0o600, 0o700));
    home.run(&["stop", "--all", "--socket", path.to_str().unwrap()])
        .ok();
    assert!(child.wait().unwrap().success());
    assert!(!path.exists());
}

#[test]
fn the_usual_place_is_private_and_known_to_the_other_commands() {
    let home = Home::new();
    let runtime = home.folder("runtime");
    let start = home
        .prepare(&["serve", "--detach", "--json"])
        .env("XDG_RUNTIME_DIR", &runtime)
        .run()
        .ok();
    let path = runtime.join("tertulia/tertulia.sock");
    assert_eq!(start.json()["socket"], path.to_str().unwrap());
    assert_eq!((mode(&path), mode(path.parent().unwrap())), (0o600, 0o700));
    let shown = home
        .prepare(&["ps", "--json"])
        .env("XDG_RUNTIME_DIR", &runtime)
        .run();
    assert_eq!(shown.ok().json()["server"]["pid"], start.json()["pid"]);
    let stop = home
        .prepare(&["stop", "--all"])
        .env("XDG_RUNTIME_DIR", &runtime);
    stop.run().ok();
    until("the socket is gone", || (!path.exists()).then_some(()));
    // Without a runtime folder the socket is in the data folder.
    let start = home.run(&["serve", "--detach", "--json"]).ok();
    let path = home.database().with_file_name("tertulia.sock");
    assert_eq!(start.json()["socket"], path.to_str().unwrap());
    home.run(&["stop", "--all"]).ok();
}

#[test]
fn a_live_server_is_not_replaced() {
    let home = Home::new();
    let server = Server::start(&home, &[]);
    let path = server.path.to_str().unwrap().to_owned();
    let second = home.run(&["serve", "--socket", &path]).code(4);
    second.notes("running already");
    home.run(&["serve", "--detach", "--socket", &path])
        .code(4)
        .notes("running already");
    assert_eq!(server.client().query("echo here").0, "here");
    server.end().ok();
}

#[test]
fn a_socket_that_was_left_behind_is_replaced() {
    let home = Home::new();
    let server = Server::start(&home, &[]);
    server.kill();
    assert!(home.path().join("t.sock").exists());
    let server = Server::start(&home, &[]);
    assert_eq!(server.client().query("echo here").0, "here");
    server.end().ok();
    drop(UnixListener::bind(home.path().join("t.sock")).unwrap());
    Server::start(&home, &[]).end().ok();
}

#[test]
fn nothing_else_is_replaced_and_no_link_is_followed() {
    let home = Home::new();
    let (path, other) = (home.path().join("x.sock"), home.path().join("other"));
    symlink(&other, &path).unwrap();
    let serve = ["serve", "--socket", path.to_str().unwrap()];
    home.run(&serve).code(4).notes("a link");
    assert!(!other.exists() && path.symlink_metadata().unwrap().is_symlink());
    fs::remove_file(&path).unwrap();
    fs::write(&path, "words").unwrap();
    home.run(&serve).code(4).notes("a file");
    assert_eq!(fs::read_to_string(&path).unwrap(), "words");
}

/// Connects as another user, if this process may switch users.
#[test]
fn another_user_cannot_connect() {
    let home = Home::new();
    let server = Server::start(&home, &[]);
    if !rustix::process::geteuid().is_root() {
        // Without root another user cannot be tested; check the socket's mode instead.
        assert_eq!(mode(&server.path), 0o600);
        server.end().ok();
        return;
    }
    let connect = |path: &std::path::Path| {
        let script = "import socket,sys\ns=socket.socket(socket.AF_UNIX)\ns.connect(sys.argv[1])\nprint(s.makefile().read())";
        let output = Command::new("setpriv")
            .args([
                "--reuid=65534",
                "--regid=65534",
                "--clear-groups",
                "/usr/bin/env",
            ])
            .args(["python3", "-c", script])
            .arg(path)
            .output()
            .unwrap();
        String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned()
    };
    let open = |mode: u32| {
        for path in [home.path(), server.path.as_path()] {
            fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
        }
    };
    fs::set_permissions(home.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let refused = connect(&server.path);
    assert!(refused.contains("PermissionError"), "{refused}");
    // Even with open permissions the server checks the peer's user.
    open(0o777);
    let refused = connect(&server.path);
    assert!(refused.contains("another user"), "{refused}");
    assert!(!refused.contains("ps_result"), "{refused}");
    let ours = server.client().answer(json!({ "type": "ps" }));
    assert_eq!(ours["type"], "ps_result");
    server.end().ok();
}

#[test]
fn without_a_server_the_other_commands_say_so() {
    let home = Home::new();
    home.run(&["ps"]).ok().notes("No server is running");
    let none = home.run(&["ps", "--json"]).ok().json();
    assert_eq!(none, json!({ "server": null, "sessions": [] }));
    home.run(&["stop", "abcd1234"])
        .code(3)
        .notes("no server is running");
    home.run(&["stop"]).code(2);
    home.run(&["serve", "--stdio", "--socket"]).code(2);
    let long = format!("/tmp/{}", "x".repeat(120));
    home.run(&["serve", "--socket", &long])
        .code(2)
        .notes("too long");
}
