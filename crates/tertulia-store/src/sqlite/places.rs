//! Places of the documents that a search found: session and sequence number of each.

use rusqlite::{Connection, OptionalExtension};
use tertulia_core::id::Seq;

/// Number of documents from which on their places are found together.
const MANY: usize = 20_000;
/// Documents per look-up below which runs are not worth while.
const PER_LOOKUP: usize = 8;
/// All places are read only if one in so many is wanted.
const SPARSE: usize = 64;

/// A place: number of the session, and sequence number.
pub(super) type Place = (i64, Seq);

/// Returns the place of a document.
pub(super) fn place_of(connection: &Connection, document: u64) -> rusqlite::Result<Option<Place>> {
    connection
        .prepare_cached("SELECT session, seq FROM entry WHERE n = ?1 AND session > 0")?
        .query_row([document.cast_signed()], |row| {
            Ok((row.get(0)?, Seq(row.get::<_, i64>(1)?.cast_unsigned())))
        })
        .optional()
}

/// Places of many documents.
#[derive(Default)]
pub(super) struct Places {
    /// Runs of documents, newest first.
    runs: Vec<Run>,
    /// Places of the documents from `first` on; session 0 for none.
    first: u64,
    of: Vec<Place>,
}

/// Documents with consecutive numbers that are consecutive entries of one session.
struct Run {
    first: u64,
    last: u64,
    /// Place of the first one.
    place: Place,
}

impl Places {
    /// Finds the places of documents, newest first, if they are many.
    pub(super) fn read(connection: &Connection, documents: &[u64]) -> rusqlite::Result<Places> {
        if documents.len() < MANY {
            return Ok(Places::default());
        }
        let runs = runs(documents, documents.len() / PER_LOOKUP, &mut |document| {
            place_of(connection, document)
        })?;
        match runs {
            Some(runs) => Ok(Places {
                runs,
                ..Places::default()
            }),
            None => Places::read_all(connection, documents),
        }
    }

    /// Reads the places of all documents between the oldest and the newest from the index over places,
    /// which is quicker than one look-up for each.
    fn read_all(connection: &Connection, documents: &[u64]) -> rusqlite::Result<Places> {
        let (Some(newest), Some(first)) = (documents.first(), documents.last().copied()) else {
            return Ok(Places::default());
        };
        let span = usize::try_from(newest - first).unwrap_or(usize::MAX);
        if span / SPARSE > documents.len() {
            return Ok(Places::default());
        }
        let mut of = vec![(0, Seq::START); span + 1];
        let mut select = connection.prepare_cached(
            "SELECT n, session, seq FROM entry INDEXED BY entry_by_place WHERE session > 0",
        )?;
        let mut rows = select.query([])?;
        while let Some(row) = rows.next()? {
            let n = row.get::<_, i64>(0)?.cast_unsigned();
            let at = usize::try_from(n.wrapping_sub(first)).unwrap_or(usize::MAX);
            if let Some(place) = of.get_mut(at) {
                *place = (row.get(1)?, Seq(row.get::<_, i64>(2)?.cast_unsigned()));
            }
        }
        Ok(Places {
            first,
            of,
            ..Places::default()
        })
    }

    /// Returns the place of a document, or `None` if it was not found together with the others.
    pub(super) fn get(&self, document: u64) -> Option<Option<Place>> {
        if !self.runs.is_empty() {
            let at = self.runs.partition_point(|run| run.first > document);
            let run = self.runs.get(at).filter(|run| document <= run.last)?;
            let (session, seq) = run.place;
            let place = (session, Seq(seq.0 + (document - run.first)));
            return Some(Some(place).filter(|(session, _)| *session > 0));
        }
        let at = usize::try_from(document.checked_sub(self.first)?).ok()?;
        let place = self.of.get(at)?;
        Some(Some(*place).filter(|(session, _)| *session > 0))
    }
}

/// Divides documents, newest first, into runs. Numbers grow with every append, and so do the sequence
/// numbers of a session, which have no gaps: if two entries of a session are as far apart in both, all
/// documents between them are entries of that session. Returns `None` if that takes more than `most`
/// look-ups.
fn runs(
    documents: &[u64],
    most: usize,
    place_of: &mut impl FnMut(u64) -> rusqlite::Result<Option<Place>>,
) -> rusqlite::Result<Option<Vec<Run>>> {
    let mut runs = Vec::new();
    let mut lookups = 0;
    // The parts that are still to be divided, the newest on top.
    let mut parts = vec![documents];
    while let Some(part) = parts.pop() {
        let (Some(last), Some(first)) = (part.first().copied(), part.last().copied()) else {
            continue;
        };
        lookups += 2;
        if lookups > most {
            return Ok(None);
        }
        let (newest, oldest) = (place_of(last)?, place_of(first)?);
        let place = oldest.unwrap_or((0, Seq::START));
        let is_run = first == last
            || newest.zip(oldest).is_some_and(|(newest, oldest)| {
                newest.0 == oldest.0 && newest.1.0.checked_sub(oldest.1.0) == Some(last - first)
            });
        if is_run {
            runs.push(Run { first, last, place });
        } else {
            let (newer, older) = part.split_at(part.len() / 2);
            parts.extend([older, newer]);
        }
    }
    Ok(Some(runs))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Sessions that are written beside each other, with entries that are gone.
        #[test]
        fn runs_give_every_document_its_place(
            appends in proptest::collection::vec((1..4_i64, 1..40_usize), 1..20),
            gone in proptest::collection::vec(any::<prop::sample::Index>(), 0..4),
            skipped in 1..4_usize,
        ) {
            let mut all: Vec<Option<Place>> = vec![None];
            let mut next = [0_u64; 4];
            for (session, count) in appends {
                for _ in 0..count {
                    let seq = &mut next[usize::try_from(session).unwrap()];
                    *seq += 1;
                    all.push(Some((session, Seq(*seq))));
                }
            }
            for gone in gone {
                // A purged session has no places any more.
                if let Some((session, _)) = *gone.get(&all) {
                    all.iter_mut().filter(|place| place.is_some_and(|(of, _)| of == session)).for_each(|place| *place = None);
                }
            }
            let documents: Vec<u64> = (1..all.len() as u64).rev().step_by(skipped).collect();
            let mut look_up = |document: u64| Ok(all[usize::try_from(document).unwrap()]);
            let runs = runs(&documents, usize::MAX, &mut look_up).unwrap().unwrap();
            let places = Places { runs, ..Places::default() };
            for document in documents {
                let expected = all[usize::try_from(document).unwrap()];
                prop_assert_eq!(places.get(document), Some(expected), "document {}", document);
            }
        }
    }

    #[test]
    fn too_many_runs_are_not_looked_up() {
        let documents: Vec<u64> = (0..100).rev().collect();
        let alternating =
            |document: u64| Ok(Some(((document % 2 + 1).cast_signed(), Seq(document / 2))));
        assert!(
            runs(&documents, 20, &mut { alternating })
                .unwrap()
                .is_none()
        );
    }
}
