//! Where a machine's energy comes from: its adapters, its batteries, and which of them feeds it now.
//!
//! The rule is UPower's (`src/up-daemon.c`, `src/linux/up-device-supply.c` of 1.90), with what its users reported:
//!
//! 1. An adapter that is online feeds it: mains, or a USB, wireless or unknown-brand charger. An adapter is none where it
//!    is offline, where its `scope` is a device's own, and where power flows out of the port: its `status` is
//!    `Discharging` or its Type-C port is the source (a phone is charged from it). A battery may discharge beside it: the
//!    charger gives less than the machine uses, or the gauge has not noticed it yet.
//! 2. Otherwise a battery of the machine that says `Discharging` feeds it. It does as well where the machine's mains adapter
//!    says that it is offline and some other says that it is online: ports and chargers are known that stay so for ever
//!    (TLP 283, AsahiLinux 626; UPower takes their word).
//! 3. Otherwise a battery that does not say what it does feeds it.
//! 4. Otherwise it is mains: there is no battery, or none that discharges. A desktop whose USB ports are all unused
//!    runs on mains.
//!
//! A bay whose `present` is 0 holds no battery. Files: `Documentation/ABI/testing/sysfs-class-power` and
//! `sysfs-class-typec`. Gauges count up or down, in both signs: what is shown is how much, and the status says which way.

use crate::root::Root;
use crate::rules::AttributeView;
use serde::Serialize;

const AT: &str = "sys/class/power_supply";
const TYPEC: &str = "sys/class/typec";

/// What feeds a machine.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum SupplySource {
    /// An adapter, or the wall.
    #[default]
    Mains,
    /// A battery of its own.
    Battery,
}

impl std::fmt::Display for SupplySource {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            SupplySource::Mains => "mains",
            SupplySource::Battery => "battery",
        })
    }
}

/// What an adapter does for the machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Feeds {
    /// It is online, and power flows in.
    Machine,
    /// It is offline.
    Nothing,
    /// It gives power to something else: a phone at the port, a device with a supply of its own.
    Other,
}

/// An adapter or a port that can be one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Adapter {
    /// `AC`, `ucsi-source-psy-USBC000:001`.
    pub name: String,
    /// The kernel's word: `Mains`, `USB`, `USB_PD`, `Wireless`.
    pub kind: String,
    /// What a USB port has agreed on: `C`, `PD`, `SDP`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usb_type: Option<String>,
    /// What it feeds.
    pub feeds: Feeds,
    /// Why it feeds nothing, or something else.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}

/// A battery.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Battery {
    /// `BAT0`.
    pub name: String,
    /// `Discharging`, `Charging`, `Full`, `Not charging`; `Unknown` where the gauge does not say.
    pub status: String,
    /// What is left, Wh. From charge and voltage where the battery counts charge; none where it counts neither.
    pub energy_wh: Option<f64>,
    /// What it holds when full, Wh.
    pub full_wh: Option<f64>,
    /// What it held when new, Wh.
    pub design_wh: Option<f64>,
    /// What is left, Ah, where the battery counts charge and no energy.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub charge_ah: Option<f64>,
    /// Its voltage now, V.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub volts: Option<f64>,
    /// Drawn or charged now, W, never negative: the status says which.
    pub power_w: Option<f64>,
    /// Percent.
    pub capacity_percent: Option<u32>,
    /// Files that hold what cannot be, with it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub implausible: Vec<String>,
}

/// Where the energy comes from.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Supply {
    /// What the machine runs on.
    pub source: SupplySource,
    /// Why that is known, in a sentence's part.
    pub why: String,
    /// Whether an adapter says that it feeds the machine, or there is no battery. It may run on its battery all the same:
    /// see `source`.
    pub mains: bool,
    /// Its adapters, and the ports that can be one.
    pub adapters: Vec<Adapter>,
    /// The machine's batteries (not a mouse's).
    pub batteries: Vec<Battery>,
}

impl Default for Supply {
    fn default() -> Supply {
        Supply::of(Vec::new(), Vec::new())
    }
}

impl Supply {
    /// Judges what feeds a machine with these.
    pub fn of(adapters: Vec<Adapter>, batteries: Vec<Battery>) -> Supply {
        let (source, why) = judge(&adapters, &batteries);
        let mains = batteries.is_empty() || adapters.iter().any(|a| a.feeds == Feeds::Machine);
        Supply { source, why, mains, adapters, batteries }
    }

    /// Whether the kernel lists anything at all.
    pub fn is_listed(&self) -> bool {
        !self.adapters.is_empty() || !self.batteries.is_empty()
    }
}

impl Battery {
    /// Whether it says that it feeds the machine.
    pub fn discharges(&self) -> bool {
        self.status == "Discharging"
    }
}

fn judge(adapters: &[Adapter], batteries: &[Battery]) -> (SupplySource, String) {
    let online = adapters.iter().find(|a| a.feeds == Feeds::Machine).map(|a| &a.name);
    let unplugged = adapters.iter().find(|a| a.kind == "Mains" && a.feeds == Feeds::Nothing).map(|a| &a.name);
    let discharges = batteries.iter().find(|b| b.discharges()).map(|b| &b.name);
    match (discharges, online, unplugged) {
        (Some(battery), None, _) => return (SupplySource::Battery, format!("{battery} discharges")),
        (Some(battery), Some(adapter), Some(mains)) => {
            let why = format!(
                "{battery} discharges and {mains} is offline, although {adapter} says that it is online"
            );
            return (SupplySource::Battery, why);
        }
        (Some(battery), Some(adapter), None) => {
            let why = format!(
                "{adapter} is online, although {battery} discharges (the machine uses more than it gives, or the gauge is late)"
            );
            return (SupplySource::Mains, why);
        }
        (None, Some(adapter), _) => return (SupplySource::Mains, format!("{adapter} is online")),
        (None, None, _) => {}
    }
    let silent = batteries.iter().find(|b| b.status == "Unknown");
    match (silent, batteries.first()) {
        (Some(battery), _) => (
            SupplySource::Battery,
            format!("no adapter is online, and {} does not say what it does", battery.name),
        ),
        (None, Some(battery)) => {
            (SupplySource::Mains, format!("no battery discharges ({}: {})", battery.name, battery.status))
        }
        (None, None) => (SupplySource::Mains, "the machine has no battery".to_owned()),
    }
}

/// Reads batteries and adapters.
pub fn supply(root: &dyn Root) -> Supply {
    read(&root)
}

/// The same of any view of a machine.
pub fn read(view: &dyn AttributeView) -> Supply {
    let (mut adapters, mut batteries) = (Vec::new(), Vec::new());
    for name in view.list(AT) {
        let device = Device { view, at: format!("{AT}/{name}") };
        match device.text("type").as_deref() {
            Some("Battery" | "UPS") => batteries.extend(device.battery(name)),
            Some(kind) if is_adapter(kind) => adapters.push(device.adapter(name, kind.to_owned())),
            _ => {}
        }
    }
    Supply::of(adapters, batteries)
}

/// The kernel's types that are no battery's gauge (`BMS`, `Main` and `Parallel` are parts of phones' chargers): USB has a
/// dozen, by what was agreed on.
fn is_adapter(kind: &str) -> bool {
    matches!(kind, "Mains" | "Wireless" | "BrickID") || kind.starts_with("USB")
}

/// The word in force among several: `C [PD] PD_PPS`.
fn in_force(text: &str) -> Option<&str> {
    match text.split_once('[') {
        Some((_, rest)) => rest.split(']').next(),
        None => text.split_whitespace().next().filter(|_| text.split_whitespace().count() == 1),
    }
}

/// One folder of the class.
struct Device<'v> {
    view: &'v dyn AttributeView,
    at: String,
}

impl Device<'_> {
    fn text(&self, file: &str) -> Option<String> {
        let text = self.view.text(&format!("{}/{file}", self.at)).filter(|text| !text.is_empty())?;
        Some(wattwise_figure::one_line(&text))
    }

    /// A figure in millionths.
    fn micro(&self, file: &str) -> Option<f64> {
        self.text(file)?.parse::<i64>().ok().map(|n| n as f64 / 1e6)
    }

    /// Of a peripheral, not of the machine.
    fn is_of_peripheral(&self) -> bool {
        self.text("scope").is_some_and(|scope| scope == "Device")
    }

    fn adapter(&self, name: String, kind: String) -> Adapter {
        let usb_type = self.text("usb_type").and_then(|t| in_force(&t).map(str::to_owned));
        let online = self.text("online").and_then(|o| o.parse::<i64>().ok());
        let (feeds, why) = match online {
            Some(0) => (Feeds::Nothing, Some("offline".to_owned())),
            None => (Feeds::Nothing, Some("does not say whether it is online".to_owned())),
            Some(_) => match self.feeds_other(&name) {
                Some(why) => (Feeds::Other, Some(why)),
                None => (Feeds::Machine, None),
            },
        };
        Adapter { name, kind, usb_type, feeds, why }
    }

    /// Why power flows out of it, where it does.
    fn feeds_other(&self, name: &str) -> Option<String> {
        if self.is_of_peripheral() {
            return Some("its scope is a device's, not the machine's".to_owned());
        }
        // The kernel's word for a port that gives power (drivers/usb/typec/ucsi/psy.c since 6.18).
        if self.text("status").is_some_and(|status| status == "Discharging") {
            return Some("gives power to what is plugged in (its status is Discharging)".to_owned());
        }
        let port = self.port_that_gives(name)?;
        Some(format!("gives power to what is plugged in ({port} is the source)"))
    }

    /// The Type-C port of a supply, where it is the source. A UCSI supply's name ends with its connector's number, ports
    /// are numbered from 0; of other supplies it is known only where every port is a source.
    fn port_that_gives(&self, name: &str) -> Option<String> {
        if !name.contains("psy") {
            return None;
        }
        let is_source = |port: &String| {
            let role = self.view.text(&format!("{TYPEC}/{port}/power_role"));
            role.is_some_and(|role| in_force(&role) == Some("source"))
        };
        let number = |port: &String| port.strip_prefix("port").is_some_and(|n| n.parse::<u32>().is_ok());
        let ports: Vec<String> = self.view.list(TYPEC).into_iter().filter(number).collect();
        let connector = name.strip_prefix("ucsi-source-psy-").and_then(|n| n.chars().last()?.to_digit(10));
        let own = connector.and_then(|n| n.checked_sub(1)).map(|n| format!("port{n}"));
        match own.filter(|own| ports.contains(own)) {
            Some(own) => Some(own).filter(is_source),
            None => ports.first().filter(|_| ports.iter().all(is_source)).cloned(),
        }
    }

    fn battery(&self, name: String) -> Option<Battery> {
        if self.is_of_peripheral() || self.text("present").is_some_and(|present| present == "0") {
            return None;
        }
        let mut implausible = Vec::new();
        let mut amount = |file: &str| {
            let value = self.micro(file)?;
            if value < 0.0 {
                implausible.push(format!("{file} {}", self.text(file).unwrap_or_default()));
            }
            (value >= 0.0).then_some(value)
        };
        let energy = ["energy_now", "energy_full", "energy_full_design"].map(&mut amount);
        let charge = ["charge_now", "charge_full", "charge_full_design"].map(&mut amount);
        // Drivers that do not know the voltage that it is made for say 0.
        let volts = |file: &str| self.micro(file).filter(|v| *v > 0.0);
        let now = volts("voltage_now");
        let nominal = volts("voltage_min_design").or(now).or_else(|| volts("voltage_max_design"));
        let wh = |at: usize| energy[at].or_else(|| charge[at].zip(nominal).map(|(ah, v)| ah * v));
        let power_w = self.power_w(now, &mut implausible);
        Some(Battery {
            status: self.text("status").unwrap_or_else(|| "Unknown".to_owned()),
            energy_wh: wh(0),
            full_wh: wh(1),
            design_wh: wh(2),
            charge_ah: charge[0].filter(|_| energy[0].is_none()),
            volts: now,
            power_w,
            capacity_percent: self.percent(energy, charge, &mut implausible),
            implausible,
            name,
        })
    }

    /// The flow's size: gauges of some makers count what is drawn as negative, those of others what is charged.
    fn power_w(&self, volts: Option<f64>, implausible: &mut Vec<String>) -> Option<f64> {
        /// No battery of a laptop gives or takes more (UPower has the same bound).
        const MOST_W: f64 = 300.0;
        let mut plausible = |watts: f64, file: &str| {
            if watts.abs() > MOST_W {
                implausible.push(format!("{file} {}", self.text(file).unwrap_or_default()));
            }
            Some(watts.abs()).filter(|w| *w <= MOST_W)
        };
        let power = self.micro("power_now").and_then(|w| plausible(w, "power_now"));
        // Some gauges leave power at 0 and tell the current alone.
        match power.filter(|w| *w > 0.0) {
            Some(w) => Some(w),
            None => {
                let of_current = self.micro("current_now").zip(volts).map(|(a, v)| a * v);
                of_current.and_then(|w| plausible(w, "current_now")).or(power)
            }
        }
    }

    /// As the gauge says, else what is left of what it holds.
    fn percent(
        &self,
        energy: [Option<f64>; 3],
        charge: [Option<f64>; 3],
        implausible: &mut Vec<String>,
    ) -> Option<u32> {
        let told = self.text("capacity");
        let plausible = told.as_deref().and_then(|t| t.parse::<u32>().ok()).filter(|p| *p <= 100);
        if let (Some(told), None) = (&told, plausible) {
            implausible.push(format!("capacity {told}"));
        }
        let share = |of: [Option<f64>; 3]| of[0].zip(of[1]).filter(|(_, full)| *full > 0.0);
        let (left, full) = match plausible {
            Some(percent) => return Some(percent),
            None => share(energy).or_else(|| share(charge))?,
        };
        Some((left / full * 100.0).round().min(100.0) as u32)
    }
}

#[cfg(test)]
#[path = "supply_tests.rs"]
mod tests;
