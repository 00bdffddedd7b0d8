//! What every lock offers.

#[cfg(feature = "std")]
use crate::primitive::Deadline;

/// What an acquisition leaves for its release: nothing, or the place in a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "the release needs it"]
pub struct Token(pub(crate) usize);

impl Token {
    pub(crate) const NONE: Token = Token(0);

    /// As a number, for places that hold no Rust types.
    pub fn into_raw(self) -> usize {
        self.0
    }

    /// Back from [`into_raw`](Self::into_raw).
    ///
    /// # Safety
    /// `raw` must come from the acquisition that is now to be released.
    pub unsafe fn from_raw(raw: usize) -> Token {
        Token(raw)
    }
}

/// Whether a lock can be taken without its functions while nobody else wants it.
///
/// By a word: a compare-and-swap of its first word from 0 to 1 acquires it, with the token 1, and one from 1 to 0
/// releases it, with the orders of any lock. Whichever fails tells nothing: then the functions are asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Quick {
    /// No.
    Never = 0,
    /// By a word of 32 bits.
    Word32 = 4,
    /// By a word of 64 bits.
    Word64 = 8,
    /// By the two functions of [`Ticket`](crate::Ticket) for that, whatever its policy.
    Numbers = 2,
}

impl Quick {
    /// By a word as wide as a pointer.
    pub(crate) const POINTER: Quick = if size_of::<usize>() == 8 { Quick::Word64 } else { Quick::Word32 };
}

/// A lock without data.
///
/// # Safety
/// An implementation excludes: between the return of [`lock`](Self::lock) (or a try that gave a token) and the
/// call of [`unlock`](Self::unlock) with that token, no other call gives one. Acquiring synchronises with the
/// release before it. All bits zero is an unlocked lock, and releasing touches no memory of the lock after
/// another thread could have acquired it (waking a sleeper by its address is no touch), so that whoever
/// acquires last may free it.
pub unsafe trait RawLock: Send + Sync + Default {
    /// Its name in `lock:policy`.
    const NAME: &'static str;

    /// Whether threads acquire in the order in which they came.
    const FIFO: bool;

    /// Whether it can be taken without the functions below.
    const QUICK: Quick = Quick::Never;

    /// An unlocked lock.
    // Each use is meant to be a lock of its own.
    #[cfg(not(loom))]
    #[allow(clippy::declare_interior_mutable_const)]
    const INIT: Self;

    /// Acquires, however long it takes.
    fn lock(&self) -> Token;

    /// Acquires if that needs no waiting.
    fn try_lock(&self) -> Option<Token>;

    /// Releases.
    ///
    /// # Safety
    /// `token` comes from an acquisition of this very lock that has not been released.
    unsafe fn unlock(&self, token: Token);

    /// Whether someone holds it, at some moment during the call.
    fn is_locked(&self) -> bool;

    /// Acquires, or gives up at the deadline.
    ///
    /// A place in a queue cannot be left without help from the neighbours, so a queue lock asks again and
    /// again without queueing: fair to others, not to this thread. Locks of one word sleep until the deadline.
    #[cfg(feature = "std")]
    fn lock_until(&self, deadline: Deadline) -> Option<Token> {
        /// Between two tries, in ns: from about a hand-over to a hundredth of what a person notices.
        const FIRST_NAP: u64 = 2_000;
        const LONGEST_NAP: u64 = 1_000_000;
        /// A holder that comes back at once leaves the lock free for nanoseconds: a look between naps meets that once
        /// in a thousand times. Not in models, where a moment is as good as another.
        const WATCH_US: u64 = if cfg!(loom) { 0 } else { 50 };
        let mut nap = FIRST_NAP;
        let mut watch = 0;
        loop {
            let since = crate::tsc::now();
            loop {
                // Looking first leaves the line with its holder.
                if !self.is_locked()
                    && let Some(token) = self.try_lock()
                {
                    return Some(token);
                }
                if crate::tsc::now().wrapping_sub(since) >= watch {
                    break;
                }
                crate::primitive::relax();
            }
            let left = deadline.left_ns()?;
            crate::primitive::nap(nap.min(left));
            nap = (nap * 2).min(LONGEST_NAP);
            watch = WATCH_US * crate::tsc::per_us();
        }
    }

    /// Forgets all who wait: in the child of a fork they do not exist. `held` is the token of the acquisition
    /// that the forking thread brought along, if the lock is held.
    ///
    /// # Safety
    /// No other thread of this process uses the lock meanwhile, and nobody waits for it here.
    unsafe fn forget_waiters(&self, held: Option<Token>);
}
