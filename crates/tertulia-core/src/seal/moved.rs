//! Sealed entries at another place of their branch.

use std::collections::BTreeMap;

use super::{Place, SealError, SessionKeys};
use crate::entry::{Body, Entry, Head, Numbering, Sealed};

impl SessionKeys {
    /// Returns a sealed entry that refers to no other one at another place of its branch, the next after
    /// `parent`.
    pub(crate) fn moved(
        &self,
        entry: &Entry,
        sealed: &Sealed,
        parent: &Head,
    ) -> Result<Entry, SealError> {
        let visible = Sealed {
            data: String::new(),
            ..sealed.clone()
        };
        let before = Place::of(entry, &Numbering::default());
        let shown = self.shown(&before, &visible)?;
        // Another key may have been in force where it was written.
        let words = self.decrypt(&shown, &sealed.data)?;
        let place = Place {
            seq: parent.seq.next(),
            ..before
        };
        let shown = self.shown(&place, &visible)?;
        let data = self.at(place.seq).encrypt(&shown, &words)?;
        let body = Body::Sealed(Sealed { data, ..visible });
        Ok(entry.clone().with_body(parent, body, BTreeMap::new())?)
    }
}
