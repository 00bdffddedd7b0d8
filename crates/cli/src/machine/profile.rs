//! `profile`: what `wattwised` has in force, and what it is to have.
//!
//! What is in force is asked of the daemon by its socket. Profiles can be listed, shown and added without one.

use crate::args::output::{OutputPath, written};
use crate::args::policy::Results;
use crate::args::root as hardware;
use crate::args::settings::ArmArgs;
use crate::exit::{Failure, Outcome, print, print_json};
use crate::show::screen::say;
use clap::Subcommand;
use serde::Serialize;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use wattwise_child::Signals;
use wattwise_control::private::PrivateFolder;
use wattwise_daemon::client::{Connection, SOCKET};
use wattwise_daemon::config::{Config, check_name};
use wattwise_daemon::protocol::{Listed, Reply, Request, Status};
use wattwise_daemon::run::listed;
use wattwise_figure::on_screen;
use wattwise_figure::setting::{Setting, words};
use wattwise_hw::root::Root;
use wattwise_live::run::child::CommandJob;
use wattwise_replay::apply::decides_by_looking;
use wattwise_replay::spec::{PolicySpec, rule_and_parts};

/// Files of profiles, where none is named.
const FILES: [&str; 2] = ["/etc/wattwise/profiles.toml", "/var/lib/wattwise/profiles.toml"];

#[derive(clap::Args)]
pub(crate) struct ProfileArgs {
    #[command(subcommand)]
    what: ProfileCommand,
    /// The daemon's socket
    #[arg(long, value_name = "FILE", global = true, default_value = SOCKET)]
    socket: String,
    /// Profiles of this file instead of those of the daemon
    #[arg(long, value_name = "FILE", global = true)]
    config: Option<String>,
    /// Print as JSON (schemas wattwise.profiles/1 and wattwise.profile-status/1)
    #[arg(long, global = true)]
    json: bool,
}

#[derive(Subcommand)]
enum ProfileCommand {
    /// The profiles, and which is in force
    List,
    /// What a profile wants, and under which conditions
    Show {
        /// Its name
        name: String,
    },
    /// What is in force, why, and what cannot be had here
    Status,
    /// Choose a profile; it is remembered over boots
    Set {
        /// Its name
        name: String,
    },
    /// Hold a profile while a command runs, or until Ctrl-C
    Hold {
        /// Its name
        name: String,
        /// Why, for those who look
        #[arg(long, default_value = "")]
        reason: String,
        /// The command
        #[arg(last = true)]
        command: Vec<String>,
    },
    /// End somebody's hold by its number, as `status` shows it
    Release {
        /// The number
        cookie: u32,
    },
    /// Make a profile of a policy, such as the winner of a comparison
    Add(Add),
}

#[derive(clap::Args)]
struct Add {
    /// The new profile's name
    name: String,
    /// A file of results: the policy that it recommends, or the one that --policy names
    #[arg(long, value_name = "FILE")]
    from: Option<String>,
    /// The policy, as 'compare' prints it
    #[arg(short, long, value_name = "POLICY", required_unless_present = "from")]
    policy: Option<String>,
    /// Where the profile goes: a file of profiles, which keeps those that it has [default: /var/lib/wattwise/profiles.toml]
    #[arg(short, long, value_name = "FILE")]
    output: Option<OutputPath>,
    #[command(flatten)]
    root: hardware::RootArgs,
}

/// Version of what `list`, `show` and `add` print.
pub(crate) const SCHEMA: &str = "wattwise.profiles/1";
/// Version of what the others print.
pub(crate) const STATUS_SCHEMA: &str = "wattwise.profile-status/1";

/// Profiles.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct Profiles {
    schema: &'static str,
    /// The one in force, where a daemon runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    in_force: Option<String>,
    /// All, or the one that was asked for.
    profiles: Vec<Listed>,
}

/// What is in force.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct ProfileStatus {
    schema: &'static str,
    #[serde(flatten)]
    status: Status,
}

pub(crate) fn run(args: &ProfileArgs) -> Outcome {
    match &args.what {
        ProfileCommand::List => args.list(),
        ProfileCommand::Show { name } => args.show(name),
        ProfileCommand::Status => args.status(),
        ProfileCommand::Set { name } => {
            args.ask(&Request::Set { profile: name.clone() })?;
            args.status()
        }
        ProfileCommand::Hold { name, reason, command } => args.hold(name, reason, command),
        ProfileCommand::Release { cookie } => {
            args.ask(&Request::Release { cookie: *cookie })?;
            args.status()
        }
        ProfileCommand::Add(add) => args.add(add),
    }
}

/// A connection, or why there is none.
fn connect(socket: &str) -> Result<Connection, Failure> {
    Connection::open(Path::new(socket)).map_err(|e| {
        let what = match e.kind() {
            std::io::ErrorKind::PermissionDenied => "this user may not ask wattwised there: run as root",
            _ => "no wattwised runs here ('systemctl start wattwised')",
        };
        Failure::impossible(format!("{socket}: {e}; {what}"))
    })
}

fn is_readable(file: &str) -> bool {
    let opened = std::fs::File::open(file);
    !opened.is_err_and(|e| e.kind() == std::io::ErrorKind::PermissionDenied)
}

fn answered(connection: &mut Connection, request: &Request) -> Result<Reply, Failure> {
    let reply =
        connection.ask(request).map_err(|e| Failure::work(format!("wattwised does not answer: {e}")))?;
    match reply.error {
        Some((code, message)) => Err(Failure { code, message }),
        None => Ok(reply),
    }
}

impl ProfileArgs {
    fn ask(&self, request: &Request) -> Result<Reply, Failure> {
        answered(&mut connect(&self.socket)?, request)
    }

    fn files(&self) -> Vec<PathBuf> {
        match &self.config {
            Some(file) => vec![file.into()],
            // What root alone may read is the daemon's to tell.
            None => FILES.into_iter().filter(|f| is_readable(f)).map(PathBuf::from).collect(),
        }
    }

    /// The profiles of a file, or of the daemon that runs, or of the usual files.
    fn profiles(&self) -> Result<Profiles, Failure> {
        let of_files = || -> Result<Vec<Listed>, Failure> {
            if let Some(file) = self.config.as_ref().filter(|f| !Path::new(f).exists()) {
                return Err(Failure::input(format!(
                    "--config {file}: no such file; expected profiles in TOML"
                )));
            }
            Ok(listed(&Config::read(&self.files()).map_err(Failure::input)?))
        };
        if self.config.is_some() {
            return Ok(Profiles { schema: SCHEMA, in_force: None, profiles: of_files()? });
        }
        match Connection::open(Path::new(&self.socket)) {
            Err(_) => Ok(Profiles { schema: SCHEMA, in_force: None, profiles: of_files()? }),
            Ok(mut connection) => {
                let profiles = answered(&mut connection, &Request::List)?.profiles;
                let status = answered(&mut connection, &Request::Status)?.status;
                Ok(Profiles { schema: SCHEMA, in_force: status.map(|s| s.profile), profiles })
            }
        }
    }

    fn list(&self) -> Outcome {
        let found = self.profiles()?;
        if self.json {
            print_json(&found)?;
            return Ok(0);
        }
        let width = found.profiles.iter().map(|p| p.name.len()).max().unwrap_or(0);
        let mut out = String::new();
        for p in &found.profiles {
            let mark = if found.in_force.as_deref() == Some(&p.name) { "*" } else { " " };
            _ = writeln!(out, "{mark} {:width$}  {}", on_screen(&p.name), on_screen(&p.summary));
        }
        print(&out)?;
        Ok(0)
    }

    fn show(&self, name: &str) -> Outcome {
        let mut found = self.profiles()?;
        let near = wattwise_figure::nearest(name, found.profiles.iter().map(|p| p.name.as_str()));
        found.profiles.retain(|p| p.name == name);
        let Some(p) = found.profiles.first() else {
            return Err(Failure::input(format!("no profile '{name}'; did you mean {near}?")));
        };
        if self.json {
            print_json(&found)?;
            return Ok(0);
        }
        let mut out = format!("{}: {}\n", on_screen(&p.name), on_screen(&p.summary));
        _ = writeln!(out, "to desktops   {}\nwants         {}", p.ppd, on_screen(&p.wants));
        for (when, wants) in &p.cases {
            _ = writeln!(out, "{}: {}", on_screen(when), on_screen(wants));
        }
        print(&out)?;
        Ok(0)
    }

    fn status(&self) -> Outcome {
        let status = self.ask(&Request::Status)?.status;
        let status =
            status.ok_or_else(|| Failure::work("wattwised tells no status: is it another version?"))?;
        if self.json {
            print_json(&ProfileStatus { schema: STATUS_SCHEMA, status })?;
            return Ok(0);
        }
        print(&shown(&status))?;
        Ok(0)
    }

    fn hold(&self, name: &str, reason: &str, command: &[String]) -> Outcome {
        let mut connection = connect(&self.socket)?;
        let application = command.first().map_or("wattwise profile hold", String::as_str).to_owned();
        let (profile, reason) = (name.to_owned(), reason.to_owned());
        let reply = answered(&mut connection, &Request::Hold { profile, reason, application })?;
        let signals = Signals::catch().map_err(Failure::work)?;
        if command.is_empty() {
            say!("{name} is held, number {}; Ctrl-C ends it", reply.cookie.unwrap_or_default());
            while signals.caught().is_none() {
                signals.sleep(std::time::Duration::from_secs(3600));
            }
            return Ok(0);
        }
        // The hold ends with the connection, which lives as long as the command.
        let job = CommandJob { command: command.to_vec(), ..CommandJob::default() };
        let ended = wattwise_live::run::child::run(&job, &signals, None, &mut || {})
            .map_err(|e| Failure { code: e.code(), message: e.to_string() })?;
        Ok(ended.code())
    }

    /// Writes a file of profiles; a daemon that runs reads its own at once.
    fn write(&self, add: &Add, path: &Path, text: &str) -> Result<(), Failure> {
        match &add.output {
            Some(path) => {
                let mut file = path.open("--output")?;
                let all = std::io::Write::write_all(&mut file.out, text.as_bytes());
                written(&file.name, all.and_then(|()| file.out.finish()))?;
            }
            None => {
                let shown = path.display();
                let folder = path.parent().unwrap_or(Path::new("/"));
                let write = || -> std::io::Result<()> {
                    let folder = PrivateFolder::make(folder)?;
                    folder.replace("profiles.toml", text.as_bytes())?;
                    folder.sync()
                };
                write().map_err(|e| {
                    Failure::impossible(format!("{shown}: {e}; run as root, or name a file with -o"))
                })?;
                // One that runs reads it by itself a moment later; without one there is nothing to do.
                _ = Connection::open(Path::new(&self.socket)).and_then(|mut c| c.ask(&Request::Reload));
            }
        }
        Ok(())
    }

    fn add(&self, add: &Add) -> Outcome {
        check_name(&add.name).map_err(Failure::input)?;
        let policy = match &add.from {
            Some(file) => Results::read("--from", file)?
                .policy("--from", add.policy.as_deref().unwrap_or("recommended"))?,
            None => add.policy.clone().unwrap_or_default(),
        };
        let root = add.root.open()?;
        let table = table(&*root, &add.name, &policy)?;
        let path = match &add.output {
            Some(path) => path.path().to_owned(),
            None => PathBuf::from(FILES[1]),
        };
        let shown = path.display().to_string();
        let there =
            present(&path).map_err(|e| Failure::input(format!("{shown}: {e}; name another file with -o")))?;
        let has = Config::from_text(&shown, &there).map_err(Failure::input)?;
        let builtin = Config::builtin();
        if has.profiles.contains_key(&add.name)
            && has.profiles.get(&add.name) != builtin.profiles.get(&add.name)
        {
            return Err(Failure::input(format!(
                "{shown}: has a profile '{}' already; choose another name, or take that one out",
                add.name
            )));
        }
        let gap = if there.is_empty() || there.ends_with("\n\n") { "" } else { "\n" };
        let text = format!("{there}{gap}{table}");
        let config = Config::from_text(&shown, &text).map_err(Failure::input)?;
        self.write(add, &path, &text)?;
        let mut profiles = listed(&config);
        profiles.retain(|p| p.name == add.name);
        if self.json {
            print_json(&Profiles { schema: SCHEMA, in_force: None, profiles })?;
            return Ok(0);
        }
        let wants = profiles.first().map(|p| p.wants.clone()).unwrap_or_default();
        print(&format!(
            "{}: {}\nin {shown}; 'wattwise profile set {}' puts it in force\n",
            add.name,
            on_screen(&wants),
            add.name
        ))?;
        Ok(0)
    }
}

/// What a configuration holds now; nothing where there is none, or a device or pipe that is only written.
fn present(path: &Path) -> std::io::Result<String> {
    match std::fs::metadata(path) {
        Ok(meta) if meta.is_file() => wattwise_figure::budget::read_text(path),
        Ok(_) => Ok(String::new()),
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(String::new()),
        Err(e) => Err(e),
    }
}

/// A status for people.
fn shown(status: &Status) -> String {
    let mut out = format!("{}: {}\n", on_screen(&status.profile), on_screen(&status.why));
    _ = writeln!(out, "wants     {}", on_screen(&status.wants));
    if let Some(followed) = &status.followed {
        _ = writeln!(out, "followed  {}", on_screen(followed));
    }
    let counts =
        [("values", status.values), ("writes", status.writes), ("changes of profile", status.transitions)];
    let counts: Vec<String> = counts.iter().map(|(what, n)| format!("{n} {what}")).collect();
    _ = writeln!(out, "counts    {}, {} by other programs", counts.join(", "), status.foreign_writes);
    if let Some(proof) = &status.proof {
        _ = writeln!(out, "saved     {} (against {})", on_screen(&proof.line), on_screen(&proof.baseline));
    }
    for h in &status.holds {
        _ = writeln!(
            out,
            "held      {} by {}, number {}: {}",
            h.profile,
            on_screen(&h.application),
            h.cookie,
            on_screen(&h.reason)
        );
    }
    for m in &status.refused {
        _ = writeln!(out, "not here  {}: {}", on_screen(&m.what), on_screen(&m.why));
    }
    for m in &status.conflicts {
        _ = writeln!(out, "conflict  {}: {}", on_screen(&m.what), on_screen(&m.why));
    }
    out
}

/// A policy as a profile of this machine: what the kernel can be told as settings, the rest as a policy that the daemon
/// follows.
fn table(root: &dyn Root, name: &str, policy: &str) -> Result<String, Failure> {
    let arm = ArmArgs { root };
    let (settings, cores, followed) = match arm.wishes(policy) {
        Ok(wishes) => (wishes.settings, wishes.cores, None),
        Err(refused) => {
            let text = PolicySpec::parse(policy).map_or_else(
                |_| policy.to_owned(),
                |spec| PolicySpec { ticks: false, ..spec }.renamed().text,
            );
            let (head, rest) = rule_and_parts(&text);
            if !can_be_followed(head) {
                return Err(refused);
            }
            let beside = match rest {
                Some(rest) => {
                    let kept = format!("current+{rest}");
                    let typed = |e: Failure| Failure { message: e.message.replace(&kept, policy), ..e };
                    arm.wishes(&kept).map_err(typed)?
                }
                None => Default::default(),
            };
            (beside.settings, beside.cores, Some(head.to_owned()))
        }
    };
    if let Some(Setting::DriverMode(mode)) = settings.iter().find(|s| matches!(s, Setting::DriverMode(_))) {
        return Err(Failure::impossible(format!(
            "'{policy}' needs the driver's mode {mode}, which is no profile's: 'wattwise set --driver-mode {mode}' first"
        )));
    }
    let quoted = |text: &str| toml::Value::String(text.to_owned()).to_string();
    let flags: Vec<String> = words(&settings)
        .chunks(2)
        .map(|pair| quoted(&format!("{}={}", pair[0].trim_start_matches("--"), pair[1])))
        .collect();
    let mut out =
        format!("[profile.{}]\nsummary = {}\n", quoted(name), quoted(&format!("The policy {policy}")));
    if !flags.is_empty() {
        _ = writeln!(out, "settings = [{}]", flags.join(", "));
    }
    if let Some(speed) = followed {
        _ = writeln!(out, "speed = {}", quoted(&speed));
    }
    if let Some(cores) = cores {
        let (_, text) = policy.rsplit_once('+').unwrap_or(("", cores.cores.name));
        let text = if text.starts_with(cores.cores.name) { text } else { cores.cores.name };
        _ = writeln!(out, "cores = {}", quoted(text));
    }
    Ok(out)
}

/// Whether the daemon can run a speed policy by itself.
fn can_be_followed(text: &str) -> bool {
    PolicySpec::parse(text).is_ok_and(|spec| decides_by_looking(&spec, &wattwise_daemon::actuator::nominal()))
}
