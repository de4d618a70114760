//! The author of entries: the user's name, and the name of the machine.

use tertulia_core::entry::Author;

use crate::env;

/// Returns the author of what this process writes. `name` is that of the settings.
pub fn author(name: Option<&str>) -> Author {
    let name = name
        .map(str::to_owned)
        .or_else(|| env::text("USER"))
        .or_else(|| env::text("LOGNAME"))
        .unwrap_or_else(account);
    Author {
        name: name.into(),
        host: host().unwrap_or_else(|| "unknown".to_owned()).into(),
    }
}

/// Returns the name of the account that this process runs under.
fn account() -> String {
    let uid = rustix::process::getuid().as_raw();
    let accounts = std::fs::read_to_string("/etc/passwd").unwrap_or_default();
    name_of(&accounts, uid).unwrap_or_else(|| format!("uid {uid}"))
}

/// Finds an account in a file like `/etc/passwd`.
fn name_of(accounts: &str, uid: u32) -> Option<String> {
    accounts.lines().find_map(|line| {
        let mut fields = line.split(':');
        let (name, id) = (fields.next()?, fields.nth(1)?);
        (id.parse() == Ok(uid) && !name.is_empty()).then(|| name.to_owned())
    })
}

/// Returns the name of this machine.
pub fn host() -> Option<String> {
    let files = ["/proc/sys/kernel/hostname", "/etc/hostname"];
    let read = |file| std::fs::read_to_string(file).ok();
    let name = files.into_iter().find_map(read)?;
    Some(name.trim().to_owned()).filter(|name| !name.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_account_has_a_name() {
        let accounts =
            "root:x:0:0:root:/root:/bin/sh\n\nana:x:1000:1000::/home/ana:/bin/sh\nhalf:x";
        let check = |uid, expected: Option<&str>| {
            assert_eq!(name_of(accounts, uid).as_deref(), expected);
        };
        check(0, Some("root"));
        check(1000, Some("ana"));
        check(7, None);
    }
}
