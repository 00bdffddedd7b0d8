//! `run`: one measured run of a command, under settings that are held meanwhile.

use crate::args::output;
use crate::args::output::{OutputPath, written};
use crate::args::root as hardware;
use crate::args::settings::ArmArgs;
use crate::exit::{Failure, Outcome, print_json};
use crate::machine::step_back::step_back;
use crate::model::machine;
use crate::show::run::{RunResult, SCHEMA, text};
use crate::show::screen::{detail, say, tell};
use wattwise_control::hold::hold;
use wattwise_control::powerctl::WantedProfile;
use wattwise_live::run::child::{CommandJob, Signals};
use wattwise_live::run::measure;
use wattwise_live::run::observe::Observer;

#[derive(clap::Args)]
#[command(
    after_help = "The figures go to standard error (or to --output), so that the command's own output stays whole;\n\
    the exit status is the command's."
)]
pub(crate) struct RunArgs {
    /// Hold meanwhile: a governor, settings (governor=powersave,max=60%), or the file of a policy (of 'tune') or a profile
    #[arg(long, short, value_name = "POLICY")]
    policy: Option<String>,
    /// Run its threads at a T-state, speed or preference of their own, by the powerctl module (kernel/powerctl):
    /// tstate=8,khz=1200000,epp=192
    #[arg(long, value_name = "PROFILE")]
    thread_profile: Option<String>,
    /// Where nothing meters energy, the machine model whose watts stand in; 'this' is the machine itself, as calibrated, else
    /// estimated
    #[arg(long, value_name = "MACHINE", default_value = machine::THIS)]
    watts_of: String,
    /// Write the figures to a file, as JSON (schema wattwise.run/1)
    #[arg(long, short, value_name = "FILE")]
    output: Option<OutputPath>,
    /// Print the figures as JSON on standard output, after what the command prints
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    root: hardware::RootArgs,
    /// The command and its arguments
    #[arg(last = true, value_name = "COMMAND", required = true)]
    command: Vec<String>,
}

pub(crate) fn run(args: &RunArgs) -> Outcome {
    let running = args.root.open_running("run")?;
    let root = &running.root;
    let prices = machine::prices(&args.watts_of, &**root)?;
    let wishes = ArmArgs { root: &**root }.wishes(args.policy.as_deref().unwrap_or("current"))?;
    let profile = args.thread_profile.as_deref().map(str::parse::<WantedProfile>).transpose();
    let profile = profile.map_err(|e| Failure::input(format!("--thread-profile {e}")))?;
    let file = output::open("--output", args.output.as_ref())?;
    let signals = Signals::catch().map_err(Failure::work)?;
    let mut observer = Observer::open(&**root, prices.as_ref());
    detail!("machine: {}; energy {}", root.describe(), observer.energy_comes_from());
    // A daemon that follows the mains would change what is measured.
    let changes = !wishes.settings.is_empty() || wishes.cores.is_some();
    let _paused = if changes { step_back(&**root, "wattwise run")? } else { None };
    let (journal, command) = (args.root.journal()?, crate::args::command_line());
    let mut held = hold(&**root, &journal, &command, &wishes, &|| signals.reason())
        .map_err(|e| Failure::from(e).by_signal(signals.caught()))?;
    let job = CommandJob { command: args.command.clone(), profile, ..CommandJob::default() };
    let (measured, ended) = measure(&mut observer, &job, &signals)
        .map_err(|e| Failure { code: e.code(), message: e.to_string() })?;
    if ended.speeds_withdrawn {
        say!(
            "--thread-profile: a cpufreq governor or driver took the speeds meanwhile: the profile's was not in force all the time"
        );
    }
    let mut altered = false;
    if let Some(held) = &mut held {
        let restored = held.undo();
        altered = !restored.failed.is_empty();
        if altered || !restored.foreign.is_empty() {
            say!("{restored}");
        }
    }
    let report = RunResult {
        schema: SCHEMA.to_owned(),
        command: args.command.clone(),
        policy: args.policy.clone(),
        mean_w: measured.mean_w(),
        measured,
    };
    if let Some(mut file) = file {
        let text = serde_json::to_writer_pretty(&mut file.out, &report).map_err(std::io::Error::from);
        written(&file.name, text.and_then(|()| file.out.finish()))?;
    }
    if args.json {
        print_json(&report)?;
    } else if args.output.is_none() {
        tell(&text(&report));
    }
    // A machine left altered is a failure, whatever the command said.
    Ok(if altered { 1 } else { report.measured.exit_code })
}
