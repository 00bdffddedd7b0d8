//! Energy by the battery's own gauge.
//!
//! A gauge moves every few seconds to a minute, in steps of 10 mWh or more, and only while the machine
//! runs on it. So a reading waits until the gauge has moved, the difference is taken between two such
//! moments, and on mains there is nothing to read at all.

use serde::Serialize;
use wattwise_hw::root::Root;
use wattwise_hw::states::power::{Supply, supply};

/// Why the battery says nothing about a window.
#[derive(Debug, Clone, PartialEq, thiserror::Error, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum BatteryError {
    /// None is there.
    #[error("no battery is listed")]
    None,
    /// It is not what feeds the machine.
    #[error("the machine runs on mains: unplug it, then measure")]
    OnMains,
    /// It was charged or plugged in on the way.
    #[error("mains came on within the window")]
    Changed,
    /// The gauge stood still.
    #[error("the gauge moved {0} times within the window; two are needed: measure for longer")]
    TooFewUpdates(u32),
}

/// One look at the gauge.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Look {
    /// Seconds on the caller's clock.
    pub at_s: f64,
    /// What is left, Wh, all batteries together.
    pub wh: f64,
}

/// Follows the gauge over a window.
#[derive(Debug, Clone, Default)]
pub struct Gauge {
    first: Option<Look>,
    /// The moments at which it moved.
    moved: Vec<Look>,
    changed: bool,
}

impl Gauge {
    /// Looks; call every second or so.
    pub fn look(&mut self, root: &dyn Root, at_s: f64) -> Result<Look, BatteryError> {
        self.take(&supply(root), at_s)
    }

    /// Takes what was read.
    pub fn take(&mut self, supply: &Supply, at_s: f64) -> Result<Look, BatteryError> {
        if supply.batteries.is_empty() {
            return Err(BatteryError::None);
        }
        // A battery at its limit may feed the machine or not; only discharge is energy that we can see.
        let discharging = supply.batteries.iter().any(|b| b.status == "Discharging");
        if supply.mains == Some(true) || !discharging {
            self.changed |= self.first.is_some();
            return Err(if self.first.is_some() { BatteryError::Changed } else { BatteryError::OnMains });
        }
        let wh = supply.batteries.iter().filter_map(|b| b.energy_wh).sum();
        let look = Look { at_s, wh };
        match self.first {
            None => self.first = Some(look),
            Some(first) => {
                let last = self.moved.last().copied().unwrap_or(first);
                if look.wh != last.wh {
                    self.moved.push(look);
                }
            }
        }
        Ok(look)
    }

    /// How often it has moved so far.
    pub fn moves(&self) -> usize {
        self.moved.len()
    }

    /// Mean power between the first and the last moment at which the gauge moved, W, and the energy and
    /// seconds between them.
    pub fn result(&self) -> Result<(f64, f64, f64), BatteryError> {
        if self.changed {
            return Err(BatteryError::Changed);
        }
        let (Some(first), Some(last)) = (self.moved.first(), self.moved.last()) else {
            return Err(BatteryError::TooFewUpdates(0));
        };
        if self.moved.len() < 2 {
            return Err(BatteryError::TooFewUpdates(1));
        }
        let (wh, s) = (first.wh - last.wh, last.at_s - first.at_s);
        Ok((wh * 3600.0 / s, wh, s))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wattwise_hw::states::power::Battery;

    fn supply(mains: bool, wh: f64) -> Supply {
        let status = if mains { "Charging" } else { "Discharging" };
        Supply {
            mains: Some(mains),
            batteries: vec![Battery {
                name: "BAT0".into(),
                status: status.into(),
                energy_wh: Some(wh),
                full_wh: Some(50.0),
                design_wh: Some(57.0),
                power_w: None,
                capacity_percent: None,
            }],
        }
    }

    #[test]
    fn a_gauge_of_steps_gives_the_mean_power_between_them() {
        let mut gauge = Gauge::default();
        // 18 W: 5 mWh a second, shown in steps of 50 mWh every 10 s.
        for s in 0..=125 {
            let shown = 40.0 - f64::from(s / 10) * 0.05;
            gauge.take(&supply(false, shown), f64::from(s)).expect("discharging");
        }
        let (watts, wh, s) = gauge.result().expect("enough updates");
        assert!(
            (watts - 18.0).abs() < 1e-6 && (s - 110.0).abs() < 1e-9 && (wh - 0.55).abs() < 1e-9,
            "{watts} {wh} {s}"
        );
    }

    #[test]
    fn mains_and_a_gauge_that_stands_still_are_refused() {
        assert_eq!(Gauge::default().take(&supply(true, 40.0), 0.0), Err(BatteryError::OnMains));
        let mut gauge = Gauge::default();
        gauge.take(&supply(false, 40.0), 0.0).expect("discharging");
        gauge.take(&supply(false, 39.9), 5.0).expect("discharging");
        assert_eq!((gauge.moves(), gauge.result()), (1, Err(BatteryError::TooFewUpdates(1))));
        assert_eq!(gauge.take(&supply(true, 39.8), 9.0), Err(BatteryError::Changed));
        assert_eq!(gauge.result(), Err(BatteryError::Changed));
    }
}
