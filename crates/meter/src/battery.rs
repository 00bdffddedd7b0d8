//! Energy by the battery's own gauge.
//!
//! A gauge moves every few seconds to a minute, in steps of 10 mWh or more, and only while the machine
//! runs on it. So a reading waits until the gauge has moved, the difference is taken between two such
//! moments, and on mains there is nothing to read at all.
//!
//! A gauge of energy is read as it is. One of charge gives energy as the charge that has gone times the voltage at which it
//! went: that of both ends of each step. One of percent alone gives none.

use serde::Serialize;
use wattwise_hw::root::Root;
use wattwise_hw::states::supply::{Battery, Supply, SupplySource, supply};

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
    /// It counts neither energy nor charge.
    #[error("joules are unavailable: the gauge of {0} counts neither energy nor charge (percent at most)")]
    NoEnergy(String),
    /// Not the same batteries any more.
    #[error("a battery was taken out or put in within the window")]
    Swapped,
    /// It corrected itself.
    #[error(
        "the gauge went up while the battery discharged (it corrected itself): measure again, for longer"
    )]
    Rose,
    /// The gauge stood still.
    #[error("the gauge moved {0} times within the window; two are needed: measure for longer")]
    TooFewUpdates(u32),
}

/// One look at the gauge.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct GaugeLook {
    /// Seconds on the caller's clock.
    pub at_s: f64,
    /// What is left, Wh, all batteries together.
    pub wh: f64,
}

/// What a battery gave between two moments at which its gauge moved.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Drawn {
    /// Mean power, W.
    pub mean_w: f64,
    /// Energy, Wh.
    pub wh: f64,
    /// Time, s.
    pub seconds: f64,
}

/// Follows the gauge over a window.
#[derive(Debug, Clone, Default)]
pub struct Gauge {
    first: Option<GaugeLook>,
    /// The moments at which it moved.
    moved: Vec<GaugeLook>,
    /// What fed the machine at the first look.
    source: SupplySource,
    /// Why the window is lost.
    spoiled: Option<BatteryError>,
    batteries: Vec<Followed>,
}

/// One battery on its way down.
#[derive(Debug, Clone)]
struct Followed {
    name: String,
    left_wh: f64,
    /// Charge and voltage when it last moved, where it counts charge.
    charge: Option<(f64, f64)>,
}

impl Followed {
    /// None where it counts nothing.
    fn new(battery: &Battery) -> Option<Followed> {
        let left_wh = battery.energy_wh?;
        let nominal = |ah: f64| if ah > 0.0 { left_wh / ah } else { 0.0 };
        let charge = battery.charge_ah.map(|ah| (ah, battery.volts.unwrap_or(nominal(ah))));
        Some(Followed { name: battery.name.clone(), left_wh, charge })
    }

    fn go_on(&mut self, now: Followed) {
        match (self.charge, now.charge) {
            (Some((before_ah, _)), Some((ah, _))) if ah == before_ah => {}
            (Some((before_ah, before_v)), Some((ah, v))) => {
                self.left_wh -= (before_ah - ah) * f64::midpoint(before_v, v);
                self.charge = Some((ah, v));
            }
            _ => *self = now,
        }
    }
}

impl Gauge {
    /// Looks; call every second or so.
    pub fn look(&mut self, root: &dyn Root, at_s: f64) -> Result<GaugeLook, BatteryError> {
        self.take(&supply(root), at_s)
    }

    /// Takes what was read.
    pub fn take(&mut self, supply: &Supply, at_s: f64) -> Result<GaugeLook, BatteryError> {
        if supply.batteries.is_empty() {
            return Err(BatteryError::None);
        }
        // A battery at its limit may feed the machine or not; only discharge is energy that we can see, also beside a weak charger.
        if !supply.batteries.iter().any(Battery::discharges) && supply.source == SupplySource::Mains {
            return Err(match self.first {
                None => BatteryError::OnMains,
                Some(_) => self.spoiled.get_or_insert(BatteryError::Changed).clone(),
            });
        }
        if self.first.is_some() && supply.source != self.source {
            return Err(self.spoiled.get_or_insert(BatteryError::Changed).clone());
        }
        self.source = supply.source;
        if let Some(silent) = supply.batteries.iter().find(|b| b.discharges() && b.energy_wh.is_none()) {
            return Err(BatteryError::NoEnergy(silent.name.clone()));
        }
        let now: Vec<Followed> = supply.batteries.iter().filter_map(Followed::new).collect();
        if now.is_empty() {
            return Err(BatteryError::NoEnergy(supply.batteries[0].name.clone()));
        }
        if self.first.is_some() {
            if !self.batteries.iter().map(|b| &b.name).eq(now.iter().map(|b| &b.name)) {
                return Err(self.spoiled.get_or_insert(BatteryError::Swapped).clone());
            }
            self.batteries.iter_mut().zip(now).for_each(|(battery, now)| battery.go_on(now));
        } else {
            self.batteries = now;
        }
        let look = GaugeLook { at_s, wh: self.batteries.iter().map(|b| b.left_wh).sum() };
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

    /// What was drawn between the first and the last moment at which the gauge moved.
    pub fn result(&self) -> Result<Drawn, BatteryError> {
        if let Some(why) = &self.spoiled {
            return Err(why.clone());
        }
        let (Some(first), Some(last)) = (self.moved.first(), self.moved.last()) else {
            return Err(BatteryError::TooFewUpdates(0));
        };
        if self.moved.len() < 2 {
            return Err(BatteryError::TooFewUpdates(1));
        }
        let (wh, s) = (first.wh - last.wh, last.at_s - first.at_s);
        if wh < 0.0 {
            return Err(BatteryError::Rose);
        }
        Ok(Drawn { mean_w: wh * 3600.0 / s, wh, seconds: s })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wattwise_hw::states::supply::{Adapter, Feeds};

    fn battery(wh: f64) -> Battery {
        Battery {
            name: "BAT0".into(),
            status: "Discharging".into(),
            energy_wh: Some(wh),
            full_wh: Some(50.0),
            design_wh: Some(57.0),
            ..Battery::default()
        }
    }

    fn adapter(feeds: Feeds) -> Adapter {
        Adapter { name: "AC".into(), kind: "Mains".into(), usb_type: None, feeds, why: None }
    }

    fn supply(mains: bool, wh: f64) -> Supply {
        let battery = match mains {
            true => Battery { status: "Charging".into(), ..battery(wh) },
            false => battery(wh),
        };
        Supply::of(vec![adapter(if mains { Feeds::Machine } else { Feeds::Nothing })], vec![battery])
    }

    /// A gauge of charge whose voltage falls under way: 0.1 Ah at 12 V, then 0.1 Ah at 11 V on the mean.
    #[test]
    fn charge_is_counted_at_the_voltage_at_which_it_went() {
        let mut gauge = Gauge::default();
        for (s, ah, volts) in
            [(0.0, 4.1, 12.0), (10.0, 4.0, 12.0), (15.0, 4.0, 11.5), (20.0, 3.9, 12.0), (30.0, 3.8, 10.0)]
        {
            let b = Battery { charge_ah: Some(ah), volts: Some(volts), ..battery(ah * volts) };
            gauge.take(&Supply::of(Vec::new(), vec![b]), s).expect("discharging");
        }
        // The voltage alone has moved at 15 s: no energy has gone.
        assert_eq!(gauge.moves(), 3);
        let Drawn { wh, seconds: s, .. } = gauge.result().expect("enough");
        assert!((wh - (0.1 * 12.0 + 0.1 * 11.0)).abs() < 1e-9 && s == 20.0, "{wh} {s}");
    }

    #[test]
    fn a_gauge_without_energy_and_a_charger_beside_it() {
        let percent = Battery { energy_wh: None, capacity_percent: Some(63), ..battery(0.0) };
        let refused = Gauge::default().take(&Supply::of(Vec::new(), vec![percent.clone()]), 0.0);
        assert_eq!(refused, Err(BatteryError::NoEnergy("BAT0".into())));
        // The other of two batteries counts; the one that feeds the machine does not.
        let other = Battery { name: "BAT1".into(), status: "Full".into(), ..battery(20.0) };
        let both = Supply::of(Vec::new(), vec![other.clone(), percent]);
        assert_eq!(Gauge::default().take(&both, 0.0), Err(BatteryError::NoEnergy("BAT0".into())));
        // A charger that gives less than the machine uses, or says for ever that it is online: what the battery gives is counted.
        let beside = Supply::of(vec![adapter(Feeds::Machine)], vec![battery(40.0)]);
        let mut gauge = Gauge::default();
        assert!(gauge.take(&beside, 0.0).is_ok());
        // Plugged in on the way: the gauge says so later than the adapter.
        let mut plugged = Gauge::default();
        plugged.take(&supply(false, 40.0), 0.0).expect("discharging");
        assert_eq!(plugged.take(&beside, 1.0), Err(BatteryError::Changed));
        let swapped = Supply::of(vec![adapter(Feeds::Machine)], vec![battery(39.0), other]);
        assert_eq!(gauge.take(&swapped, 1.0), Err(BatteryError::Swapped));
        assert_eq!(gauge.result(), Err(BatteryError::Swapped));
    }

    #[test]
    fn a_gauge_of_steps_gives_the_mean_power_between_them() {
        let mut gauge = Gauge::default();
        // 18 W: 5 mWh a second, shown in steps of 50 mWh every 10 s.
        for s in 0..=125 {
            let shown = 40.0 - f64::from(s / 10) * 0.05;
            gauge.take(&supply(false, shown), f64::from(s)).expect("discharging");
        }
        let Drawn { mean_w: watts, wh, seconds: s } = gauge.result().expect("enough updates");
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
