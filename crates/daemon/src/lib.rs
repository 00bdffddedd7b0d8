//! Profiles in force all day: what `wattwised` does.
//!
//! ```text
//! config    profiles and options: TOML, errors with line and column; what is built in
//! profile   what a profile wants, and under which conditions
//! brain     which profile is in force and what it wants now: pure, no clock and no file
//! facts     what the conditions are about, read from a machine
//! actuator  what is wanted, as this machine's settings; who has no authority, and why
//! live      a speed policy that is followed on the machine; witness: a recording of it
//! engine    all of it, over any root and any clock: the emulator drives it in virtual time
//! state     what is remembered over boots     proving  what the profile saves, by random turns
//! protocol  what the socket speaks; client: who speaks it
//! server    the socket     uevent  the kernel's events     metrics  what Prometheus reads; scrape: who asks
//! sources   all that can wake the daemon     copy  a machine on which is tried what would be done
//! ppd       power-profiles-daemon's D-Bus interface (feature `dbus`)
//! run       the loop of the real daemon; asks: how other threads reach it; systemd: what systemd is told
//! ```
//!
//! [`brain`] decides and [`engine`] acts; neither reads a clock. No work is simulated here; the models that are linked are the emulator's, for `--root emulated:` and `--dry-run`.

pub mod actuator;
pub mod asks;
pub mod brain;
mod bus;
pub mod client;
pub mod config;
mod copy;
pub mod engine;
pub mod facts;
pub mod input;
pub mod live;
pub mod metrics;
pub mod places;
#[cfg(feature = "dbus")]
pub mod ppd;
pub mod profile;
pub mod protocol;
pub mod proving;
pub mod run;
mod scrape;
mod server;
mod sources;
pub mod state;
mod systemd;
mod uevent;
mod witness;
