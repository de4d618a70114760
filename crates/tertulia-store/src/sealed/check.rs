//! Checks the words of sealed sessions: hashes are over sealed lines, and any writer of the store can
//! compute them anew.

use std::collections::HashSet;

use super::{SealedStore, Unlocking};
use crate::{Progress, Report, StoreError, StoreResult};
use tertulia_core::entry::{Hash, Head};
use tertulia_core::id::Seq;
use tertulia_core::query::{Filter, Page, Trash};
use tertulia_core::session::{Log, SessionMeta};

/// Sealed sessions per page of a list.
const PAGE: usize = 200;

/// What the check of sealed words has seen so far.
#[derive(Default)]
struct Seen {
    /// Entries that were opened. Forks share them.
    opened: HashSet<Hash>,
    /// Sessions without a key.
    locked: u64,
}

impl SealedStore {
    /// Opens every entry of the sealed sessions whose keys are at hand, and adds to the report what was
    /// altered or put in, and how many sessions could not be opened.
    pub(super) async fn check_words(
        &self,
        report: &mut Report,
        progress: &Progress,
    ) -> StoreResult<()> {
        let filter = Filter {
            sealed: true,
            trash: Trash::With,
            ..Filter::default()
        };
        let mut seen = Seen::default();
        let (mut page, mut done) = (Page::first(PAGE), 0);
        loop {
            let listing = match self.stored.list(&filter, &page).await {
                // The check of the store itself has found that.
                Err(error) if error.is_damage() => break,
                listing => listing?,
            };
            for row in &listing.rows {
                progress.at("opening sealed sessions", done, report.sessions);
                done += 1;
                self.keys.note(&row.meta);
                match self.check_session(&row.meta, &mut seen, report).await {
                    Err(error) if error.is_damage() => {}
                    checked => checked?,
                }
            }
            match listing.next {
                Some(next) => page.cursor = Some(next),
                None => break,
            }
        }
        if seen.locked > 0 {
            let sessions = match seen.locked {
                1 => "1 sealed session".to_owned(),
                count => format!("{count} sealed sessions"),
            };
            report.notes.push(format!(
                "the words of {sessions} were not checked, because the key is not at hand: set `identity` or \
                 `passphrase_command` of [seal] in your settings and run `tertulia doctor` again"
            ));
        }
        Ok(())
    }

    async fn check_session(
        &self,
        meta: &SessionMeta,
        seen: &mut Seen,
        report: &mut Report,
    ) -> StoreResult<()> {
        let lines = self.stored.read(meta.id, Seq::START, usize::MAX).await?;
        let mut log = Log::read(meta.id, Some(Head::START), Seq::START, &lines);
        // Known from the check of the store itself.
        log.damage.clear();
        log.reject_plain(meta.id);
        log.entries
            .retain(|entry| !seen.opened.contains(&entry.hash));
        let unchecked = log.clone();
        let log = match self.open_with(meta.id, log, Unlocking::Unattended).await {
            Err(StoreError::Sealed { .. }) => {
                seen.locked += 1;
                unchecked
            }
            opened => {
                let opened = opened?;
                seen.opened
                    .extend(opened.entries.iter().map(|entry| entry.hash));
                opened
            }
        };
        let is_new = |damage: &_| !report.damage.contains(damage);
        let found: Vec<_> = log.damage.into_iter().filter(is_new).collect();
        report.altered.extend(found);
        Ok(())
    }
}
