//! Cost of a session that is resumed.

use tertulia_core::id::{Seq, SessionId};

use super::StoreService;
use super::reading::Reader;
use crate::bill::Bill;
use crate::error::TuiResult;

/// Entries read at a time, so that other requests can access the store in between.
const STRIDE: u64 = 500;

impl StoreService {
    /// Counts the cost of a session up to an entry, without ever holding all of it in memory.
    pub(super) async fn bill(&self, session: SessionId, upto: Seq) -> TuiResult<Bill> {
        let row = self.row(session).await?;
        let reader = Reader::of(self.workspace(), &row);
        let prices = &self.workspace().prices;
        let end = reader.head.min(upto);
        let (mut bill, mut at) = (Bill::default(), Seq::START);
        while at < end {
            let next = Seq(at.0 + STRIDE).min(end);
            let log = reader.read(at, next).await?;
            let entries = log.entries.iter();
            entries.for_each(|entry| bill.count(entry, prices));
            at = next;
        }
        Ok(bill)
    }
}
