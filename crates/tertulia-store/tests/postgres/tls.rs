//! Encrypted connections, as `sslmode` and `sslrootcert` say.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use tertulia_store::postgres::PostgresStore;
use tertulia_testkit::postgres::{OwnServer, options, sql};
use tertulia_testkit::scratch::Scratch;

/// Runs a check on a server with a certificate for a name; `open` gets the settings of the URL and
/// tells why the store cannot be opened.
fn with_certificate_for(
    name: &str,
    is_authority: bool,
    check: impl Fn(&dyn Fn(&str) -> Option<String>, &Path),
) {
    let scratch = Scratch::new();
    fs::set_permissions(scratch.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let folder = scratch.path().join("server");
    fs::create_dir(&folder).unwrap();
    let server = OwnServer::create(&folder);
    let certificate = server.certificate(name, is_authority);
    let settings = [
        "ssl=on",
        "ssl_cert_file=../certificate",
        "ssl_key_file=../key",
    ];
    let mut process = server.start_with(&settings);
    // Both the server and this process may read it.
    let readable = scratch.path().join("root.pem");
    fs::copy(&certificate, &readable).unwrap();
    sql(&server.url(), "CREATE DATABASE encrypted");
    let open = |settings: &str| {
        let url = format!(
            "postgres://postgres@127.0.0.1:{}/encrypted?{settings}",
            server.port()
        );
        let opened = PostgresStore::open(options(&url, scratch.path()));
        opened.err().map(|error| format!("{error:?}"))
    };
    check(&open, &readable);
    process.kill().unwrap();
    process.wait().unwrap();
}

#[test]
fn a_certificate_for_the_host() {
    with_certificate_for("IP:127.0.0.1", false, |open, root| {
        let root = root.display();
        for settings in ["sslmode=disable", "sslmode=prefer", "sslmode=require", ""] {
            assert_eq!(open(settings), None, "{settings}");
        }
        for mode in ["require", "verify-ca", "verify-full"] {
            let settings = format!("sslmode={mode}&sslrootcert={root}");
            assert_eq!(open(&settings), None, "{settings}");
        }
        // The system does not know the authority.
        let refused = open("sslmode=verify-full").unwrap();
        assert!(refused.contains("ertificate"), "{refused}");
        let refused = open("sslmode=verify-full&sslrootcert=/no/such/file").unwrap();
        assert!(refused.contains("/no/such/file"), "{refused}");
    });
}

#[test]
fn a_certificate_for_another_host() {
    with_certificate_for("DNS:elsewhere.example", false, |open, root| {
        let root = root.display();
        assert_eq!(open(&format!("sslmode=verify-ca&sslrootcert={root}")), None);
        let refused = open(&format!("sslmode=verify-full&sslrootcert={root}")).unwrap();
        assert!(refused.contains("ertificate"), "{refused}");
    });
}

/// Many servers have a certificate that signed itself, and so counts as an authority.
#[test]
fn a_certificate_that_is_its_own_authority() {
    with_certificate_for("DNS:elsewhere.example", true, |open, root| {
        let root = root.display();
        assert_eq!(open(&format!("sslmode=verify-ca&sslrootcert={root}")), None);
        let refused = open(&format!("sslmode=verify-full&sslrootcert={root}")).unwrap();
        assert!(refused.contains("ertificate"), "{refused}");
    });
    with_certificate_for("IP:127.0.0.1", true, |open, root| {
        let root = root.display();
        let settings = format!("sslmode=verify-full&sslrootcert={root}");
        assert_eq!(open(&settings), None);
    });
}
