//! Operating systems, as far as policies differ by them.

/// An operating system that some policy can be applied on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum System {
    /// Linux.
    Linux,
    /// FreeBSD.
    FreeBsd,
    /// OpenBSD.
    OpenBsd,
}

impl System {
    /// All of them.
    pub const ALL: [System; 3] = [System::Linux, System::FreeBsd, System::OpenBsd];

    /// The word in machine files and on the command line.
    pub fn word(self) -> &'static str {
        match self {
            System::Linux => "linux",
            System::FreeBsd => "freebsd",
            System::OpenBsd => "openbsd",
        }
    }

    /// Its name as it writes it.
    pub fn title(self) -> &'static str {
        match self {
            System::Linux => "Linux",
            System::FreeBsd => "FreeBSD",
            System::OpenBsd => "OpenBSD",
        }
    }

    /// The system of that word.
    pub fn find(word: &str) -> Option<System> {
        System::ALL.into_iter().find(|s| s.word() == word)
    }
}
