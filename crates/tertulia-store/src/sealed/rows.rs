//! Metadata of sealed sessions, as their words make it. It is derived by decrypting a log, and kept
//! encrypted beside the store, so that a list need not decrypt all logs again.

use std::fs;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::{SealedStore, Sealing, Unlocking};
use crate::{StoreError, StoreResult, place};
use tertulia_core::entry::Head;
use tertulia_core::id::{Seq, SessionId};
use tertulia_core::seal::SessionKeys;
use tertulia_core::session::{Log, SessionMeta};

/// Folder of the rows, named as a file of derived data.
const FOLDER: &str = "sealed-rows";

/// A row at rest.
#[derive(Debug, Serialize, Deserialize)]
struct KeptRow {
    seq: Seq,
    hash: String,
    /// The encrypted metadata.
    data: String,
}

impl SealedStore {
    /// Replaces the metadata of a sealed session by that of its decrypted log, if the key is known or
    /// can be had as `unlocking` says.
    pub(crate) async fn with_words(
        &self,
        meta: SessionMeta,
        unlocking: Unlocking,
    ) -> StoreResult<SessionMeta> {
        let Some(sealing) = Sealing::of(&meta) else {
            return Ok(meta);
        };
        let key = match self.unlock(meta.id, &sealing, unlocking).await {
            Ok(key) => key,
            Err(StoreError::Sealed { .. }) if unlocking == Unlocking::Quietly => return Ok(meta),
            Err(error) => return Err(error),
        };
        let kept = self.kept_row(meta.id, &key);
        let parent = meta.parent.as_ref().map(|parent| parent.id);
        // A fork begins with what its original was, if it was forked at its end.
        let kept = kept.or_else(|| self.kept_row(parent?, &key));
        if let Some(kept) = kept {
            if kept.head == meta.head && kept.id == meta.id {
                return Ok(counted(&meta, kept));
            }
            if let Some(opened) = self.continued(&meta, kept, unlocking).await? {
                self.keep_row(&opened, &key);
                return Ok(counted(&meta, opened));
            }
        }
        let lines = self.stored.read(meta.id, Seq::START, usize::MAX).await?;
        let log = Log::read(meta.id, Some(Head::START), Seq::START, &lines);
        let log = self.open_with(meta.id, log, unlocking).await?;
        let opened = SessionMeta::of(meta.id, &log.entries);
        if log.damage.is_empty() {
            self.keep_row(&opened, &key);
        }
        Ok(counted(&meta, opened))
    }

    /// Adds to known metadata the entries since then; `None` if the log does not continue there.
    async fn continued(
        &self,
        meta: &SessionMeta,
        mut kept: SessionMeta,
        unlocking: Unlocking,
    ) -> StoreResult<Option<SessionMeta>> {
        if kept.head.seq >= meta.head.seq {
            return Ok(None);
        }
        let after = kept.head.seq;
        let lines = self.stored.read(meta.id, after, usize::MAX).await?;
        let log = Log::read(meta.id, Some(kept.head), after, &lines);
        let log = self.open_with(meta.id, log, unlocking).await?;
        if !log.damage.is_empty() {
            return Ok(None);
        }
        for entry in &log.entries {
            kept.apply(entry);
        }
        Ok((kept.head == meta.head && kept.id == meta.id).then_some(kept))
    }

    fn row_file(&self, id: SessionId) -> Option<PathBuf> {
        let folder = self.stored.derived_file(FOLDER)?;
        Some(folder.join(id.to_string()))
    }

    fn kept_row(&self, id: SessionId, key: &SessionKeys) -> Option<SessionMeta> {
        let kept = fs::read(self.row_file(id)?).ok()?;
        let kept: KeptRow = serde_json::from_slice(&kept).ok()?;
        let words = key.decrypt(&shown(id, kept.seq, &kept.hash), &kept.data);
        let meta = SessionMeta::from_json(&words.ok()?).ok()?;
        (meta.head.seq == kept.seq).then_some(meta)
    }

    /// Keeps metadata for the next time. A failure costs only that.
    fn keep_row(&self, meta: &SessionMeta, key: &SessionKeys) {
        let keep = || {
            let file = self.row_file(meta.id)?;
            let hash = meta.head.hash.to_string();
            let words = serde_json::to_vec(meta).ok()?;
            let data = key.encrypt(&shown(meta.id, meta.head.seq, &hash), &words);
            let kept = KeptRow {
                seq: meta.head.seq,
                hash,
                data: data.ok()?,
            };
            place::make_folder(file.parent()?).ok()?;
            place::replace_file(&file, ".new", &serde_json::to_vec(&kept).ok()?).ok()
        };
        let _ = keep();
    }

    /// Removes what is kept of a session.
    pub(super) fn forget_row(&self, id: SessionId) {
        if let Some(file) = self.row_file(id) {
            let _ = fs::remove_file(file);
        }
    }
}

/// What is authenticated with a row beside its words.
fn shown(id: SessionId, seq: Seq, hash: &str) -> Vec<u8> {
    format!("row {id} {seq} {hash}").into_bytes()
}

/// Returns the metadata with what the store counts, which is right even if entries are damaged.
fn counted(stored: &SessionMeta, opened: SessionMeta) -> SessionMeta {
    SessionMeta {
        head: stored.head,
        bytes: stored.bytes,
        messages: stored.messages,
        hidden_ids: stored.hidden_ids.clone(),
        ..opened
    }
}
