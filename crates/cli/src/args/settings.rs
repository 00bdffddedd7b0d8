//! Settings on the command line: as flags of `set`, and as one word of `run` and `ab`.

use crate::args::policy;
use crate::args::select::SelectorArgs;
use crate::exit::Failure;
use crate::show::screen::note;
use clap::{ArgAction, Parser};
use std::path::Path;
use wattwise_calibrate::estimate::estimate;
use wattwise_calibrate::gather::SeenMachine;
use wattwise_control::hold::Wishes;
use wattwise_control::set::plan::Setting;
use wattwise_figure::mistake::at_line;
use wattwise_figure::{setting, shell};
use wattwise_hw::cpus::select::Selector;
use wattwise_hw::root::Root;
use wattwise_hw::states::cpufreq::Cpufreq;
use wattwise_policy::System;
use wattwise_replay::apply::{ApplyTarget, beside_the_speed, commands, keeping};
use wattwise_replay::library;
use wattwise_replay::spec::{CURRENT, PolicyError, PolicySpec, cores_spec, is_cores};

/// What is to be set, where.
#[derive(clap::Args)]
pub(crate) struct SettingArgs {
    #[command(flatten)]
    pub(crate) selector: SelectorArgs,
    #[command(flatten)]
    given: Given,
}

/// Flags of settings and their values, in the order of [`setting::KNOWN`], from which they are made.
struct Given(Vec<(&'static str, String)>);

impl clap::Args for Given {
    fn augment_args(command: clap::Command) -> clap::Command {
        command.args(setting::KNOWN.iter().map(|flag| {
            let arg = clap::Arg::new(flag.name).long(flag.name).value_name(flag.value).help(flag.help);
            let arg = if let Some(letter) = flag.short { arg.short(letter) } else { arg };
            let arg = if flag.switch { arg.value_parser(["on", "off"]) } else { arg };
            arg.action(if flag.many { ArgAction::Append } else { ArgAction::Set })
        }))
    }

    fn augment_args_for_update(command: clap::Command) -> clap::Command {
        Given::augment_args(command)
    }
}

impl clap::FromArgMatches for Given {
    fn from_arg_matches(matches: &clap::ArgMatches) -> Result<Given, clap::Error> {
        let values = |flag: &'static setting::Flag| {
            let all = matches.get_many::<String>(flag.name).into_iter().flatten();
            all.map(|value| (flag.name, value.clone()))
        };
        Ok(Given(setting::KNOWN.iter().flat_map(values).collect()))
    }

    fn update_from_arg_matches(&mut self, matches: &clap::ArgMatches) -> Result<(), clap::Error> {
        *self = Given::from_arg_matches(matches)?;
        Ok(())
    }
}

impl SettingArgs {
    /// The wishes, in no particular order.
    pub(crate) fn settings(&self) -> Result<Vec<Setting>, Failure> {
        let mut settings = Vec::new();
        for (name, value) in &self.given.0 {
            let read = setting::read(name, value).map_err(|e| Failure::input(format!("--{e}")))?;
            setting::add(&mut settings, read);
        }
        Ok(settings)
    }
}

/// For parsing flags that came as one word.
#[derive(Parser)]
#[command(no_binary_name = true, disable_help_flag = true)]
struct OneWord {
    #[command(flatten)]
    wishes: SettingArgs,
}

/// `governor=powersave,max=60%,cstate=C6=off,cpus=0-3,8`: the flags of `set`, without their dashes.
pub(crate) fn one_word(text: &str) -> Result<SettingArgs, Failure> {
    let mut flags: Vec<String> = Vec::new();
    for piece in text.split(',') {
        match flags.last_mut() {
            // A list of CPUs has commas of its own.
            Some(last) if !piece.contains('=') => {
                last.push(',');
                last.push_str(piece);
            }
            _ => flags.push(format!("--{piece}")),
        }
    }
    OneWord::try_parse_from(flags).map(|w| w.wishes).map_err(|e| {
        let reason = e.to_string();
        let reason = reason.lines().next().unwrap_or_default().trim_start_matches("error: ").to_owned();
        Failure::input(format!(
            "'{text}': {reason}; expected settings such as governor=powersave,max=60% ('wattwise set --help' lists them)"
        ))
    })
}

/// Turns the words for an arm into settings.
pub(crate) struct ArmArgs<'r> {
    pub(crate) root: &'r dyn Root,
}

/// A saved profile.
#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Profile {
    /// Settings as on the command line.
    set: Vec<String>,
}

impl ArmArgs<'_> {
    /// A policy as everywhere (`current`, `hwp:epp=power+max=60%`, `ondemand:up_threshold=90`, `powersave+consolidate`), for
    /// which a driver that chooses speeds itself becomes passive; `@FILE`, a result's recommended policy; the file of a policy
    /// or of a profile; or settings.
    pub(crate) fn wishes(&self, given: &str) -> Result<Wishes, Failure> {
        let text = &policy::text("--policy", given)?;
        if text.ends_with(".toml") {
            return self.file(text);
        }
        if policy::is_settings(text) {
            let args = one_word(text)?;
            let settings = args.settings()?;
            if settings.is_empty() {
                return Err(Failure::input(format!(
                    "--policy {text}: sets nothing; expected a setting beside it, such as max=60%,{text}"
                )));
            }
            return Ok(Wishes { settings, selector: args.selector.selector(), cores: None });
        }
        if is_cores(text) {
            // Alone, as it could be written before there was a language.
            note!("{text} is current+{text}: the CPUs that are kept, at the speeds of now");
            let cores = cores_spec(text).map_err(Failure::input)?;
            return Ok(Wishes { cores: Some(cores), ..Wishes::default() });
        }
        match PolicySpec::parse(text) {
            Ok(spec) => self.policy(spec),
            Err(e) => self.kernels_own(text).ok_or_else(|| self.unknown(text, &e)),
        }
    }

    /// A governor of this kernel that wattwise does not know, or one with tunables that it has no words for.
    fn kernels_own(&self, text: &str) -> Option<Wishes> {
        let (name, tunables) = text.split_once(':').unwrap_or((text, ""));
        let cpufreq = Cpufreq::read(self.root);
        if !cpufreq.policies().first()?.governors.iter().any(|g| g == name) {
            return None;
        }
        let mut settings = vec![Setting::Governor(name.to_owned())];
        for tunable in tunables.split(',').filter(|t| !t.is_empty()) {
            let (key, value) = tunable.split_once('=').filter(|(_, value)| !value.contains('+'))?;
            settings.push(Setting::Tunable(key.to_owned(), value.to_owned()));
        }
        Some(Wishes { settings, ..Wishes::default() })
    }

    fn file(&self, path: &str) -> Result<Wishes, Failure> {
        let text = wattwise_figure::budget::read_text(Path::new(path)).map_err(|e| {
            Failure::input(format!(
                "{path}: {e}; expected a policy file or a profile: set = [\"governor=powersave\"]"
            ))
        })?;
        let table = text.parse::<toml::Table>().unwrap_or_default();
        match table.contains_key("speed") {
            true => {
                let spec = PolicySpec::read(Path::new(path)).map_err(Failure::input)?;
                self.policy(spec).map_err(|f| Failure { message: format!("{path}: {}", f.message), ..f })
            }
            false => profile(path, &text),
        }
    }

    /// A policy, as this machine's settings.
    fn policy(&self, mut spec: PolicySpec) -> Result<Wishes, Failure> {
        let (name, cores) = (spec.text.clone(), spec.cores.take());
        let spec = spec.renamed();
        if spec.text == CURRENT.name {
            return Ok(Wishes { cores, ..Wishes::default() });
        }
        let cpufreq = Cpufreq::read(self.root);
        let target = self.target(&cpufreq);
        let refused = |why: String| {
            let on_a_model = shell::line(["wattwise", "compare", "-p", &name]);
            Failure::impossible(format!(
                "'{name}' cannot be put in force here: {why}; on a model: {on_a_model}"
            ))
        };
        if cpufreq.policies().is_empty() && !is_off(&cpufreq) {
            return Err(refused(cpufreq.policies.why_not()));
        }
        if spec.speed.name == CURRENT.name {
            let settings = beside_the_speed(&spec, &target).map_err(refused)?;
            return Ok(Wishes { settings, cores, ..Wishes::default() });
        }
        if let Ok((_, Some(told))) = spec.in_place(target.driver, target.in_force.as_ref()) {
            note!("{told}");
        }
        let commands = commands(&spec, &target).map_err(refused)?;
        if !commands.lifts().is_empty() {
            note!(
                "{} is without {}, which is in force now: it is lifted; to keep it: {}",
                spec.text,
                commands.lifts().join(" and "),
                shell::word(keeping(&spec, commands.lifts()))
            );
        }
        let settings = commands.settings().map(<[Setting]>::to_vec).unwrap_or_default();
        Ok(Wishes { settings, selector: Selector::default(), cores })
    }

    /// What policies can be put in force here.
    fn target(&self, cpufreq: &Cpufreq) -> ApplyTarget {
        let model = SeenMachine::read(self.root).map(|seen| estimate(&seen, "this").text);
        let machine = model.and_then(|text| library::parsed(&text, "this").ok());
        let target = machine.map_or_else(|| System::Linux.into(), |m| ApplyTarget::of(&m, System::Linux));
        let governors = match target.driver.and_then(|d| d.own) {
            // A driver that chooses speeds itself names its own two: of cpufreq's, that of a module that is loaded is known.
            Some(_) => self
                .root
                .list("sys/module/cpufreq_burst")
                .map_or_else(|_| Vec::new(), |_| vec!["burst".into()]),
            None => cpufreq.policies().first().map(|p| p.governors.clone()).unwrap_or_default(),
        };
        ApplyTarget { governors, ..target }
    }

    fn unknown(&self, text: &str, error: &PolicyError) -> Failure {
        match error {
            PolicyError::Unknown { nearest, .. } => {
                let cpufreq = Cpufreq::read(self.root);
                let governors =
                    cpufreq.policies().first().map(|p| p.governors.join(", ")).unwrap_or_default();
                let here =
                    if governors.is_empty() { String::new() } else { format!(", a governor ({governors})") };
                Failure::input(format!(
                    "'{text}'; did you mean {nearest}? expected current, a policy ('wattwise policies'){here}, settings such as \
                     governor=powersave,max=60%, @FILE for a result's policy, or the .toml of a policy or a profile"
                ))
            }
            PolicyError::Several { .. } => Failure::input(format!(
                "--policy {text}: one policy at a time; expected limits joined by +, such as powersave+max=60%, or settings \
                 such as governor=powersave,max=60%"
            )),
            error => Failure::input(error),
        }
    }
}

/// Whether the driver is switched off, so that no policies are shown now.
fn is_off(cpufreq: &Cpufreq) -> bool {
    cpufreq.driver.as_ref().is_some_and(|d| d.mode == "off")
}

fn profile(path: &str, text: &str) -> Result<Wishes, Failure> {
    let profile: Profile = toml::from_str(text).map_err(|e| {
        Failure::input(format!(
            "{path}: {}; expected a policy file, or set = [\"governor=powersave\", ...]",
            at_line(text, e.span().map(|s| s.start), e.message())
        ))
    })?;
    let args = one_word(&profile.set.join(","))?;
    Ok(Wishes { settings: args.settings()?, selector: args.selector.selector(), cores: None })
}

#[cfg(test)]
mod tests {
    use super::*;
    use wattwise_figure::units::Speed;

    #[test]
    fn one_word_is_the_flags_of_set() {
        let args = one_word("governor=powersave,max=60%,cstate=C6=off,cpus=0-3,8").expect("parses");
        assert_eq!(args.selector.selector().cpus.as_deref(), Some("0-3,8"));
        assert_eq!(
            args.settings().expect("settings"),
            [
                Setting::Governor("powersave".into()),
                Setting::Limits(None, Some(Speed::Percent(60.0))),
                Setting::CState("C6".into(), false),
            ]
        );
        let error = one_word("governr=powersave").err().expect("no such flag");
        assert!(error.message.contains("--governr"), "{}", error.message);
    }

    /// What settings print is what is read: one printer, one parser.
    #[test]
    fn every_setting_comes_back_from_its_flags() {
        let (mhz, percent) = (Speed::Khz(1_200_000), Speed::Percent(33.5));
        let limit = |zone: Option<&str>, constraint: Option<&str>| Setting::PowerLimit {
            zone: zone.map(String::from),
            constraint: constraint.map(String::from),
            power_uw: 15_250_000,
        };
        for setting in [
            Setting::Online(false),
            Setting::DriverMode("passive".into()),
            Setting::Governor("schedutil".into()),
            Setting::Limits(Some(Speed::Min), Some(percent)),
            Setting::Limits(None, Some(Speed::Max)),
            Setting::Freq(mhz),
            Setting::Epp("balance_power".into()),
            Setting::Epb("6".into()),
            Setting::Boost(true),
            Setting::CState("C1E".into(), false),
            Setting::Latency(None),
            Setting::Latency(Some(20_000)),
            Setting::Plain(&setting::IDLE_GOVERNOR, "teo".into()),
            Setting::TState(37.5),
            limit(None, None),
            limit(Some("dram"), None),
            limit(Some("package-0"), Some("short_term")),
            Setting::Uncore(Some(mhz), Some(Speed::Max)),
            Setting::Dram { governor: "performance".into(), up: None, down: None },
            Setting::Dram { governor: "dmc_ondemand".into(), up: Some(20), down: Some(5) },
            Setting::Tunable("up_threshold".into(), "90".into()),
            Setting::Plain(&setting::PROFILE, "balanced".into()),
        ] {
            let words = wattwise_figure::setting::words(std::slice::from_ref(&setting));
            let parsed = OneWord::try_parse_from(&words).unwrap_or_else(|e| panic!("{words:?}: {e}"));
            assert_eq!(parsed.wishes.settings().expect("settings"), [setting], "{words:?}");
        }
    }

    /// Why a machine may not take a policy that another command has named: nothing else is an answer.
    const REASONS: [&str; 11] = [
        "no system offers",
        "and this is Linux",
        "has no mode that is",
        "cannot hold one speed",
        "is no governor of",
        "the kernel was built without cpufreq",
        "describes the model and cannot be set",
        "scheduler places tasks",
        "a fixed C-state is a model's",
        "the kernel's C-states",
        "has no boost to switch off",
    ];

    /// Every name that any command prints, on every emulated machine: what `compare` has a command for is taken by `set`, `run` and
    /// `ab` and by the kernel's rules; what it has none for is refused by all, for the same reason.
    #[test]
    fn a_policy_is_one_thing_to_all_commands() {
        let (mut taken, mut refused) = (0, 0);
        for name in wattwise_emulator::names().filter(|name| *name != "server-256") {
            let root = wattwise_emulator::named(name).expect("bundled");
            let model = crate::model::machine::machine(&format!("emulated:{name}")).expect("an estimate");
            let target = ApplyTarget::of(&model, System::Linux);
            let offered = wattwise_replay::defaults::default_policies(&model, Some(System::Linux));
            let all = wattwise_policy::speed::ALL.iter().map(|speed| speed.name.to_owned());
            let more =
                ["current", "current+noboost", "schedutil+pack", "schedutil+fixed:depth=0", "hwp:reaction=3"];
            let texts = offered.iter().map(|p| p.text.clone()).chain(all).chain(more.map(String::from));
            for text in texts {
                let spec = PolicySpec::parse(&text).expect("a policy");
                wattwise_replay::cases::on_machine(&spec, &model).expect("compare takes every policy");
                let wishes = ArmArgs { root: &root }.wishes(&text);
                match (&wishes, commands(&spec, &target)) {
                    (Ok(wishes), made) => {
                        let by_kernel_alone = text.starts_with("current");
                        assert!(made.is_ok() || by_kernel_alone, "{name}: {text}: {made:?}");
                        let (inventory, cpus) = {
                            let inventory = wattwise_control::set::plan::Inventory::read(&root);
                            let cpus = Selector::default().resolve(&inventory.topology, false).expect("CPUs");
                            (inventory, cpus)
                        };
                        let plan =
                            wattwise_control::set::plan::plan(&root, &inventory, &cpus, &wishes.settings);
                        let plan = plan.unwrap_or_else(|e| panic!("{name}: {text}: {e}"));
                        assert!(plan.refused().is_none(), "{name}: {text}: {:?}", plan.refused());
                        taken += 1;
                    }
                    (Err(failure), _) => {
                        let why = &failure.message;
                        assert_eq!(failure.code, 3, "{name}: {text}: {why}");
                        assert!(
                            REASONS.iter().any(|r| why.contains(r)) && !why.contains('\n'),
                            "{name}: {text}: {why}"
                        );
                        refused += 1;
                    }
                }
            }
        }
        assert!(taken > 100 && refused > 50, "{taken} {refused}");
    }
}
