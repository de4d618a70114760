//! Reading logs: as a whole, in parts, or backwards from the end. Entries of sealed sessions are
//! decrypted here.

use super::{Sessions, StoreResult};
use tertulia_core::entry::{Head, Message, SpeakerKind};
use tertulia_core::id::{Seq, SessionId};
use tertulia_core::session::{Line, Log, SessionMeta, Status};

/// Lines per read when reading backwards.
const STRIDE: u64 = 200;

impl Sessions {
    /// Returns the last entry before the turn that another process is running in a session: a fork
    /// that shared half of the turn would begin with an unanswered message.
    pub async fn turn_border(&self, meta: &SessionMeta) -> StoreResult<Option<Seq>> {
        if meta.status != Status::Active {
            return Ok(None);
        }
        let log = self
            .load_back(meta, |log| turn_start(log).is_some())
            .await?;
        let first = log.messages().next().map(|(entry, _)| entry.seq);
        Ok(turn_start(&log).or(first).map(|seq| seq.back(1)))
    }

    /// Reads a whole log.
    pub async fn load(&self, id: SessionId) -> StoreResult<Log> {
        let lines = self.stored().read(id, Seq::START, usize::MAX).await?;
        self.parse(id, Some(Head::START), Seq::START, &lines).await
    }

    /// Reads a whole log as it is stored, without the words of a sealed session.
    pub async fn load_stored(&self, id: SessionId) -> StoreResult<Log> {
        let lines = self.stored().read(id, Seq::START, usize::MAX).await?;
        Ok(Log::read(id, Some(Head::START), Seq::START, &lines))
    }

    /// Reads at most `count` entries of a log after `after`.
    pub async fn load_part(&self, id: SessionId, after: Seq, count: usize) -> StoreResult<Log> {
        let lines = self.stored().read(id, after, count).await?;
        let before = (after == Seq::START).then_some(Head::START);
        self.parse(id, before, after, &lines).await
    }

    async fn parse(
        &self,
        id: SessionId,
        before: Option<Head>,
        after: Seq,
        lines: &[Line],
    ) -> StoreResult<Log> {
        let log = Log::read(id, before, after, lines);
        self.sealed_store().open(id, log).await
    }

    /// Reads the next entries of a log after `after`, at most `count`, since all together may be
    /// large. `before` is the head at `after`, if that entry could be read. If sequence numbers are
    /// missing or out of order, reads all the rest instead.
    pub async fn load_next(
        &self,
        id: SessionId,
        after: Seq,
        before: Option<Head>,
        count: usize,
    ) -> StoreResult<Option<(Log, Seq)>> {
        let mut lines = self.stored().read(id, after, count).await?;
        let Some(mut last) = lines.last().map(|line| line.seq) else {
            return Ok(None);
        };
        // With sequence numbers missing or out of order, paging would never end.
        let in_order = (after.0.saturating_add(1)..)
            .zip(&lines)
            .all(|(seq, line)| line.seq.0 == seq);
        if !in_order {
            lines = self.stored().read(id, after, usize::MAX).await?;
            last = Seq(u64::MAX);
        }
        Ok(Some((self.parse(id, before, after, &lines).await?, last)))
    }

    /// Reads one entry of a log, after the entry before it.
    pub async fn load_one(&self, meta: &SessionMeta, seq: Seq) -> StoreResult<Log> {
        // The entry before it proves its hash.
        let after = seq.back(2);
        let lines = self
            .stored()
            .read(
                meta.id,
                after,
                usize::try_from(seq.0 - after.0).unwrap_or(2),
            )
            .await?;
        let before = (after == Seq::START).then_some(Head::START);
        self.parse(meta.id, before, after, &lines).await
    }

    /// Reads the end of a log backwards until `enough` returns true, without reading the rest.
    pub async fn load_back(
        &self,
        meta: &SessionMeta,
        mut enough: impl FnMut(&Log) -> bool,
    ) -> StoreResult<Log> {
        let mut log = Log::default();
        let mut upto = meta.head.seq;
        while upto > Seq::START {
            let after = upto.back(STRIDE);
            let count = usize::try_from(upto.0 - after.0).unwrap_or(usize::MAX);
            let lines = self.stored().read(meta.id, after, count).await?;
            let before = (after == Seq::START).then_some(Head::START);
            let mut earlier = self.parse(meta.id, before, after, &lines).await?;
            earlier.entries.append(&mut log.entries);
            earlier.damage.append(&mut log.damage);
            log = earlier;
            upto = after;
            if enough(&log) {
                break;
            }
        }
        Ok(log)
    }

    /// Reads the last `count` messages with the entries between them.
    pub async fn last_messages(&self, meta: &SessionMeta, count: usize) -> StoreResult<Log> {
        let mut log = self
            .load_back(meta, |log| log.messages().count() >= count)
            .await?;
        log.keep_last_messages(count);
        Ok(log)
    }
}

/// Returns the human message that began the last turn, if the log goes back beyond it.
fn turn_start(log: &Log) -> Option<Seq> {
    let is_human = |message: &Message| message.speaker.kind == SpeakerKind::Human;
    let mut start = None;
    let messages: Vec<(Seq, bool)> = log
        .messages()
        .map(|(entry, message)| (entry.seq, is_human(message)))
        .collect();
    for (seq, human) in messages.into_iter().rev() {
        match (human, start) {
            (true, _) => start = Some(seq),
            (false, Some(_)) => return start,
            (false, None) => {}
        }
    }
    None
}
