//! Far ends that do not keep to the protocol.

use std::str::FromStr;

use super::*;

/// The greeting of this version.
const GREETS: &str = r#"echo '{"tertulia_sync":2,"store":"x"}'"#;
/// Long enough for any machine: what does not end for another reason fails the test.
const PATIENT: LinkLimits = LinkLimits {
    line: 1000,
    silence: Duration::from_secs(60),
    sessions: 2,
};
/// A far end that reads requests and answers none.
const READS: &str = "while read -r line; do :; done";
const HASTY: LinkLimits = LinkLimits {
    line: 1000,
    silence: Duration::from_millis(30),
    sessions: 2,
};
/// Connects to a far end that runs a script.
fn connect(script: &str, limits: LinkLimits) -> CommandResult<Remote> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("far");
    std::fs::write(&path, script).unwrap();
    let url = SshUrl::parse("desk").unwrap();
    Remote::connect_with(&url, &format!("sh {}", path.display()), limits, || {})
}

fn refused(script: &str, limits: LinkLimits) -> String {
    match connect(script, limits) {
        Ok(_) => panic!("{script}: connected"),
        Err(error) => error.words(),
    }
}

/// Connects to a far end that greets and then runs a script, with the limits that hold from then on.
fn greeted(script: &str, limits: LinkLimits) -> Remote {
    let remote = connect(&format!("{GREETS}\n{script}"), PATIENT).unwrap();
    let mut pipe = remote.pipe.lock().unwrap();
    pipe.limits = limits;
    pipe.lines.as_mut().unwrap().limits = limits;
    drop(pipe);
    remote
}

/// Returns the error of the first request that fails. An answer that comes too early can look like the
/// one to the next request, if that is fast.
fn fails(script: &str, limits: LinkLimits) -> String {
    let remote = greeted(script, limits);
    loop {
        if let Err(error) = remote.ask::<()>(&Request::Watch) {
            // The link is given up at once.
            assert!(remote.ask::<()>(&Request::Watch).is_err());
            return error.to_string();
        }
    }
}

fn has(text: &str, part: &str) {
    assert!(text.contains(part), "{text}");
}

#[test]
fn a_line_without_end_is_not_kept() {
    let endless = "exec cat /dev/zero";
    has(&refused(endless, PATIENT), "other text");
    has(&fails(endless, PATIENT), "a line of more than 1000 bytes");
}

#[test]
fn silence_has_a_limit() {
    has(&refused(READS, HASTY), "silent for 30 ms");
    has(&fails(READS, HASTY), "silent for 30 ms");
    // Its requests are not even read.
    has(&fails("exec sleep 1000", HASTY), "silent for 30 ms");
}

#[test]
fn answers_that_nobody_asked_for_end_the_link() {
    let words = "an answer to no request";
    has(&fails("exec yes '{\"ok\":null}'", PATIENT), words);
    has(
        &fails(&format!("echo '\"changed\"'\n{READS}"), PATIENT),
        words,
    );
    let nonsense = "read -r line; exec yes nonsense";
    has(&fails(nonsense, PATIENT), "speak the sync protocol");
}

#[test]
fn a_far_end_that_stays_is_stopped() {
    let error = greeted("exec sleep 1000", HASTY).close().unwrap_err();
    has(&error.words(), "did not leave within 30 ms");
    greeted(READS, PATIENT).close().unwrap();
}

#[test]
fn a_list_without_end_is_given_up() {
    let id = |n: &str| format!("01890000-0000-7000-8000-00000000000{n}");
    let branch = |n: &str| {
        let head = format!(r#"{{"seq":1,"hash":"{}"}}"#, "0".repeat(64));
        format!(r#"{{"id":"{0}","root":"{0}","head":{head}}}"#, id(n))
    };
    let page = |n: &str| {
        let next = format!("0.{}", id("1"));
        let (branch, damaged) = (branch(n), "[]");
        format!(r#"{{"ok":{{"branches":[{branch}],"damaged":{damaged},"next":"{next}"}}}}"#)
    };
    let script = format!(
        "for page in '{}' '{}' '{}'; do read -r line; echo \"$page\"; done; {READS}",
        page("1"),
        page("2"),
        page("3")
    );
    let remote = greeted(&script, PATIENT);
    let pages: Vec<StoreResult<BranchPage>> = (0..3)
        .map(|n| {
            let cursor = (n > 0).then(|| Cursor::from_str(&format!("0.{}", id("1"))).unwrap());
            tertulia_testkit::ask::now(remote.page(cursor, 1))
        })
        .collect();
    assert!(pages[0].is_ok() && pages[1].is_ok(), "{pages:?}");
    let refused = pages[2].as_ref().unwrap_err().to_string();
    has(&refused, "more than 2 sessions");
}
