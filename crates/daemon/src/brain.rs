//! Which profile is in force, and what it wants now. Events in, a decision out: no clock, no file, no thread.
//!
//! 1. **Paused** by a measurement of wattwise's own (`run`, `ab`, `calibrate`): nothing is wanted, the machine is as it was.
//! 2. **Held** by clients: as power-profiles-daemon has it, a hold on power-saver goes before one on performance; of others the
//!    latest counts. A hold ends with its client. Whoever chooses a profile ends all holds.
//! 3. Else the **chosen** profile: the last that anybody chose, over boots; the configuration's default where none was.
//!
//! Of that profile the base is wanted, and over it each case whose conditions hold, in the file's order. What has begun to
//! hold ends a little later than it began, so that a value at the limit does not switch to and fro: charge by 3 percent, heat by
//! 5 degrees, load by a tenth. Conditions of which nothing is known do not hold.

use crate::config::Config;
use crate::facts::Facts;
use crate::profile::{Condition, Ppd, Profile, Turn, Wish};
use std::collections::BTreeMap;
use wattwise_hw::states::supply::SupplySource;

/// Percent of charge by which a condition that holds goes on.
const CHARGE_SLACK: u32 = 3;
/// The same of heat, in degrees.
const HEAT_SLACK_C: f64 = 5.0;
/// The same of load.
const LOAD_SLACK: f64 = 0.1;

/// Who holds something: a connection's number, or a name on a bus.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Client {
    /// A connection of the socket.
    Socket(u64),
    /// A unique name of the bus.
    Bus(String),
}

/// A profile held for a client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProfileHold {
    /// Its number.
    pub cookie: u32,
    /// The profile.
    pub profile: String,
    /// Why, as the client says.
    pub reason: String,
    /// What the client calls itself.
    pub application: String,
    /// Whose.
    pub client: Client,
}

/// What can happen to a brain.
#[derive(Debug, Clone)]
pub enum BrainEvent {
    /// The machine was looked at.
    Facts(Facts),
    /// Somebody chose a profile.
    Choose(String),
    /// A client holds a profile.
    Hold(ProfileHold),
    /// A hold ends.
    Release(u32),
    /// A client has gone, and with it its holds and pauses.
    Gone(Client),
    /// A measurement wants the machine as it was.
    Pause(Client, String),
    /// Another configuration.
    Config(Box<Config>),
    /// Somebody's turn for a while, or nobody's any more.
    Turn(Option<Turn>),
    /// Whether the battery counts; where it does not, the machine is taken to be on mains.
    BatteryAware(bool),
}

/// What is in force and wanted now.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Decision {
    /// The profile in force.
    pub profile: String,
    /// Its word for desktops.
    pub ppd: Ppd,
    /// Why, in a sentence's part: `chosen; on battery`.
    pub why: String,
    /// What it wants.
    pub wish: Wish,
    /// Nothing is wanted, for a measurement.
    pub paused: bool,
    /// It is somebody's turn, for a proof.
    pub turn: bool,
}

/// The state of all that.
#[derive(Debug, Clone, Default)]
pub struct Brain {
    config: Config,
    chosen: String,
    holds: Vec<ProfileHold>,
    pauses: Vec<(Client, String)>,
    facts: Option<Facts>,
    turn: Option<Turn>,
    /// Which cases of each profile held at its last decision.
    held: BTreeMap<String, Vec<Vec<bool>>>,
    cookies: u32,
    battery_ignored: bool,
}

impl Brain {
    /// With what is remembered; a profile that is no more is not.
    pub fn new(config: Config, remembered: Option<&str>) -> Brain {
        let known = remembered.filter(|name| config.profiles.contains_key(*name));
        let chosen = known.unwrap_or(&config.options.default).to_owned();
        Brain { config, chosen, ..Brain::default() }
    }

    /// The configuration in force.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// The profile that was chosen.
    pub fn chosen(&self) -> &str {
        &self.chosen
    }

    /// Holds, oldest first.
    pub fn holds(&self) -> &[ProfileHold] {
        &self.holds
    }

    /// What was seen last.
    pub fn facts(&self) -> Option<&Facts> {
        self.facts.as_ref()
    }

    /// Whether profiles follow the battery.
    pub fn is_battery_aware(&self) -> bool {
        !self.battery_ignored
    }

    /// A number for a new hold.
    pub fn cookie(&mut self) -> u32 {
        self.cookies = self.cookies.wrapping_add(1).max(1);
        self.cookies
    }

    /// Conditions of the profile in force, and of one whose turn it is.
    fn conditions_now(&self) -> impl Iterator<Item = &Condition> {
        let own = match &self.turn {
            Some(Turn::Profile(name)) => self.config.profiles.get(name),
            _ => None,
        };
        let profile = self.config.profiles.get(&self.in_force().0);
        own.into_iter().chain(profile).flat_map(|p| &p.cases).flat_map(|c| &c.when)
    }

    /// Whether somebody holds a profile, or measures: then nobody takes turns.
    pub fn is_taken(&self) -> bool {
        !self.holds.is_empty() || !self.pauses.is_empty()
    }

    /// Whether any of those conditions is about such things.
    pub fn asks_for(&self, of: impl Fn(&Condition) -> bool) -> bool {
        self.conditions_now().any(of)
    }

    /// The programs that those conditions name.
    pub fn programs(&self) -> Vec<&str> {
        self.conditions_now()
            .filter_map(|c| if let Condition::Program(name) = c { Some(name.as_str()) } else { None })
            .collect()
    }

    /// Takes an event; holds that it ended.
    pub fn event(&mut self, event: BrainEvent) -> Vec<ProfileHold> {
        let mut ended = Vec::new();
        let mut end = |holds: &mut Vec<ProfileHold>, which: &dyn Fn(&ProfileHold) -> bool| {
            let (out, kept): (Vec<ProfileHold>, Vec<ProfileHold>) =
                std::mem::take(holds).into_iter().partition(|h| which(h));
            *holds = kept;
            ended.extend(out);
        };
        match event {
            BrainEvent::Facts(facts) => self.facts = Some(facts),
            BrainEvent::Choose(name) => {
                end(&mut self.holds, &|_| true);
                self.chosen = name;
            }
            BrainEvent::Hold(hold) => self.holds.push(hold),
            BrainEvent::Release(cookie) => end(&mut self.holds, &|h| h.cookie == cookie),
            BrainEvent::Gone(client) => {
                end(&mut self.holds, &|h| h.client == client);
                self.pauses.retain(|(c, _)| *c != client);
            }
            BrainEvent::Turn(turn) => self.turn = turn,
            BrainEvent::BatteryAware(on) => self.battery_ignored = !on,
            BrainEvent::Pause(client, why) => self.pauses.push((client, why)),
            BrainEvent::Config(config) => {
                self.config = *config;
                let known = &self.config.profiles;
                end(&mut self.holds, &|h| !known.contains_key(&h.profile));
                if !known.contains_key(&self.chosen) {
                    self.chosen = self.config.options.default.clone();
                }
                self.held = Default::default();
            }
        }
        ended
    }

    /// The profile in force and why.
    fn in_force(&self) -> (String, String) {
        let saver = self.holds.iter().rev().find(|h| self.ppd_of(&h.profile) == Ppd::PowerSaver);
        match saver.or(self.holds.last()) {
            Some(hold) => {
                let reason =
                    if hold.reason.is_empty() { String::new() } else { format!(": {}", hold.reason) };
                (hold.profile.clone(), format!("held by {}{reason}", hold.application))
            }
            None => (self.chosen.clone(), "chosen".to_owned()),
        }
    }

    fn ppd_of(&self, name: &str) -> Ppd {
        self.config.profiles.get(name).map_or(Ppd::Balanced, |p| p.ppd)
    }

    /// What is to be in force now.
    pub fn decide(&mut self) -> Decision {
        let (name, mut why) = self.in_force();
        let ppd = self.ppd_of(&name);
        if let Some((_, what)) = self.pauses.last() {
            let why = format!("paused for {what}");
            return Decision { profile: name, ppd, why, paused: true, ..Decision::default() };
        }
        let turn = self.turn.as_ref().filter(|_| self.holds.is_empty());
        if let Some(turn) = turn {
            why = format!("{why}; {turn} has its turn, for a proof");
        }
        // To desktops the chosen profile is in force all the time.
        let turn = turn.cloned();
        let wanted = match &turn {
            Some(Turn::Untouched) => {
                return Decision { profile: name, ppd, why, turn: true, ..Decision::default() };
            }
            Some(Turn::Profile(of)) => of.clone(),
            None => name.clone(),
        };
        let Some(profile) = self.config.profiles.get(&wanted) else {
            return Decision { profile: name, ppd, why, ..Decision::default() };
        };
        let before = self.held.remove(&wanted).unwrap_or_default();
        let holds = self.conditions(profile, &before);
        let mut wish = profile.base.clone();
        for (case, _) in profile.cases.iter().zip(&holds).filter(|(_, h)| h.iter().all(|h| *h)) {
            wish = wish.under(&case.wish);
            let words: Vec<String> = case.when.iter().map(ToString::to_string).collect();
            why = format!("{why}; {}", words.join(" and "));
        }
        self.held.insert(wanted, holds);
        if let Some(facts) =
            self.facts.as_ref().filter(|_| profile.cases.iter().any(|c| is_of_power(&c.when)))
        {
            why = format!("{why} ({})", facts.source_why);
        }
        Decision { profile: name, ppd, why, wish, paused: false, turn: turn.is_some() }
    }

    fn conditions(&self, profile: &Profile, before: &[Vec<bool>]) -> Vec<Vec<bool>> {
        let held =
            |case: usize, at: usize| before.get(case).and_then(|c| c.get(at)).copied().unwrap_or(false);
        let of = |case: usize, when: &[Condition]| {
            when.iter().enumerate().map(|(at, c)| self.holds_now(c, held(case, at))).collect()
        };
        profile.cases.iter().enumerate().map(|(case, c)| of(case, &c.when)).collect()
    }

    fn holds_now(&self, condition: &Condition, held: bool) -> bool {
        let Some(facts) = &self.facts else { return false };
        match condition {
            Condition::Power(source) if self.battery_ignored => *source == SupplySource::Mains,
            Condition::Power(source) => facts.source == *source,
            Condition::ChargeBelow(most) => {
                let most = most + if held { CHARGE_SLACK } else { 0 };
                facts.charge_percent.is_some_and(|p| p <= most)
            }
            Condition::ChargeAbove(least) => {
                let least = least.saturating_sub(if held { CHARGE_SLACK } else { 0 });
                facts.charge_percent.is_some_and(|p| p >= least)
            }
            Condition::Program(name) => facts.programs.contains(name),
            Condition::HotterThan(most) => {
                let most = most - if held { HEAT_SLACK_C } else { 0.0 };
                facts.celsius.is_some_and(|c| c > most)
            }
            Condition::BusierThan(share) => {
                let share = share - if held { LOAD_SLACK } else { 0.0 };
                facts.busy.is_some_and(|b| b > share)
            }
            Condition::IdlerThan(share) => {
                let share = share + if held { LOAD_SLACK } else { 0.0 };
                facts.busy.is_some_and(|b| b < share)
            }
            Condition::Between(from, until) => match from < until {
                true => (*from..*until).contains(&facts.minute),
                false => facts.minute >= *from || facts.minute < *until,
            },
        }
    }
}

fn is_of_power(when: &[Condition]) -> bool {
    when.iter().any(|c| matches!(c, Condition::Power(_)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn brain(text: &str) -> Brain {
        Brain::new(Config::from_text("test.toml", text).expect("no mistake"), None)
    }

    fn on(source: SupplySource) -> Facts {
        Facts { source, ..Facts::default() }
    }

    fn hold(cookie: u32, profile: &str, client: Client) -> BrainEvent {
        let (reason, application) = ("a build".into(), "make".into());
        BrainEvent::Hold(ProfileHold { cookie, profile: profile.into(), reason, application, client })
    }

    #[test]
    fn the_profile_follows_the_mains() {
        let mut brain = brain("");
        brain.event(BrainEvent::Facts(on(SupplySource::Mains)));
        assert_eq!(brain.decide().wish.to_string(), "bias balanced");
        brain.event(BrainEvent::Facts(on(SupplySource::Battery)));
        let decision = brain.decide();
        assert_eq!(decision.wish.to_string(), "bias balanced-power");
        assert!(decision.why.starts_with("chosen; on battery"), "{}", decision.why);
    }

    #[test]
    fn a_hold_on_power_saver_goes_first_and_ends_with_its_client() {
        let mut brain = brain("");
        let client = |n: u64| Client::Socket(n);
        brain.event(hold(1, "power-saver", client(1)));
        brain.event(hold(2, "performance", client(2)));
        assert_eq!(brain.decide().profile, "power-saver");
        assert_eq!(brain.event(BrainEvent::Gone(client(1))).len(), 1);
        assert_eq!(brain.decide().profile, "performance");
        assert_eq!(brain.event(BrainEvent::Choose("balanced".into()))[0].cookie, 2);
        assert_eq!((brain.decide().profile.as_str(), brain.holds().len()), ("balanced", 0));
    }

    #[test]
    fn a_value_at_the_limit_does_not_switch_to_and_fro() {
        let mut brain = brain("[profile.a]\n[[profile.a.when]]\nhotter_than = 80.0\nbias = \"power\"\n");
        brain.event(BrainEvent::Choose("a".into()));
        let mut at = |celsius| {
            brain.event(BrainEvent::Facts(Facts { celsius: Some(celsius), ..Facts::default() }));
            brain.decide().wish.bias.is_some()
        };
        assert_eq!(
            [79.0, 80.5, 79.0, 76.0, 74.9, 79.0].map(&mut at),
            [false, true, true, true, false, false]
        );
    }

    #[test]
    fn the_night_goes_over_midnight() {
        let mut brain =
            brain("[profile.a]\n[[profile.a.when]]\nbetween = \"22:00-07:00\"\nbias = \"power\"\n");
        brain.event(BrainEvent::Choose("a".into()));
        let mut at = |hour: u16| {
            brain.event(BrainEvent::Facts(Facts { minute: hour * 60, ..Facts::default() }));
            brain.decide().wish.bias.is_some()
        };
        assert_eq!([21, 22, 0, 6, 7].map(&mut at), [false, true, true, true, false]);
    }

    #[test]
    fn a_measurement_has_the_machine_as_it_was() {
        let mut brain = brain("");
        brain.event(BrainEvent::Pause(Client::Socket(1), "wattwise ab".into()));
        let decision = brain.decide();
        assert!(decision.paused && decision.wish == Wish::default());
        brain.event(BrainEvent::Gone(Client::Socket(1)));
        assert!(!brain.decide().paused);
    }

    #[test]
    fn a_reload_keeps_what_was_chosen_where_it_is_still_there() {
        let mut brain = brain("[profile.a]\n");
        brain.event(BrainEvent::Choose("a".into()));
        let with = |text| BrainEvent::Config(Box::new(Config::from_text("t", text).expect("no mistake")));
        brain.event(with("[profile.a]\nbias = \"power\"\n"));
        assert_eq!(brain.decide().wish.to_string(), "bias power");
        brain.event(with(""));
        assert_eq!(brain.decide().profile, "balanced");
    }
}
