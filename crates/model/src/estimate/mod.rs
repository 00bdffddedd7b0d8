//! Figures that nobody measured on this machine, from what others measured on theirs.
//!
//! | module | from | to |
//! |---|---|---|
//! | [`server`] | what a system says of itself: chips, cores, threads, MHz, memory, year, processor | watts at eleven loads |
//! | [`cluster`] | speed and power of a cluster at its two ends | both at every level, and the level of least energy |
//! | [`sheet`] | a data sheet: cores, clocks, design power | a whole machine file whose watts are drawn |
//!
//! Each fit is a ridge regression ([`wattwise_figure::ridge`]) with an interval that holds nine of ten systems of a kind that the fit
//! has not seen: its width comes from leaving whole kinds out. The data are in `machines/data`, with their terms;
//! `cargo xtask machines` makes the fits and the measured machines anew.

pub mod cluster;
pub mod design_power;
pub mod processor;
pub mod server;
pub mod sheet;
pub mod table;

/// What both data sets are, as the repository has them.
pub mod data {
    /// SPECpower_ssj2008 results (`machines/data/README.md`).
    pub const SPECPOWER: &str = include_str!("../../../../machines/data/specpower.csv");
    /// freqbench results (`machines/data/README.md`).
    pub const FREQBENCH: &str = include_str!("../../../../machines/data/freqbench.csv");
}

/// A power that is estimated.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Watts {
    /// As likely too high as too low, in watts.
    pub median: f64,
    /// 5 of 100 have less.
    pub low: f64,
    /// 5 of 100 have more.
    pub high: f64,
}

impl Watts {
    /// Around a logarithm, by a half width in logarithms.
    fn around(ln: f64, half: f64) -> Watts {
        Watts { median: ln.exp(), low: (ln - half).exp(), high: (ln + half).exp() }
    }

    /// Whether the interval has a value.
    pub fn holds(&self, watts: f64) -> bool {
        (self.low..=self.high).contains(&watts)
    }
}
