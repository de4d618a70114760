//! Keys of sealed sessions: where they come from, and for whom they are wrapped. `identity` is the
//! user's key file, `passphrase` comes from a command or the terminal, `received` are keys that came with
//! bundles.

mod identity;
mod passphrase;
mod received;

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use age::secrecy::SecretString;
use age::{DecryptError, Decryptor, Encryptor, Identity, Recipient};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use chacha20poly1305::XChaCha20Poly1305;
use chacha20poly1305::aead::{KeyInit, OsRng};
use tertulia_core::seal::{KEY_BYTES, KeyBytes, NewKey, Recipients};
use tertulia_store::{KeyError, KeySource, Unlocking};
use zeroize::Zeroizing;

pub use passphrase::forbid_prompts;

use crate::error::CommandResult;
use crate::settings::{SealSettings, Settings, StoreUrl};

/// How often a wrong passphrase may be corrected.
const TRIES: usize = 3;
/// Highest cost of a passphrase that is accepted, so that a foreign file cannot stall the program.
const HIGHEST_WORK_FACTOR: u8 = 22;

/// Keys that were unwrapped, by their wrapped form: the full screen opens one session after another and
/// cannot ask again.
static UNWRAPPED: Mutex<BTreeMap<String, KeyBytes>> = Mutex::new(BTreeMap::new());

/// Result of something that needs a key.
pub type KeyResult<T> = Result<T, KeyError>;

/// The keys that the settings, a command and the user at the terminal provide.
#[derive(Debug)]
pub struct UserKeys {
    settings: SealSettings,
    /// Folder of the store, in which no key may lie.
    store: Option<PathBuf>,
    /// Folder of the keys that came with bundles, each wrapped for the user.
    received: PathBuf,
    /// The last passphrase that was right, for the other sessions of this process.
    passphrase: Mutex<Option<SecretString>>,
}

impl UserKeys {
    /// Creates the source of keys that the settings describe.
    pub fn new(settings: &Settings) -> UserKeys {
        let store = match &settings.store {
            StoreUrl::Sqlite(file) => file.parent().map(ToOwned::to_owned),
            StoreUrl::Files(folder) => Some(folder.clone()),
            StoreUrl::Memory => None,
            #[cfg(feature = "postgres")]
            StoreUrl::Postgres(_) => None,
        };
        UserKeys {
            settings: settings.seal.clone(),
            store,
            received: settings.data.join(received::FOLDER),
            passphrase: Mutex::new(None),
        }
    }

    /// Writes a new key of the user to a file, and returns its recipient.
    pub fn make_identity(&self, file: &Path) -> KeyResult<String> {
        identity::make(file, self.store.as_deref())
    }

    /// Begins a file that the recipients of the settings can read, or those who know a passphrase.
    pub fn encryptor(&self) -> KeyResult<Encryptor> {
        let mut recipients: Vec<Box<dyn Recipient>> = Vec::new();
        for recipient in &self.settings.recipients {
            recipients.push(Box::new(parsed(recipient)?));
        }
        if self.settings.identity.is_some() {
            let own = self.identities()?;
            recipients.extend(own.iter().map(|key| Box::new(key.to_public()) as Box<_>));
        }
        if recipients.is_empty() {
            return self.passphrase_encryptor();
        }
        encryptor(recipients)
    }

    /// Returns the recipients of the user's own keys.
    pub fn own(&self) -> KeyResult<Vec<String>> {
        let own = self.identities()?;
        Ok(own.iter().map(|key| key.to_public().to_string()).collect())
    }

    /// Fails if one of these is no recipient.
    pub fn check_recipients(recipients: &[String]) -> KeyResult<()> {
        recipients.iter().try_for_each(|it| parsed(it).map(|_| ()))
    }

    /// Begins a file for other recipients than those of the settings.
    pub fn encryptor_for(&self, recipients: &[String]) -> KeyResult<Encryptor> {
        let mut all: Vec<Box<dyn Recipient>> = Vec::new();
        for recipient in recipients {
            all.push(Box::new(parsed(recipient)?));
        }
        encryptor(all)
    }

    /// Begins a file for those who know a passphrase.
    pub fn passphrase_encryptor(&self) -> KeyResult<Encryptor> {
        let passphrase = match self.by_command()? {
            Some(passphrase) => passphrase,
            None => passphrase::ask_for_new()?,
        };
        self.remember(&passphrase);
        self.encryptor_by(passphrase)
    }

    fn encryptor_by(&self, passphrase: SecretString) -> KeyResult<Encryptor> {
        let mut recipient = age::scrypt::Recipient::new(passphrase);
        recipient.set_work_factor(self.settings.work_factor);
        encryptor(vec![Box::new(recipient)])
    }

    /// Opens an age file.
    pub fn decrypt<R: Read>(
        &self,
        input: R,
        unlocking: Unlocking,
    ) -> KeyResult<age::stream::StreamReader<R>> {
        let decryptor = Decryptor::new(input).map_err(|error| unreadable(&error))?;
        if decryptor.is_scrypt() {
            return self.decrypt_by_passphrase(decryptor, unlocking);
        }
        if self.settings.identity.is_none() {
            return Err(KeyError(
                "it is for recipients: name the file of your key as `identity` of [seal] in your settings"
                    .to_owned(),
            ));
        }
        let own = self.identities()?;
        let identities = own.iter().map(|key| key as &dyn Identity);
        decryptor
            .decrypt(identities)
            .map_err(|error| match (&error, &self.settings.identity) {
                (DecryptError::NoMatchingKeys, Some(file)) => KeyError(format!(
                    "it is for other recipients than the keys in {}",
                    file.display()
                )),
                _ => unreadable(&error),
            })
    }

    fn decrypt_by_passphrase<R: Read>(
        &self,
        decryptor: Decryptor<R>,
        unlocking: Unlocking,
    ) -> KeyResult<age::stream::StreamReader<R>> {
        // Trying a passphrase takes about a second, too long for each row of a list.
        if unlocking == Unlocking::Quietly {
            return Err(needs_passphrase());
        }
        let passphrase = match self.by_command()? {
            Some(passphrase) => passphrase,
            None => match self.remembered() {
                Some(passphrase) => passphrase,
                None if unlocking == Unlocking::Unattended => return Err(needs_passphrase()),
                None => passphrase::ask()?,
            },
        };
        let mut identity = age::scrypt::Identity::new(passphrase.clone());
        identity.set_max_work_factor(HIGHEST_WORK_FACTOR);
        let opened = decryptor.decrypt(std::iter::once(&identity as &dyn Identity));
        match opened {
            Ok(reader) => {
                self.remember(&passphrase);
                Ok(reader)
            }
            Err(
                DecryptError::DecryptionFailed
                | DecryptError::KeyDecryptionFailed
                | DecryptError::NoMatchingKeys,
            ) => {
                self.forget();
                Err(KeyError("the passphrase is wrong".to_owned()))
            }
            Err(error) => Err(unreadable(&error)),
        }
    }

    /// Decrypts a wrapped key.
    fn unwrap_form(&self, wrapped: &str, unlocking: Unlocking) -> KeyResult<KeyBytes> {
        let file = STANDARD.decode(wrapped).map_err(|_| damaged())?;
        let mut tries = 1;
        let mut reader = loop {
            match self.decrypt(file.as_slice(), unlocking) {
                Err(error) if unlocking != Unlocking::Ask => return Err(error),
                Err(_) if tries < TRIES && self.may_try_again() && is_by_passphrase(&file) => {
                    passphrase::say("The passphrase is wrong, try again.");
                    tries += 1;
                }
                opened => break opened?,
            }
        };
        let mut key = Zeroizing::new([0; KEY_BYTES]);
        reader.read_exact(key.as_mut()).map_err(|_| damaged())?;
        Ok(key)
    }

    /// Keeps the key of a session that came with a bundle, so that the session can be opened. `wrapped` is
    /// the form that the log has, `received` the one that is for the user.
    pub fn keep_received(&self, wrapped: &str, received: &str) -> CommandResult<()> {
        received::keep(&self.received, wrapped, received)
    }

    /// Wraps a key for the user's own key, if there is one.
    pub fn wrap_for_self(&self, key: &KeyBytes) -> KeyResult<Option<String>> {
        let own = self.own()?;
        match own.is_empty() {
            true => Ok(None),
            false => wrap(self.encryptor_for(&own)?, key).map(Some),
        }
    }

    /// Begins a file for those who know the passphrase of the last one.
    pub fn same_passphrase_encryptor(&self) -> KeyResult<Encryptor> {
        let passphrase = self.remembered().ok_or_else(needs_passphrase)?;
        self.encryptor_by(passphrase)
    }

    /// Returns true if a wrong passphrase can be corrected.
    fn may_try_again(&self) -> bool {
        self.settings.passphrase_command.is_none() && passphrase::can_ask()
    }

    fn by_command(&self) -> KeyResult<Option<SecretString>> {
        let command = self.settings.passphrase_command.as_deref();
        command.map(passphrase::of_command).transpose()
    }

    fn identities(&self) -> KeyResult<Vec<age::x25519::Identity>> {
        match &self.settings.identity {
            Some(file) => identity::read(file, self.store.as_deref()),
            None => Ok(Vec::new()),
        }
    }

    fn remembered(&self) -> Option<SecretString> {
        self.passphrase.lock().ok()?.clone()
    }

    fn remember(&self, passphrase: &SecretString) {
        if let Ok(mut known) = self.passphrase.lock() {
            *known = Some(passphrase.clone());
        }
    }

    fn forget(&self) {
        if let Ok(mut known) = self.passphrase.lock() {
            *known = None;
        }
    }
}

impl KeySource for UserKeys {
    fn make(&self) -> KeyResult<(KeyBytes, String)> {
        let key = new_key();
        let wrapped = wrap(self.encryptor()?, &key)?;
        remember(&wrapped, &key);
        Ok((key, wrapped))
    }

    fn renew(&self, recipients: &Recipients, wrapped: &[String]) -> KeyResult<NewKey> {
        let removed = &recipients.removed;
        let own = self.own()?;
        if let Some(own) = own.iter().find(|key| removed.contains(key)) {
            let words = format!("{own} is your own key: you could not read what you write");
            return Err(KeyError(words));
        }
        let mut remaining = recipients.known.clone();
        remaining.extend(self.settings.recipients.iter().cloned());
        remaining.extend(own);
        remaining.retain(|recipient| !removed.contains(recipient));
        remaining.sort();
        remaining.dedup();
        let key = new_key();
        let mut forms = Vec::new();
        if !remaining.is_empty() {
            forms.push(wrap(self.encryptor_for(&remaining)?, &key)?);
        }
        if let Some(form) = wrapped.iter().find(|form| is_for_passphrase(form)) {
            // The same passphrase opens the new key: it is right if it opens the one before.
            let file = STANDARD.decode(form).map_err(|_| damaged())?;
            self.decrypt(file.as_slice(), Unlocking::Ask)?;
            forms.push(wrap(self.same_passphrase_encryptor()?, &key)?);
        }
        if forms.is_empty() {
            forms.push(wrap(self.passphrase_encryptor()?, &key)?);
        }
        for form in &forms {
            remember(form, &key);
        }
        Ok(NewKey {
            key,
            wrapped: forms,
            recipients: remaining,
        })
    }

    fn wrap(&self, key: &KeyBytes, recipient: &str) -> KeyResult<String> {
        wrap(self.encryptor_for(&[recipient.to_owned()])?, key)
    }

    fn unwrap_key(&self, wrapped: &str, unlocking: Unlocking) -> KeyResult<KeyBytes> {
        let unwrapped = UNWRAPPED.lock().ok();
        if let Some(key) = unwrapped.and_then(|known| known.get(wrapped).cloned()) {
            return Ok(key);
        }
        let key = match self.unwrap_form(wrapped, Unlocking::Quietly) {
            Ok(key) => key,
            // It may have come with a bundle, wrapped for the user.
            Err(error) => match (received::find(&self.received, wrapped), unlocking) {
                (Some(received), _) => self.unwrap_form(&received, unlocking)?,
                (None, Unlocking::Quietly) => return Err(error),
                (None, _) => self.unwrap_form(wrapped, unlocking)?,
            },
        };
        remember(wrapped, &key);
        Ok(key)
    }
}

fn new_key() -> KeyBytes {
    let key: [u8; KEY_BYTES] = XChaCha20Poly1305::generate_key(&mut OsRng).into();
    Zeroizing::new(key)
}

/// Encrypts a key for those of the encryptor.
pub fn wrap(encryptor: Encryptor, key: &KeyBytes) -> KeyResult<String> {
    let mut file = Vec::new();
    let write = |file: &mut Vec<u8>| -> std::io::Result<()> {
        let mut writer = encryptor.wrap_output(file)?;
        writer.write_all(key.as_slice())?;
        writer.finish().map(|_| ())
    };
    write(&mut file).map_err(|error| KeyError(format!("its key cannot be wrapped: {error}")))?;
    Ok(STANDARD.encode(file))
}

fn damaged() -> KeyError {
    KeyError("its wrapped key is damaged".to_owned())
}

fn is_for_passphrase(wrapped: &str) -> bool {
    let file = STANDARD.decode(wrapped);
    file.is_ok_and(|file| is_by_passphrase(&file))
}

fn needs_passphrase() -> KeyError {
    KeyError("it needs its passphrase".to_owned())
}

fn remember(wrapped: &str, key: &KeyBytes) {
    if let Ok(mut known) = UNWRAPPED.lock() {
        known.insert(wrapped.to_owned(), key.clone());
    }
}

fn is_by_passphrase(file: &[u8]) -> bool {
    Decryptor::new(file).is_ok_and(|decryptor| decryptor.is_scrypt())
}

fn encryptor(recipients: Vec<Box<dyn Recipient>>) -> KeyResult<Encryptor> {
    Encryptor::with_recipients(recipients.iter().map(|recipient| &**recipient))
        .map_err(|error| KeyError(error.to_string()))
}

fn parsed(recipient: &str) -> KeyResult<age::x25519::Recipient> {
    recipient
        .parse()
        .map_err(|_| KeyError(format!("'{recipient}' is not an age recipient")))
}

fn unreadable(error: &DecryptError) -> KeyError {
    KeyError(match error {
        DecryptError::ExcessiveWork { required, .. } => {
            format!("its passphrase is protected by work factor {required}, which is too high")
        }
        DecryptError::Io(error) => format!("its wrapped key cannot be read: {error}"),
        _ => return damaged(),
    })
}
