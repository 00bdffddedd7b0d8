//! Words on standard error.

/// One line, with the library's name before it.
pub(crate) fn say(parts: &[&[u8]]) {
    for part in [&[&b"libwattwise_pthread: "[..]], parts, &[&b"\n"[..]]].concat() {
        // SAFETY: the slice is valid.
        unsafe { libc::write(2, part.as_ptr().cast(), part.len()) };
    }
}

/// Ends the program: bad input.
pub(crate) fn fail(parts: &[&[u8]]) -> ! {
    say(parts);
    // SAFETY: ends the process without running handlers, which could lock.
    unsafe { libc::_exit(2) }
}
