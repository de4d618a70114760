//! A real PostgreSQL server for tests.
//!
//! `TERTULIA_TEST_POSTGRES` names one that runs. Without it, the first test starts one, and all test
//! processes share it: a shell script beside the server ends it when no test has used it for a while.
//! A machine without PostgreSQL fails the tests.

use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU16, AtomicU32, Ordering};

use tertulia_store::postgres::{Limits, PostgresAddress, PostgresOptions, PostgresStore};
use tertulia_store::{Patience, Store, StoreResult};
use tokio::runtime::{Builder, Runtime};
use tokio_postgres::{NoTls, SimpleQueryMessage};
use uuid::Uuid;

use crate::place::Place;
use crate::ports::unused_port;
use crate::scratch::Scratch;
use crate::waiting::{wait_for, wait_until};

/// Keeps a server running while a process holds a lock on the file `users`. Arguments: folder of the
/// programs, folder of the server, port. A socket file has no place in a folder with a long path.
const KEEPER: &str = r#"
bin=$1; dir=$2; port=$3
"$bin/postgres" -D "$dir/data" -p "$port" -c unix_socket_directories= -c listen_addresses=127.0.0.1 -c fsync=on \
  -c max_connections=300 -c shared_buffers=64MB >"$dir/log" 2>&1 &
server=$!
trap 'kill -INT $server; wait $server; exit' TERM
exec 9<>"$dir/users"
idle=0
while kill -0 $server 2>/dev/null; do
  sleep 1 & wait $!
  if flock -n 9; then
    idle=$((idle + 1))
    # Ends with the lock: a test that comes now waits until the server is gone, and starts another.
    [ $idle -lt 20 ] || break
    flock -u 9
  else
    idle=0
  fi
done
kill -INT $server 2>/dev/null
wait $server
"#;

/// A running server.
#[derive(Debug)]
pub struct TestServer {
    url: String,
    /// Locked while this process uses the server.
    _user: Option<File>,
}

impl TestServer {
    /// Returns the server that tests share.
    pub fn shared() -> &'static TestServer {
        static SHARED: OnceLock<TestServer> = OnceLock::new();
        SHARED.get_or_init(|| match std::env::var("TERTULIA_TEST_POSTGRES") {
            Ok(url) => TestServer { url, _user: None },
            Err(_) => shared_server(),
        })
    }

    /// Returns the URL of the server, with the database `postgres`.
    pub fn url(&self) -> &str {
        &self.url
    }
}

fn shared_server() -> TestServer {
    let uid = rustix::process::getuid().as_raw();
    let folder = match std::env::var_os("TERTULIA_TEST_POSTGRES_DIR") {
        Some(folder) => PathBuf::from(folder),
        None => std::env::temp_dir().join(format!("tertulia-test-postgres-{uid}")),
    };
    fs::create_dir_all(&folder).unwrap();
    let lock = open(&folder.join("lock"));
    lock.lock().unwrap();
    let user = open(&folder.join("users"));
    // The lock comes first, so that the keeper does not end the server that was just found.
    user.lock_shared().unwrap();
    let port = running(&folder).unwrap_or_else(|| start(&folder));
    TestServer {
        url: url_at(port),
        _user: Some(user),
    }
}

fn open(path: &Path) -> File {
    let mut options = OpenOptions::new();
    options.create(true).truncate(false).read(true).write(true);
    let file = options.open(path).unwrap();
    // The server's role looks at it, too.
    let _ = fs::set_permissions(path, fs::Permissions::from_mode(0o666));
    file
}

/// Returns the port of the server that runs in a folder. A port alone would not do: another program
/// may have it by now.
fn running(folder: &Path) -> Option<u16> {
    let data = folder.join("data");
    let file = fs::read_to_string(data.join("postmaster.pid")).ok()?;
    let mut lines = file.lines();
    let line = fs::read(format!("/proc/{}/cmdline", lines.next()?.trim())).ok()?;
    let is_ours = String::from_utf8_lossy(&line).contains(data.to_str()?);
    is_ours.then(|| lines.nth(2)?.trim().parse().ok()).flatten()
}

fn url_at(port: u16) -> String {
    format!("postgres://postgres@127.0.0.1:{port}/postgres?sslmode=disable")
}

/// Starts a new server in a folder and returns its port.
#[allow(
    clippy::zombie_processes,
    reason = "the keeper outlives this test, which need not wait for it"
)]
fn start(folder: &Path) -> u16 {
    let server = OwnServer::create(folder);
    wait_for(
        &format!("PostgreSQL starts in {}", folder.display()),
        || {
            let port = unused_port();
            let mut keeper = server.command("sh");
            keeper
                .args(["-c", KEEPER, "keeper"])
                .arg(bin())
                .arg(folder)
                .arg(port.to_string())
                .process_group(0);
            let mut keeper = keeper.spawn().expect("a shell can be started");
            fs::write(folder.join("pid"), keeper.id().to_string()).unwrap();
            // It ends at once if another program took the port meanwhile.
            let mut is_up = false;
            wait_until("PostgreSQL answers or ends", || {
                is_up = running(folder) == Some(port) && try_sql(&url_at(port), "SELECT 1").is_ok();
                is_up || keeper.try_wait().unwrap().is_some()
            });
            is_up.then_some(port)
        },
    )
}

/// Returns the folder of PostgreSQL's programs.
pub fn bin() -> PathBuf {
    let mut found: Vec<PathBuf> = fs::read_dir("/usr/lib/postgresql")
        .into_iter()
        .flatten()
        .flatten()
        .map(|version| version.path().join("bin"))
        .filter(|bin| bin.join("initdb").exists())
        .collect();
    found.sort();
    let in_path = || {
        let path = std::env::var_os("PATH")?;
        std::env::split_paths(&path).find(|bin| bin.join("initdb").exists())
    };
    found
        .pop()
        .or_else(in_path)
        .expect("PostgreSQL is not installed: install the package postgresql")
}

/// The files of a server of its own, which a test can kill.
#[derive(Debug)]
pub struct OwnServer {
    folder: PathBuf,
    port: AtomicU16,
    /// Whether the port is taken for good: clients know it.
    has_run: AtomicBool,
    /// User of the server, if it may not run as this one.
    user: Option<(u32, u32)>,
}

impl OwnServer {
    /// Creates the files of a server in a folder.
    pub fn create(folder: &Path) -> OwnServer {
        let user = (rustix::process::getuid().is_root()).then(unprivileged);
        let server = OwnServer {
            folder: folder.to_owned(),
            port: AtomicU16::new(unused_port()),
            has_run: AtomicBool::new(false),
            user,
        };
        if let Some((uid, gid)) = user {
            chown(folder, Some(uid), Some(gid)).unwrap();
        }
        let data = folder.join("data");
        let _ = fs::remove_dir_all(&data);
        let made = server
            .command(&bin().join("initdb").display().to_string())
            .args([
                "-A",
                "trust",
                "-U",
                "postgres",
                "-E",
                "UTF8",
                "--locale=C",
                "-D",
            ])
            .arg(&data)
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .output()
            .expect("initdb can be run");
        let words = String::from_utf8_lossy(&made.stderr);
        assert!(made.status.success(), "initdb failed: {words}");
        // One role proves that passwords are sent.
        let rules = data.join("pg_hba.conf");
        let others = fs::read_to_string(&rules).unwrap();
        let rule = "host all with_password 127.0.0.1/32 scram-sha-256\n";
        fs::write(&rules, format!("{rule}{others}")).unwrap();
        server
    }

    /// Makes a key and a certificate for a host name, which the server can use and which signs itself.
    /// Returns the certificate's path.
    pub fn certificate(&self, name: &str, is_authority: bool) -> PathBuf {
        let name = format!("subjectAltName={name}");
        let is_authority = if is_authority { "TRUE" } else { "FALSE" };
        let constraint = format!("basicConstraints=critical,CA:{is_authority}");
        let (key, certificate) = (self.folder.join("key"), self.folder.join("certificate"));
        let made = self
            .command("openssl")
            .args([
                "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "3650",
            ])
            .args([
                "-subj",
                "/CN=test",
                "-addext",
                &name,
                "-addext",
                &constraint,
            ])
            .arg("-keyout")
            .arg(&key)
            .arg("-out")
            .arg(&certificate)
            .status()
            .expect("openssl can be run");
        assert!(made.success(), "openssl makes a certificate");
        certificate
    }

    /// Prepares a command of the server's user.
    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command
            .current_dir(&self.folder)
            .env_clear()
            .env("PATH", "/usr/local/bin:/usr/bin:/bin")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        if let Some((uid, gid)) = self.user {
            command.uid(uid).gid(gid);
        }
        command
    }

    /// Starts the server and waits until it answers. The returned process is the postmaster.
    pub fn start(&self) -> std::process::Child {
        self.start_with(&[])
    }

    /// Starts the server with more settings, such as `ssl=on`.
    pub fn start_with(&self, settings: &[&str]) -> std::process::Child {
        // Processes of a server that was killed may still be there for a moment.
        wait_for(&format!("PostgreSQL starts in {:?}", self.folder), || {
            let mut server = self.spawn(settings);
            let mut is_up = false;
            wait_until("PostgreSQL answers or ends", || {
                is_up = running(&self.folder) == Some(self.port())
                    && try_sql(&self.url(), "SELECT 1").is_ok();
                is_up || server.try_wait().unwrap().is_some()
            });
            let has_run = self.has_run.fetch_or(is_up, Ordering::Relaxed);
            if !is_up && !has_run {
                // Another program may have taken the port meanwhile.
                self.port.store(unused_port(), Ordering::Relaxed);
            }
            is_up.then_some(server)
        })
    }

    /// Returns the port, which a server keeps once it has run.
    pub fn port(&self) -> u16 {
        self.port.load(Ordering::Relaxed)
    }

    fn spawn(&self, settings: &[&str]) -> std::process::Child {
        let log = File::create(self.folder.join("log")).unwrap();
        self.command(&bin().join("postgres").display().to_string())
            .arg("-D")
            .arg(self.folder.join("data"))
            .args(["-p", &self.port().to_string()])
            .args(["-c", "unix_socket_directories="])
            .args(["-c", "listen_addresses=127.0.0.1"])
            .args(["-c", "fsync=on", "-c", "restart_after_crash=off"])
            .args(settings.iter().flat_map(|setting| ["-c", setting]))
            .stderr(log)
            .spawn()
            .expect("postgres can be started")
    }

    /// Returns the URL of the server.
    pub fn url(&self) -> String {
        url_at(self.port())
    }
}

/// Returns user and group of an account without privileges: PostgreSQL refuses to run as root.
fn unprivileged() -> (u32, u32) {
    let accounts = fs::read_to_string("/etc/passwd").unwrap();
    let account = |name: &str| {
        let line = accounts
            .lines()
            .find(|line| line.split(':').next() == Some(name))?;
        let mut parts = line.split(':').skip(2);
        let uid = parts.next()?.parse().ok()?;
        Some((uid, parts.next()?.parse().ok()?))
    };
    account("postgres")
        .or_else(|| account("nobody"))
        .expect("there is an account without privileges")
}

fn runtime() -> Runtime {
    Builder::new_current_thread().enable_all().build().unwrap()
}

/// Runs SQL statements; returns the rows of all of them as text.
pub fn try_sql(url: &str, sql: &str) -> Result<Vec<Vec<Option<String>>>, tokio_postgres::Error> {
    runtime().block_on(async {
        let (client, connection) = tokio_postgres::connect(url, NoTls).await?;
        let connection = tokio::spawn(connection);
        let messages = client.simple_query(sql).await?;
        drop(client);
        let _ = connection.await;
        let rows = messages.into_iter().filter_map(|message| match message {
            SimpleQueryMessage::Row(row) => {
                let text = |column| row.get(column).map(str::to_owned);
                Some((0..row.len()).map(text).collect())
            }
            _ => None,
        });
        Ok(rows.collect())
    })
}

/// Runs SQL statements that must succeed.
pub fn sql(url: &str, sql: &str) -> Vec<Vec<Option<String>>> {
    try_sql(url, sql).unwrap_or_else(|error| panic!("{sql}: {error:?}"))
}

/// An empty schema on the shared server, and a folder for local derived data.
#[derive(Debug)]
pub struct Schema {
    name: String,
    url: String,
    scratch: Scratch,
}

impl Default for Schema {
    fn default() -> Schema {
        Schema::new()
    }
}

impl Schema {
    /// Creates a schema.
    pub fn new() -> Schema {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let server = TestServer::shared().url();
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        // A process id may return within the life of a server.
        let name = format!(
            "t{}_{number}_{}",
            std::process::id(),
            Uuid::now_v7().simple()
        );
        sql(server, &format!("CREATE SCHEMA {name}"));
        Schema {
            url: format!("{server}&options=-csearch_path%3D{name}"),
            name,
            scratch: Scratch::new(),
        }
    }

    /// Returns the URL of the schema.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Returns the folder of local derived data.
    pub fn scratch(&self) -> &Scratch {
        &self.scratch
    }

    /// Runs SQL statements in the schema.
    pub fn sql(&self, statements: &str) -> Vec<Vec<Option<String>>> {
        sql(&self.url, statements)
    }

    /// Opens the store in the schema.
    pub fn open_store(&self) -> StoreResult<PostgresStore> {
        PostgresStore::open(options(&self.url, self.scratch.path()))
    }
}

/// Returns the options of a store at a URL.
pub fn options(url: &str, derived: &Path) -> PostgresOptions {
    PostgresOptions {
        address: PostgresAddress::parse(url).expect("a test has a valid URL"),
        limits: Limits::default(),
        patience: Patience::default(),
        derived: Some(derived.to_owned()),
        new_id: Uuid::now_v7(),
    }
}

impl Drop for Schema {
    fn drop(&mut self) {
        let drop = format!("DROP SCHEMA IF EXISTS {} CASCADE", self.name);
        let _ = try_sql(TestServer::shared().url(), &drop);
    }
}

impl Place for Schema {
    fn open(&self) -> Box<dyn Store> {
        Box::new(self.open_store().expect("the store can be opened"))
    }
}
