//! Values that rest: they are as they were, and will be wanted again soon.
//!
//! A proof has a profile come and go every minute, for weeks. What goes back stays among the items of the journal, so that it does not
//! grow. But while it rests it is nobody's: what a user sets then is the user's, also where the daemon is killed in that minute. So the
//! journal says which items rest, in its last lines, and these are cut off before the first of them is written again.

use super::{StandingChanges, TransactionError};
use crate::set::transaction::Change;
use std::io;

impl StandingChanges<'_> {
    /// Whether wishes come and go every minute: what goes back to what it was then rests.
    pub fn come_and_go(&mut self, do_they: bool) {
        self.come_and_go = do_they;
    }

    /// Before anything that rests is written again: a kill from here on has it put back.
    pub(super) fn wake(&mut self, changes: &[Change]) -> Result<(), TransactionError> {
        let rests = |change: &Change| self.at.get(&change.target).is_some_and(|at| self.kept[*at].rests);
        if !changes.iter().any(rests) {
            return Ok(());
        }
        self.none_rests().map_err(|error| TransactionError::Journal { path: self.folder.clone(), error })
    }

    /// The journal says of no item any more that it rests.
    fn none_rests(&mut self) -> io::Result<()> {
        let Some(journal) = &mut self.journal else { return Ok(()) };
        if !journal.wake()? {
            // Other lines have followed: there these items are let go for good, and are journalled anew once they are wanted.
            for kept in self.kept.iter_mut().filter(|k| self.resting.contains(&k.journalled)) {
                (kept.rests, kept.let_go) = (false, true);
            }
        }
        self.resting.clear();
        (self.unsynced, self.unnoted) = (true, true);
        Ok(())
    }

    fn resting(&self) -> Vec<usize> {
        self.kept.iter().filter(|k| k.rests && !k.let_go).map(|k| k.journalled).collect()
    }

    /// Has the journal say what rests now.
    pub(super) fn rest(&mut self) {
        // Where it cannot be said, all counts as ours until the next time: no original is lost.
        if self.resting() == self.resting || self.none_rests().is_err() {
            return;
        }
        let resting = self.resting();
        if let Some(journal) = &mut self.journal
            && !resting.is_empty()
            && journal.rest(&resting).is_ok()
        {
            self.resting = resting;
        }
    }
}
