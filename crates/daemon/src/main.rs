//! The program `wattwised`.

use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;
use wattwise_daemon::asks::say;
use wattwise_daemon::client::SOCKET;
use wattwise_daemon::config::Config;
use wattwise_daemon::places::Places;
use wattwise_daemon::run::{DaemonError, dry_run, restore, run};
use wattwise_hw::root::{DirRoot, Root};

const HELP: &str = "\
Puts a profile in force and follows the mains, programs, heat and load, all day

Usage: wattwised [OPTIONS]

Options:
      --dry-run          Print what would be done now, and change nothing
      --restore          Put back what a killed daemon left in force, and end
      --profile NAME     Begin with this profile instead of the remembered one
      --config FILE      Profiles and options (may be given again; later files count more)
                         [default: /etc/wattwise/profiles.toml, /var/lib/wattwise/profiles.toml]
      --root ROOT        Another machine: a tree of files, or emulated:NAME (only with --dry-run)
      --journal FOLDER   Where changes are journalled [default: /run/wattwise]
      --state FOLDER     What is remembered [default: /var/lib/wattwise]
      --socket FILE      Where 'wattwise profile' finds it [default: /run/wattwise/wattwised.sock]; none: nowhere
      --bus ADDRESS      The bus of desktops: system, none, or an address [default: system]
  -h, --help             Print this
  -V, --version          Print the version

Exit codes: 0 ended, 1 failed, 2 bad usage or configuration, 3 nothing can be set on this machine (--dry-run says so, and ends with 0).
Signals: SIGHUP reads the configuration again; SIGTERM puts everything back and ends.
";

struct DaemonArgs {
    dry_run: bool,
    restore: bool,
    profile: Option<String>,
    root: Option<String>,
    places: Places,
}

fn parse(given: impl Iterator<Item = String>) -> Result<Option<DaemonArgs>, String> {
    let mut args = DaemonArgs {
        dry_run: false,
        restore: false,
        profile: None,
        root: None,
        places: Places {
            config: Vec::new(),
            state: "/var/lib/wattwise".into(),
            journal: "/run/wattwise".into(),
            socket: Some(SOCKET.into()),
            bus: Some("system".into()),
        },
    };
    let mut given = given.peekable();
    while let Some(word) = given.next() {
        let (flag, joined) = match word.split_once('=') {
            Some((flag, value)) => (flag.to_owned(), Some(value.to_owned())),
            None => (word, None),
        };
        let mut value = || {
            joined.clone().or_else(|| given.next()).ok_or_else(|| format!("{flag} wants a value (--help)"))
        };
        match flag.as_str() {
            "--dry-run" => args.dry_run = true,
            "--restore" => args.restore = true,
            "--profile" => args.profile = Some(value()?),
            "--config" => args.places.config.push(PathBuf::from(value()?)),
            "--root" => args.root = Some(value()?),
            "--journal" => args.places.journal = PathBuf::from(value()?),
            "--state" => args.places.state = PathBuf::from(value()?),
            "--socket" => args.places.socket = Some(value()?).filter(|s| s != "none").map(PathBuf::from),
            "--bus" => args.places.bus = Some(value()?).filter(|s| s != "none"),
            "-h" | "--help" => {
                _ = std::io::stdout().write_all(HELP.as_bytes());
                return Ok(None);
            }
            "-V" | "--version" => {
                _ = writeln!(std::io::stdout(), "wattwised {}", env!("CARGO_PKG_VERSION"));
                return Ok(None);
            }
            _ => return Err(format!("'{flag}' is no option of wattwised (--help lists them)")),
        }
    }
    if args.places.config.is_empty() {
        args.places.config =
            ["/etc/wattwise/profiles.toml", "/var/lib/wattwise/profiles.toml"].map(PathBuf::from).to_vec();
    }
    Ok(Some(args))
}

fn open(root: Option<&str>) -> Result<Box<dyn Root>, String> {
    let Some(root) = root.filter(|r| *r != "this") else { return Ok(Box::new(DirRoot::this_machine())) };
    match root.strip_prefix("emulated:") {
        Some(name) => wattwise_emulator::named(name)
            .map(|e| Box::new(e) as _)
            .map_err(|e| format!("--root {root}: {e}")),
        None => DirRoot::open(root)
            .map(|r| Box::new(r) as _)
            .map_err(|e| format!("--root {root}: {e}; expected a folder or emulated:NAME")),
    }
}

fn work(args: &DaemonArgs) -> Result<u8, (u8, String)> {
    let root = open(args.root.as_deref()).map_err(|e| (2, e))?;
    if args.restore {
        return restore(&*root, &args.places).map_err(|e| (e.code(), e.to_string()));
    }
    let config = Config::read(&args.places.config).map_err(|e| (2, e.to_string()))?;
    if let Some(name) = &args.profile {
        config.profile(name).map_err(|e| (2, format!("--profile {name}: {e}")))?;
    }
    let coded = |e: DaemonError| (e.code(), e.to_string());
    if args.dry_run {
        let told = dry_run(&*root, &config, args.profile.as_deref()).map_err(coded)?;
        _ = std::io::stdout().write_all(told.as_bytes());
        return Ok(0);
    }
    if args.root.as_ref().is_some_and(|r| r.starts_with("emulated:")) {
        let why = "an emulated machine ends with the daemon; --dry-run shows what it would do, 'wattwise emulate NAME DIR' mounts one";
        return Err((2, why.to_owned()));
    }
    run(&*root, &args.places, args.profile.as_deref()).map_err(coded)
}

fn main() -> ExitCode {
    let args = match parse(std::env::args().skip(1)) {
        Ok(Some(args)) => args,
        Ok(None) => return ExitCode::SUCCESS,
        Err(why) => {
            say(&why);
            return ExitCode::from(2);
        }
    };
    match work(&args) {
        Ok(code) => ExitCode::from(code),
        Err((code, why)) => {
            say(&why);
            ExitCode::from(code)
        }
    }
}
