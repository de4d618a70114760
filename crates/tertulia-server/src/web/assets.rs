//! The files of the page, which are in the program. They are sent compressed, and under an address
//! that changes with their content, so that a browser keeps them for good.

use std::collections::HashMap;
use std::io::{self, Write};

use axum::body::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;

/// Digits of the hash in an address.
pub const VERSION: usize = 16;

/// A file of the page, as it is written.
#[derive(Clone, Copy, Debug)]
struct Asset {
    /// Name in its address.
    name: &'static str,
    /// Its type.
    kind: &'static str,
    /// Its content.
    bytes: &'static [u8],
}

/// A file as it is sent.
#[derive(Clone, Debug)]
pub struct File {
    /// Its type.
    pub kind: &'static str,
    /// Its content.
    pub plain: Bytes,
    /// Its content for browsers that can unpack it.
    pub packed: Bytes,
    /// Names its content.
    pub tag: String,
}

/// All files of the page.
#[derive(Clone, Debug)]
pub struct Files {
    version: String,
    files: HashMap<&'static str, File>,
    /// The page, which has no data in it.
    pub index: File,
    /// The login.
    pub login: File,
    /// What is shown where there is nothing.
    pub missing: File,
}

const HTML: &str = "text/html; charset=utf-8";
const SCRIPT: &str = "text/javascript; charset=utf-8";
const STYLE: &str = "text/css; charset=utf-8";

macro_rules! assets {
    ($($name:literal: $kind:expr,)*) => {
        &[$(Asset {
            name: $name,
            kind: $kind,
            bytes: include_bytes!(concat!("../../web/", $name)),
        },)*]
    };
}

const INDEX: &str = include_str!("../../web/index.html");
const LOGIN: &str = include_str!("../../web/login.html");
const MISSING: &str = include_str!("../../web/missing.html");

/// All files that these pages load.
const ASSETS: &[Asset] = assets! {
    "app.css": STYLE,
    "app.js": SCRIPT,
    "composer.js": SCRIPT,
    "connection.js": SCRIPT,
    "decorate.js": SCRIPT,
    "dialogs.js": SCRIPT,
    "dom.js": SCRIPT,
    "icon-192.png": "image/png",
    "icon-512.png": "image/png",
    "icon.svg": "image/svg+xml",
    "keys.js": SCRIPT,
    "list.js": SCRIPT,
    "login.js": SCRIPT,
    "manifest.webmanifest": "application/manifest+json",
    "new.js": SCRIPT,
    "permission.js": SCRIPT,
    "scroll.js": SCRIPT,
    "session_actions.js": SCRIPT,
    "session_state.js": SCRIPT,
    "session_view.js": SCRIPT,
    "stats.js": SCRIPT,
    "store.js": SCRIPT,
    "stream.js": SCRIPT,
    "sw.js": SCRIPT,
    "transcript.js": SCRIPT,
};

impl Files {
    /// Prepares the files, once for all requests.
    pub fn new() -> io::Result<Files> {
        let mut hasher = blake3::Hasher::new();
        for asset in ASSETS {
            hasher.update(asset.name.as_bytes()).update(asset.bytes);
        }
        let version = hasher.finalize().to_hex()[..VERSION].to_owned();
        let named = |asset: &Asset| {
            let file = File::new(asset.kind, Bytes::from_static(asset.bytes))?;
            Ok((asset.name, file))
        };
        // The modules name each other relative to their own address.
        let page = |text: &str| {
            let text = text.replace("\"/assets/", &format!("\"/assets/{version}/"));
            File::new(HTML, Bytes::from(text))
        };
        Ok(Files {
            files: ASSETS.iter().map(named).collect::<io::Result<_>>()?,
            index: page(INDEX)?,
            login: page(LOGIN)?,
            missing: page(MISSING)?,
            version,
        })
    }

    /// Returns a file by its name, under the version in its address.
    pub fn find(&self, version: Option<&str>, name: &str) -> Option<&File> {
        let is_known = version.is_none_or(|version| version == self.version);
        self.files.get(name).filter(|_| is_known)
    }
}

impl File {
    fn new(kind: &'static str, plain: Bytes) -> io::Result<File> {
        let mut packer = GzEncoder::new(Vec::new(), Compression::best());
        packer.write_all(&plain)?;
        Ok(File {
            kind,
            packed: Bytes::from(packer.finish()?),
            tag: format!("W/\"{}\"", &blake3::hash(&plain).to_hex()[..32]),
            plain,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Largest page, with everything that it loads, as it is sent. Icons for the home screen are loaded only
    /// by who puts it there.
    const LARGEST: usize = 60_000;

    #[test]
    fn every_file_of_the_page_is_served() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/web");
        let files = Files::new().unwrap();
        for file in std::fs::read_dir(folder).unwrap() {
            let name = file.unwrap().file_name().into_string().unwrap();
            let is_page = ["index.html", "login.html", "missing.html"].contains(&name.as_str());
            let is_found = files.find(None, &name).is_some();
            assert!(is_page || is_found, "{name} is not in the table");
        }
    }

    #[test]
    fn the_page_stays_small_and_runs_no_inline_code() {
        let files = Files::new().unwrap();
        let pages = [&files.index, &files.login, &files.missing];
        let loaded = files.files.values().filter(|file| file.kind != "image/png");
        let all = loaded.chain(pages);
        let size: usize = all.map(|file| file.packed.len()).sum();
        assert!(size < LARGEST, "{size} bytes");
        for page in pages {
            let text = std::str::from_utf8(&page.plain).unwrap();
            for wrong in ["<style", " style=", "onclick", "http://", "https://"] {
                assert!(!text.contains(wrong), "{text} has {wrong}");
            }
        }
    }

    #[test]
    fn pages_name_files_by_their_version_and_modules_relatively() {
        let files = Files::new().unwrap();
        let text = std::str::from_utf8(&files.index.plain).unwrap();
        let names: Vec<&str> = text
            .split("\"/assets/")
            .skip(1)
            .filter_map(|rest| rest.split('"').next())
            .collect();
        assert!(names.len() > 10);
        for name in names {
            let (version, name) = name.split_once('/').unwrap();
            assert!(files.find(Some(version), name).is_some(), "{name}");
            assert!(files.find(Some("0000000000000000"), name).is_none());
        }
        for asset in ASSETS
            .iter()
            .filter(|asset| asset.kind == SCRIPT && asset.name != "sw.js")
        {
            let text = std::str::from_utf8(asset.bytes).unwrap();
            assert!(!text.contains("/assets/"), "{}", asset.name);
        }
    }
}
