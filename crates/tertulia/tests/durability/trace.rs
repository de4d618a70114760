//! File system calls of a program, as recorded by `strace`.

use std::collections::HashMap;
use std::path::Path;
use std::process::Command;

use super::world::{Place, Ran, finish};

/// Every call that can change a file or make a change durable, and those that the model does not
/// support.
const CALLS: &str = "trace=openat,open,creat,close,write,pwrite64,writev,pwritev,pwritev2,fsync,fdatasync,\
    ftruncate,truncate,rename,renameat,renameat2,link,linkat,unlink,unlinkat,mkdir,mkdirat,rmdir,mmap,\
    sync,syncfs,sync_file_range,fallocate,copy_file_range,sendfile,symlink,symlinkat,msync";

/// A successful call.
#[derive(Debug)]
pub struct Call {
    pub name: String,
    /// Arguments as printed, every string in hexadecimal.
    args: String,
    pub result: u64,
}

/// Steps of a trace, in order. A sync takes time: it covers the writes before its beginning, and is
/// effective at its end.
#[derive(Debug)]
pub enum Step {
    Done(Call),
    SyncBegins(u64, i32),
    SyncEnds(u64),
    /// The program begins to write to standard output (1) or error (2).
    Says(i32, Vec<u8>),
}

/// Runs a command under `strace`. Returns its output and its steps.
pub fn traced(place: &Place, command: &Command) -> (Ran, Vec<Step>) {
    let log = place.work.join("trace");
    let mut strace = place.bare("strace");
    strace
        .args(["-f", "-y", "-xx", "-s", "2000000", "-e", CALLS, "-o"])
        .arg(&log)
        .arg(command.get_program())
        .args(command.get_args());
    for (key, value) in command.get_envs() {
        if let Some(value) = value {
            strace.env(key, value);
        }
    }
    let child = strace.spawn().unwrap_or_else(|error| {
        panic!("strace cannot be run ({error}); install it: apt-get install strace (or dnf, pacman, apk add)")
    });
    let ran = finish(child, "strace");
    let text = std::fs::read_to_string(&log)
        .unwrap_or_else(|error| panic!("strace wrote no trace ({error}): {ran:?}"));
    std::fs::remove_file(&log).unwrap();
    (ran, parse(&text))
}

/// A call that began at one line of the trace and ended at another.
struct Span {
    begin: usize,
    end: usize,
    call: Call,
}

fn parse(text: &str) -> Vec<Step> {
    let mut unfinished: HashMap<&str, (usize, String)> = HashMap::new();
    let mut spans = Vec::new();
    for (at, line) in text.lines().enumerate() {
        let (pid, rest) = line.split_once(char::is_whitespace).unwrap();
        let rest = rest.trim_start();
        if rest.starts_with("---") || rest.starts_with("+++") {
            continue;
        }
        let (begin, whole) = if let Some(start) = rest.strip_suffix("<unfinished ...>") {
            unfinished.insert(pid, (at, start.trim_end().to_owned()));
            continue;
        } else if rest.starts_with("<... ") {
            let (_, end) = rest.split_once("resumed>").unwrap();
            let (begin, start) = unfinished.remove(pid).unwrap();
            (begin, format!("{start}{end}"))
        } else {
            (at, rest.to_owned())
        };
        if let Some(call) = call(&whole) {
            let end = at;
            spans.push(Span { begin, end, call });
        }
    }
    in_order(spans)
}

fn call(line: &str) -> Option<Call> {
    let (name, rest) = line.split_once('(')?;
    let (args, result) = rest.rsplit_once(") ").or_else(|| rest.rsplit_once(")="))?;
    let result = result.trim_start().strip_prefix("= ")?;
    let number = result.split([' ', '<']).next()?;
    // Addresses do not matter, only that the call succeeded.
    let result = match number.strip_prefix("0x") {
        Some(address) => u64::from_str_radix(address, 16).ok()?,
        None => number.parse().ok()?,
    };
    Some(Call {
        name: name.to_owned(),
        args: args.to_owned(),
        result,
    })
}

fn in_order(spans: Vec<Span>) -> Vec<Step> {
    let mut steps = Vec::new();
    for (serial, span) in (0_u64..).zip(spans) {
        let call = span.call;
        match call.name.as_str() {
            "fsync" | "fdatasync" => {
                steps.push((span.begin, Step::SyncBegins(serial, call.fd())));
                steps.push((span.end, Step::SyncEnds(serial)));
            }
            "write" | "writev" if call.fd() == 1 || call.fd() == 2 => {
                steps.push((span.begin, Step::Says(call.fd(), call.data())));
            }
            _ => steps.push((span.end, Step::Done(call))),
        }
    }
    steps.sort_by_key(|(at, _)| *at);
    steps.into_iter().map(|(_, step)| step).collect()
}

impl Call {
    /// Returns the file descriptor of the call.
    pub fn fd(&self) -> i32 {
        fd_of(self.args.split(", ").next().unwrap())
    }

    /// Returns the file that a call maps for shared writing.
    pub fn writable_map(&self) -> Option<i32> {
        let args: Vec<&str> = self.args.split(", ").collect();
        let writes = args[2].contains("PROT_WRITE") && args[3].contains("MAP_SHARED");
        (writes && !args[3].contains("MAP_ANONYMOUS")).then(|| fd_of(args[4]))
    }

    /// Returns the bytes that were written.
    pub fn data(&self) -> Vec<u8> {
        let mut bytes: Vec<u8> = self.texts().concat();
        bytes.truncate(usize::try_from(self.result).unwrap());
        bytes
    }

    /// Returns the path arguments.
    pub fn paths(&self) -> Vec<String> {
        let text = |bytes| String::from_utf8(bytes).unwrap();
        self.texts().into_iter().map(text).collect()
    }

    pub fn says(&self, flag: &str) -> bool {
        self.args.contains(flag)
    }

    /// Returns a numeric argument, counted from the last.
    pub fn number_from_end(&self, back: usize) -> usize {
        let word = self.args.rsplit(", ").nth(back).unwrap();
        word.parse()
            .unwrap_or_else(|error| panic!("{word:?} in {self:?}: {error}"))
    }

    /// Returns the path of an annotated file descriptor.
    pub fn annotated(&self) -> Option<String> {
        let first = self.args.split(", ").next()?;
        let (_, rest) = first.split_once('<')?;
        String::from_utf8(unhex(rest.split('>').next()?)).ok()
    }

    fn texts(&self) -> Vec<Vec<u8>> {
        self.args.split('"').skip(1).step_by(2).map(unhex).collect()
    }
}

fn fd_of(word: &str) -> i32 {
    let number = word.split('<').next().unwrap();
    if number == "AT_FDCWD" {
        return -100;
    }
    number
        .parse()
        .unwrap_or_else(|error| panic!("{word:?}: {error}"))
}

/// Decodes `\x2f\x61` to `/a`.
fn unhex(text: &str) -> Vec<u8> {
    let byte = |digits: &str| {
        u8::from_str_radix(digits, 16).unwrap_or_else(|error| panic!("{digits:?}: {error}"))
    };
    let plain = text.split("(deleted)").next().unwrap();
    plain.split("\\x").skip(1).map(byte).collect()
}

/// Returns true if a path is below a folder.
pub fn is_below(path: &str, folder: &Path) -> bool {
    Path::new(path).starts_with(folder)
}

#[test]
fn a_trace_is_read_in_the_order_of_what_is_known() {
    let text = "7  openat(AT_FDCWD<\\x2f>, \"\\x2f\\x61\", O_RDWR|O_CREAT, 0600) = 3<\\x2f\\x61>\n\
        7  fsync(3<\\x2f\\x61> <unfinished ...>\n\
        8  pwrite64(3<\\x2f\\x61>, \"\\x78\\x79\", 2, 10) = 2\n\
        8  unlink(\"\\x2f\\x62\") = -1 ENOENT (No such file or directory)\n\
        7  <... fsync resumed>) = 0\n\
        7  write(1<\\x2f\\x63>, \"\\x6f\\x6b\", 2) = 2\n\
        7  +++ exited with 0 +++\n";
    let steps = parse(text);
    let [
        Step::Done(open),
        Step::SyncBegins(a, 3),
        Step::Done(write),
        Step::SyncEnds(b),
        Step::Says(1, said),
    ] = &steps[..]
    else {
        panic!("{steps:?}");
    };
    assert_eq!(
        (a, open.paths(), open.result),
        (b, vec!["/a".to_owned()], 3)
    );
    assert_eq!(
        (write.data(), write.number_from_end(0)),
        (b"xy".to_vec(), 10)
    );
    assert_eq!(said, b"ok");
}
