//! Words on standard error. Nothing here allocates: the program's `malloc` may be what is waiting for a lock of ours.

/// One line, with the library's name before it.
pub(crate) fn say(parts: &[&[u8]]) {
    write(b"libwattwise_pthread: ");
    for part in parts {
        write(part);
    }
    write(b"\n");
}

fn write(part: &[u8]) {
    // SAFETY: the slice is valid.
    unsafe { libc::write(2, part.as_ptr().cast(), part.len()) };
}

/// A number's digits.
pub(crate) fn decimal(mut number: u64, into: &mut [u8; 20]) -> &[u8] {
    let mut at = into.len();
    loop {
        at -= 1;
        into[at] = b'0' + (number % 10) as u8;
        number /= 10;
        if number == 0 {
            return &into[at..];
        }
    }
}

/// Ends the program: bad input.
pub(crate) fn fail(parts: &[&[u8]]) -> ! {
    end(2, parts)
}

/// Ends the program: what it asks for cannot be done here.
pub(crate) fn impossible(parts: &[&[u8]]) -> ! {
    end(3, parts)
}

fn end(code: i32, parts: &[&[u8]]) -> ! {
    say(parts);
    // SAFETY: ends the process without running handlers, which could lock.
    unsafe { libc::_exit(code) }
}
