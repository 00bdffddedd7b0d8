//! What `info` says of energy, sensors and where the power comes from.

use super::{line, missing};
use wattwise_figure::units::{show_ns, show_uw, trim};
use wattwise_hw::info::Info;
use wattwise_hw::states::power::{Limit, Zone};
use wattwise_hw::states::supply::{Adapter, Battery, Feeds, Supply, SupplySource};

pub(super) fn energy(info: &Info) -> String {
    let Some(zones) = &info.energy.value else { return missing(&info.energy) };
    let mut out = String::new();
    for zone in zones {
        let twins: Vec<&Zone> = zones.iter().filter(|z| z.name == zone.name).collect();
        show_zone(&mut out, zone, &twins, 0);
    }
    out
}

/// A zone, those inside it, and its limits beside those of the same zone's other doors.
fn show_zone(out: &mut String, zone: &Zone, twins: &[&Zone], depth: usize) {
    let energy = match zone.energy_uj.value {
        Some(uj) => format!("{} J counted", trim(uj as f64 / 1e6, 3)),
        None => format!("energy unavailable: {}", zone.energy_uj.why_not()),
    };
    let wraps = match zone.max_energy_uj {
        Some(m) => format!(", wraps at {} J", trim(m as f64 / 1e6, 0)),
        None => ", where it wraps is not told".to_owned(),
    };
    let enabled = if zone.enabled == Some(false) { "; disabled: its limits do not hold" } else { "" };
    let door = if twins.len() > 1 { format!(" ({})", zone.door) } else { String::new() };
    line(out, &format!("{}{}{door}", "  ".repeat(depth), zone.name), format!("{energy}{wraps}{enabled}"));
    for limit in &zone.limits {
        let text = format!("{}{}: {}", "  ".repeat(depth), limit.name, limit_line(zone, limit, twins));
        line(out, "", text);
    }
    for inside in &zone.inside {
        show_zone(out, inside, &[inside], depth + 1);
    }
}

fn limit_line(zone: &Zone, limit: &Limit, twins: &[&Zone]) -> String {
    let set = limit.power_uw.filter(|uw| *uw > 0);
    let window = limit.window_us.filter(|us| *us > 0);
    let window = window.map(|us| format!(" over {}", show_ns(us * 1000))).unwrap_or_default();
    let most =
        limit.most_uw.filter(|m| *m > 0).map(|m| format!(" (up to {})", show_uw(m))).unwrap_or_default();
    let power = match set {
        Some(uw) => format!("at most {}{window}{most}", show_uw(uw)),
        None => format!("not set{most}"),
    };
    if zone.enabled == Some(false) {
        return format!("off, {power}");
    }
    // Only where the same limit is set at another door, too, is it a question which holds.
    let others: Vec<&&Zone> = twins.iter().filter(|z| z.path != zone.path).collect();
    let holder = others.iter().find(|z| z.limit(Some(&limit.name)).is_some_and(|l| l.in_force));
    match (set.is_some() && limit.in_force, holder) {
        (true, _) if others.iter().any(|z| z.holds_uw(&limit.name).is_some()) => {
            format!("{power}: in force, the lowest")
        }
        (false, Some(other)) => format!("{power}: the lower one of {} is in force", other.door),
        _ => power,
    }
}

pub(super) fn thermal(info: &Info) -> String {
    let mut out = String::new();
    for t in &info.sensors.temperatures {
        line(&mut out, &t.name, format!("{} C", trim(t.celsius, 1)));
    }
    for p in &info.sensors.power {
        let average = match (p.average, p.interval_s) {
            (false, _) => String::new(),
            (true, Some(s)) => format!(" on average over {}", show_ns((s * 1e9) as u64)),
            (true, None) => " on average (over how long is not told)".to_owned(),
        };
        let watts = p.watts.map(|w| format!("{} W{average}", trim(w, 3)));
        let joules = p.joules.map(|j| format!("{} J counted", trim(j, 3)));
        line(&mut out, &p.name, watts.or(joules).unwrap_or_default());
    }
    for (name, rpm) in &info.sensors.fans {
        line(&mut out, name, format!("{rpm} rpm"));
    }
    for s in &info.sensors.set_aside {
        line(&mut out, &s.name, &s.why);
    }
    if out.is_empty() {
        out = "  not available by sysfs: no thermal zone and no hwmon sensor is listed (a virtual machine has none)\n".into();
    }
    out
}

pub(super) fn supply(info: &Info) -> String {
    let supply = &info.supply;
    let mut out = String::new();
    if !supply.is_listed() {
        return "  not available by sysfs: neither battery nor adapter is listed; such a machine runs on mains\n".into();
    }
    line(&mut out, "runs on", format!("{}: {}", supply.source, supply.why));
    line(&mut out, "mains", mains(supply));
    for adapter in supply.adapters.iter().filter(|a| a.feeds != Feeds::Machine) {
        let why = adapter.why.as_deref().unwrap_or_default();
        line(&mut out, &adapter.name, format!("{}, {why}: no source", kind(adapter)));
    }
    for b in &supply.batteries {
        line(&mut out, &b.name, battery(b));
    }
    out
}

/// What an adapter calls itself.
fn kind(adapter: &Adapter) -> String {
    let agreed = adapter.usb_type.as_ref().map(|t| format!(" ({t})")).unwrap_or_default();
    format!("{}{agreed}", adapter.kind)
}

fn mains(supply: &Supply) -> String {
    let feeding = supply.adapters.iter().filter(|a| a.feeds == Feeds::Machine);
    let feeding: Vec<String> = feeding.map(|a| format!("{}, {}", a.name, kind(a))).collect();
    match (supply.source, feeding.is_empty()) {
        (SupplySource::Battery, false) => {
            format!("says connected ({}), yet the machine runs on its battery", feeding.join("; "))
        }
        (_, false) => format!("connected ({})", feeding.join("; ")),
        (_, true) if supply.mains => "connected (a machine without a battery has no other source)".to_owned(),
        (SupplySource::Mains, true) => "no adapter says so, and no battery discharges".to_owned(),
        (SupplySource::Battery, true) => "not connected".to_owned(),
    }
}

fn battery(b: &Battery) -> String {
    let wh = |v: Option<f64>| v.map(|v| format!("{} Wh", trim(v, 2)));
    let mut facts: Vec<String> = b.capacity_percent.map(|p| format!("{p} %")).into_iter().collect();
    let new = wh(b.design_wh).map(|w| format!(" (new {w})")).unwrap_or_default();
    facts.push(match (wh(b.energy_wh), wh(b.full_wh)) {
        (Some(left), Some(full)) => format!("{left} of {full}{new}"),
        (Some(left), None) => format!("{left}{new}"),
        (None, full) => {
            let holds = full.map(|f| format!("; holds {f}{new}")).unwrap_or(new);
            format!("joules unavailable: its gauge counts neither energy nor charge{holds}")
        }
    });
    facts.extend(b.power_w.map(|w| format!("{} W", trim(w, 2))));
    facts.extend(b.implausible.iter().map(|what| format!("implausible: {what}")));
    format!("{}: {}", b.status, facts.join(", "))
}
