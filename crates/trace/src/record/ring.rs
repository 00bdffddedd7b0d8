//! A perf ring: the kernel writes at the head, we read up to it and say so in the tail.
//!
//! Head and tail only grow; the place in the ring is their remainder. The kernel publishes data before
//! the head (we read it with acquire) and reuses space once the tail says that it may (we write it with
//! release, after the last read).

use perf_event_open_sys::bindings::perf_event_mmap_page;
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};
use std::io;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};

/// The one or two stretches of a ring of `size` bytes (a power of two) from `tail` to `head`.
pub(super) fn stretches(head: u64, tail: u64, size: usize) -> [std::ops::Range<usize>; 2] {
    let (mask, length) = (size as u64 - 1, head.wrapping_sub(tail).min(size as u64) as usize);
    let from = (tail & mask) as usize;
    let first = length.min(size - from);
    [from..from + first, 0..length - first]
}

/// One CPU's ring.
pub(super) struct Ring {
    fd: OwnedFd,
    base: NonNull<u8>,
    page: usize,
    size: usize,
}

impl Ring {
    /// Maps a ring of `size` bytes, a power of two.
    pub(super) fn map(fd: &OwnedFd, size: usize) -> io::Result<Ring> {
        let page = rustix::param::page_size();
        let fd = fd.try_clone()?;
        // SAFETY: a fresh mapping at an address of the kernel's choice overlaps nothing of ours.
        let base = unsafe {
            mmap(
                std::ptr::null_mut(),
                page + size,
                ProtFlags::READ | ProtFlags::WRITE,
                MapFlags::SHARED,
                fd.as_fd(),
                0,
            )?
        };
        let base = NonNull::new(base.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Ring { fd, base, page, size })
    }

    pub(super) fn fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }

    fn control(&self, offset: usize) -> &AtomicU64 {
        // SAFETY: the first page of the mapping is a perf_event_mmap_page, which lives as long as
        // `self`; head and tail are aligned u64 that kernel and user access atomically.
        unsafe { &*self.base.as_ptr().add(offset).cast::<AtomicU64>() }
    }

    /// Hands what is new to `take`, one or two stretches, and frees the space when that succeeded.
    pub(super) fn read(&mut self, mut take: impl FnMut(&[u8]) -> io::Result<()>) -> io::Result<()> {
        let head =
            self.control(std::mem::offset_of!(perf_event_mmap_page, data_head)).load(Ordering::Acquire);
        let tail_at = std::mem::offset_of!(perf_event_mmap_page, data_tail);
        let tail = self.control(tail_at).load(Ordering::Relaxed);
        for range in stretches(head, tail, self.size) {
            if !range.is_empty() {
                // SAFETY: the range lies within the ring's data area. The kernel writes only beyond
                // `head` until the tail moves past these bytes, which happens below.
                let data = unsafe {
                    std::slice::from_raw_parts(self.base.as_ptr().add(self.page + range.start), range.len())
                };
                take(data)?;
            }
        }
        self.control(tail_at).store(head, Ordering::Release);
        Ok(())
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours, of this length, and nothing refers to it any longer.
        _ = unsafe { munmap(self.base.as_ptr().cast(), self.page + self.size) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stretches_cover_what_is_new_in_order() {
        assert_eq!(stretches(10, 4, 16), [4..10, 0..0]);
        assert_eq!(stretches(20, 12, 16), [12..16, 0..4]);
        assert_eq!(stretches(32, 16, 16), [0..16, 0..0]);
        assert_eq!(stretches(7, 7, 16), [7..7, 0..0]);
        // Every byte once, in order, over many sizes and positions, near the end of the numbers too.
        for tail in [0u64, 5, 15, 16, 1000, u64::MAX - 3] {
            for length in 0..=16u64 {
                let head = tail.wrapping_add(length);
                let seen: Vec<u64> =
                    stretches(head, tail, 16).into_iter().flatten().map(|i| i as u64).collect();
                let want: Vec<u64> = (0..length).map(|i| tail.wrapping_add(i) & 15).collect();
                assert_eq!(seen, want, "{tail} {length}");
            }
        }
    }
}
