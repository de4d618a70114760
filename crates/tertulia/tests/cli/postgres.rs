//! The program with a store in PostgreSQL.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use serde_json::json;
use tertulia_core::id::SessionId;
use tertulia_store::postgres::PostgresAddress;
use tertulia_store::sqlite::SqliteStore;
use tertulia_testkit::clock::still_clock;
use tertulia_testkit::logs::Writer;
use tertulia_testkit::postgres::{Schema, TestServer, try_sql};
use tertulia_testkit::postgres_proxy::Proxy;

use super::sync::watching;
use crate::home::{Home, Output, until};

/// Password in the URLs of these tests. The server trusts its clients, so it needs none.
const SECRET: &str = "hunter2";

fn url(schema: &Schema) -> String {
    let with_password = format!("postgres:{SECRET}@");
    schema.url().replace("postgres@", &with_password)
}

fn run(home: &Home, schema: &Schema, args: &[&str]) -> Output {
    let output = home.prepare(args).env("TERTULIA_STORE", url(schema)).run();
    output.lacks(SECRET)
}

#[test]
fn the_commands_work_and_never_print_the_password() {
    let (home, schema) = (Home::new(), Schema::new());
    let run = |args: &[&str]| run(&home, &schema, args);
    run(&["-p", "echo needle in postgres"])
        .ok()
        .says("needle in postgres");
    run(&["-c", "-p", "echo and more"]).ok();
    let listed = run(&["list", "--json"]).ok().json();
    let id = listed["sessions"][0]["id"].as_str().unwrap().to_owned();
    assert_eq!(listed["sessions"][0]["messages"], 4);
    run(&["search", "needle"]).ok().says("needle in postgres");
    run(&["tag", &id, "+kept"]).ok();
    run(&["fork", &format!("{id}:2"), "--name", "child"]).ok();
    run(&["show", "child"]).ok().says("needle in postgres");
    run(&["stats"]).ok();
    run(&["store", "du"]).ok().says("child");
    run(&["store", "rebuild"]).ok();
    run(&["doctor"]).ok().says("OK: 2 sessions");
    run(&["list", "-v"]).ok();
    let info = run(&["store", "info", "--json"]).ok().json();
    assert_eq!(info["backend"], "postgres");
    assert_eq!(info["sessions"], 2);
    assert!(info["server"].as_str().unwrap().starts_with("PostgreSQL "));
    assert!(info["latency_ms"].as_f64().unwrap() > 0.0);
    run(&["store", "info"]).ok().says("ms away");
    run(&["rm", "-y", &id]).ok();
    run(&["show", "no-such-session"]).code(3);
}

#[test]
fn sessions_are_copied_there_and_back() {
    let (home, back, schema) = (Home::new(), Home::new(), Schema::new());
    let id = home.say("echo one");
    home.run(&["tag", &id, "+x"]).ok();
    home.run(&["fork", &format!("{id}:2"), "--name", "child"])
        .ok();
    let gone = home.say("echo trash");
    home.run(&["rm", "-y", &gone]).ok();
    let copy = |from: &str, to: &str| {
        let output = home.run(&["store", "copy", from, to, "--json"]);
        output.ok().lacks(SECRET).json()
    };
    let there = url(&schema);
    let counts = copy(&home.store_url(), &there);
    assert_eq!(counts["copied"], json!(3));
    assert_eq!(copy(&home.store_url(), &there)["copied"], json!(0));
    assert_eq!(copy(&there, &back.store_url())["copied"], json!(3));
    for reference in [id.as_str(), "child", gone.as_str()] {
        let raw = |home: &Home| home.run(&["show", reference, "--raw"]).ok().stdout;
        let on_server = run(&home, &schema, &["show", reference, "--raw"]).ok();
        assert_eq!(raw(&home), on_server.stdout, "{reference}");
        assert_eq!(raw(&home), raw(&back), "{reference}");
    }
}

#[test]
fn damage_is_found_and_repaired() {
    let (home, schema) = (Home::new(), Schema::new());
    run(&home, &schema, &["-p", "echo one"]).ok();
    schema.sql("UPDATE tertulia_entry SET line = '\\x00' WHERE seq = 2");
    run(&home, &schema, &["doctor"]).code(5).says("damaged:");
    run(&home, &schema, &["doctor", "--repair"])
        .repaired()
        .says("tertulia_damaged");
    run(&home, &schema, &["doctor"]).ok();
}

#[test]
fn a_server_that_is_not_there_is_named() {
    let home = Home::new();
    let closed = std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let address = closed.local_addr().unwrap().to_string();
    drop(closed);
    let store = format!("postgres://ann:{SECRET}@{address}/notes");
    home.run(&["--store", &store, "list"])
        .code(1)
        .notes(&address)
        .lacks(SECRET);
    let wrong = format!("postgres://ann:{SECRET}@{address}/notes?sslmode=perhaps");
    home.run(&["--store", &wrong, "list"])
        .code(2)
        .notes("sslmode")
        .lacks(SECRET);
}

/// A password may come from the environment, a command or a file that others cannot read.
#[test]
fn a_password_is_found() {
    let (home, schema) = (Home::new(), Schema::new());
    let server = TestServer::shared().url();
    let _ = try_sql(server, "CREATE ROLE with_password LOGIN PASSWORD 'hunter2'");
    let name = schema.url().rsplit_once("%3D").unwrap().1;
    schema.sql(&format!("GRANT ALL ON SCHEMA {name} TO with_password"));
    let url = schema.url().replace("postgres@", "with_password@");
    let list = || home.prepare(&["--store", &url, "list"]);
    list().run().code(1).notes("password");
    list().env("PGPASSWORD", "wrong").run().code(1);
    list().env("PGPASSWORD", SECRET).run().ok();
    let file = home.path().join("passwords");
    fs::write(&file, format!("*:*:*:with_password:{SECRET}\n")).unwrap();
    let from_file = || list().env("PGPASSFILE", &file).run();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).unwrap();
    from_file().code(1).notes("chmod 600");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
    from_file().ok();
    home.settings("[postgres]\npassword_command = \"echo hunter2\"\n");
    list().run().ok().lacks(SECRET);
    home.settings("[postgres]\npassword_command = [\"false\"]\n");
    list().run().code(1).notes("password_command");
}

/// A project cannot send sessions to a server unasked.
#[test]
fn a_project_needs_trust_to_choose_a_server() {
    let (home, schema) = (Home::new(), Schema::new());
    let folder = home.project().join(".tertulia");
    fs::create_dir(&folder).unwrap();
    fs::write(
        folder.join("config.toml"),
        format!("store = \"{}\"\n", url(&schema)),
    )
    .unwrap();
    home.run(&["-p", "echo one"])
        .ok()
        .notes("'store'")
        .lacks(SECRET);
    assert_eq!(home.all().len(), 1);
    let tables = schema.sql(
        "SELECT count(*) FROM information_schema.tables WHERE table_schema = current_schema()",
    );
    assert_eq!(tables[0][0].as_deref(), Some("0"));
}

/// Whatever is wrong with a URL, its password is not shown, and the reason is.
#[test]
fn a_wrong_url_is_explained_without_its_password() {
    let home = Home::new();
    home.say("echo one");
    let check = |args: &[&str], words: &str| {
        let output = home.run(args).code(2).notes(words).lacks(SECRET);
        let json = home.run(&[args, &["--json"]].concat()).code(2);
        assert!(!json.stderr.contains(SECRET), "{}", json.stderr);
        drop(output);
    };
    let wrong = [
        ("postgres://a:hunter2@h:port/d", "port"),
        ("postgres://a:hunter2@127.0.0.1/d?foo=1", "foo"),
        ("postgres://a:%zzhunter2@127.0.0.1/d", "%"),
        ("postgres://a:x?hunter2@127.0.0.1/d", "%3F"),
        ("postgresql://a:hunter2@/d", "URL"),
        ("mysql://a:hunter2@h/d", "mysql://a:***@h/d"),
        ("mysql://h/d?password=hunter2", "password=***"),
        ("a:hunter2@h/d", "a:***@h/d"),
    ];
    for (url, words) in wrong {
        for command in ["push", "pull", "sync"] {
            check(&[command, url], words);
        }
        check(&["--store", url, "list"], words);
        check(&["store", "copy", &home.store_url(), url], words);
        check(&["store", "copy", url, &home.store_url()], words);
        home.settings(&format!("[sync]\nwith = \"{url}\"\n"));
        check(&["sync"], words);
        home.settings("");
    }
    check(&["sync", "ssh://ada:hunter2@desk"], "it has a password");
    check(
        &["sync", "ssh://ada:hunter2@desk:22/x"],
        "it has a password",
    );
    // An argument too many is named.
    check(
        &["sync", "files:x", "mysql://a:hunter2@h"],
        "mysql://a:***@h",
    );
    home.settings("store = \"postgres://a:hunter2@h:port/d\"\n");
    check(&["-p", "x"], "port");
}

/// A project's settings are shown before they are trusted, the URLs of stores without passwords.
#[test]
fn trust_shows_no_password() {
    let home = Home::new();
    let folder = home.project().join(".tertulia");
    fs::create_dir(&folder).unwrap();
    let settings = "store = \"postgres://a:hunter2@h:port/d\"\n\
                    [sync]\nwith = \"postgres://b:hunter2@h/d\"\n";
    fs::write(folder.join("config.toml"), settings).unwrap();
    let output = home.run(&["trust", "-y"]).ok().lacks(SECRET);
    let shown = format!("{}{}", output.stdout, output.stderr);
    assert!(shown.contains("postgres://b:***@h/d"), "{shown}");
}

fn behind_proxy(schema: &Schema) -> (Proxy, String) {
    let port = PostgresAddress::parse(schema.url()).unwrap().port();
    let proxy = Proxy::start(port);
    let url = proxy.url(&url(schema));
    (proxy, url)
}

#[test]
fn a_push_ends_when_the_server_goes_away() {
    let (home, schema) = (Home::new(), Schema::new());
    home.say("echo one");
    {
        let store = SqliteStore::open(&home.database()).unwrap();
        for seed in 1..=40 {
            Writer::begin(&store, &still_clock(seed)).say(&store, "moved");
        }
    }
    let (proxy, url) = behind_proxy(&schema);
    let push = || {
        let prepared = home.prepare(&["push", &url]);
        prepared.env("TERTULIA_LOCK_TIMEOUT", "1").run()
    };
    proxy.close_after(10);
    push()
        .code(1)
        .notes("PostgreSQL at 127.0.0.1:")
        .notes("cannot be reached")
        .notes("what was moved before stays; run the command again")
        .lacks("doctor")
        .lacks(SECRET);
    proxy.close(false);
    push().ok().notes("new session");
    push().ok().notes("Pushed nothing new");
    let listed = run(
        &home,
        &schema,
        &["list", "--all", "--json", "--limit", "100"],
    );
    let listed = listed.ok().json();
    assert_eq!(listed["sessions"].as_array().unwrap().len(), 41);
}

#[test]
fn a_watch_goes_on_when_the_server_is_back() {
    let (home, schema) = (Home::new(), Schema::new());
    home.say("echo before");
    let (proxy, url) = behind_proxy(&schema);
    let prepared = home.prepare(&["sync", "--watch", &url]);
    let prepared = prepared.env("TERTULIA_LOCK_TIMEOUT", "1");
    let (mut child, mut lines) = watching(&prepared);
    let first = lines.next().unwrap();
    assert!(first.contains("exchanging sessions with"), "{first}");
    let pushed = lines.next().unwrap();
    assert!(pushed.contains("pushed"), "{pushed}");
    proxy.close(true);
    let id: SessionId = home.say("echo while it is away").parse().unwrap();
    for _ in 0..2 {
        let warned = lines.next().unwrap();
        assert!(warned.contains("trying again in"), "{warned}");
        assert!(!warned.contains(SECRET), "{warned}");
    }
    proxy.close(false);
    until("the session is pushed", || {
        let show = run(&home, &schema, &["show", &id.to_string()]);
        show.status.success().then_some(())
    });
    child.kill().unwrap();
    child.wait().unwrap();
}

/// A role that may not read is told that.
#[test]
fn a_role_that_may_not_read_is_told_so() {
    let (home, schema) = (Home::new(), Schema::new());
    run(&home, &schema, &["-p", "echo one"]).ok();
    let server = TestServer::shared().url();
    let _ = try_sql(server, "CREATE ROLE reads_nothing LOGIN");
    let name = schema.url().rsplit_once("%3D").unwrap().1;
    schema.sql(&format!("GRANT USAGE ON SCHEMA {name} TO reads_nothing"));
    let store = schema.url().replace("postgres@", "reads_nothing@");
    home.run(&["--store", &store, "list"])
        .code(1)
        .notes("may not be read: permission denied")
        .lacks("written");
}
