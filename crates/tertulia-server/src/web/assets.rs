//! The files of the page, which are in the program.

/// A file of the page.
#[derive(Clone, Copy, Debug)]
pub struct Asset {
    /// Name in its address.
    pub name: &'static str,
    /// Its type.
    pub kind: &'static str,
    /// Its content.
    pub bytes: &'static [u8],
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

/// The page, which has no data in it.
pub const INDEX: Asset = Asset {
    name: "index.html",
    kind: HTML,
    bytes: include_bytes!("../../web/index.html"),
};

/// The login.
pub const LOGIN: Asset = Asset {
    name: "login.html",
    kind: HTML,
    bytes: include_bytes!("../../web/login.html"),
};

/// All other files.
pub const ASSETS: &[Asset] = assets! {
    "app.css": STYLE,
    "app.js": SCRIPT,
    "composer.js": SCRIPT,
    "connection.js": SCRIPT,
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
    "session.js": SCRIPT,
    "stats.js": SCRIPT,
    "store.js": SCRIPT,
    "stream.js": SCRIPT,
    "sw.js": SCRIPT,
    "transcript.js": SCRIPT,
};

/// Returns a file by its name.
pub fn find(name: &str) -> Option<Asset> {
    ASSETS.iter().find(|asset| asset.name == name).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Largest page, with everything that it loads.
    const LARGEST: usize = 150_000;

    #[test]
    fn every_file_of_the_page_is_served() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/web");
        for file in std::fs::read_dir(folder).unwrap() {
            let name = file.unwrap().file_name().into_string().unwrap();
            let is_page = [INDEX.name, LOGIN.name].contains(&name.as_str());
            assert!(
                is_page || find(&name).is_some(),
                "{name} is not in the table"
            );
        }
    }

    #[test]
    fn the_page_stays_small_and_runs_no_inline_code() {
        let all: Vec<&Asset> = [&INDEX, &LOGIN].into_iter().chain(ASSETS).collect();
        let size: usize = all.iter().map(|asset| asset.bytes.len()).sum();
        assert!(size < LARGEST, "{size} bytes");
        for asset in [INDEX, LOGIN] {
            let text = std::str::from_utf8(asset.bytes).unwrap();
            for wrong in ["<style", " style=", "onclick", "http://", "https://"] {
                assert!(!text.contains(wrong), "{} has {wrong}", asset.name);
            }
        }
    }
}
