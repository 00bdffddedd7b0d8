//! Recordings of the scheduler: import, record, summarise.
