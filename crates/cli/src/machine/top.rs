//! `top`: a machine as it works, on a terminal or in one sample.

#[cfg(feature = "top")]
mod draw;
#[cfg(feature = "top")]
mod screen;
#[cfg(feature = "top")]
mod shown;
#[cfg(all(test, feature = "top"))]
mod tests;
#[cfg(feature = "top")]
mod view;

use crate::args::duration;
use crate::args::output::{OutputPath, written};
use crate::args::root::RootArgs;
use crate::exit::{Failure, Outcome, print, print_json_as};
use crate::show::screen::Screen;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use wattwise_child::Signals;
use wattwise_hw::capture::{self, CaptureOptions};
use wattwise_hw::clock::Moment;
use wattwise_hw::root::Root;
use wattwise_hw::root::played::Played;
use wattwise_live::top::sample::SCHEMA;
use wattwise_live::top::watch::{TopWatch, moment};

#[cfg(feature = "top")]
use shown::{on_a_terminal, text};

#[derive(clap::Args)]
#[command(
    after_help = "Keys: q quits, p pauses, s sorts by the next column, r records to a capture and stops, arrows and Page keys scroll.\n\
    It asks for no rights; without root, energy may be unavailable ('wattwise info energy' says why).\n\n  \
    wattwise top\n  \
    wattwise top --once --json            one sample\n  \
    wattwise top --root laptop.tar.zst    a capture with a series (capture --duration), as it was"
)]
pub(crate) struct TopArgs {
    /// Time of a sample, at least 1s on a terminal
    #[arg(long, value_name = "DURATION", default_value = "2s", value_parser = duration)]
    every: Duration,
    /// Sort the CPUs by this
    #[arg(long, value_enum, default_value = "cpu")]
    sort: Sort,
    /// Print one sample as text, and end
    #[arg(long)]
    once: bool,
    /// Record to this capture from the start; the key r stops and starts [default for r: top-TIME.tar.zst in wattwise's state folder]
    #[arg(long, value_name = "FILE")]
    record: Option<OutputPath>,
    /// Print one sample as JSON (schema wattwise.top/1), and end
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    root: RootArgs,
}

/// By what the CPUs stand in order.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Sort {
    /// Their number
    #[default]
    Cpu,
    /// Time at work, the most first
    Busy,
    /// Speed, the highest first
    Speed,
    /// Wake-ups, the most first
    Wakeups,
}

/// Where time comes from: the clock, or the moments of a capture.
enum Time<'t> {
    Clock,
    Played(&'t Played),
}

impl Time<'_> {
    /// The time at which the next sample ends, once it is there. None after the last moment of a capture.
    fn next(&self) -> Option<Moment> {
        match self {
            Time::Clock => Some(moment()),
            Time::Played(played) => played.advance().map(at),
        }
    }
}

/// A machine that is watched: what was asked, where its samples and their times come from, and what ends it.
struct TopRun<'r> {
    args: &'r TopArgs,
    root: &'r dyn Root,
    watch: TopWatch<'r>,
    time: Time<'r>,
    signals: Signals,
}

/// A capture's own time.
fn at(s: f64) -> Moment {
    Moment { monotonic_s: s, boot_s: s }
}

pub(crate) fn run(args: &TopArgs) -> Outcome {
    if args.every < Duration::from_millis(50) {
        return Err(Failure::input("--every: expected 50ms or more, such as 2s"));
    }
    #[cfg(not(feature = "top"))]
    if !args.json {
        return Err(not_built());
    }
    if let Some(path) = args.root.capture() {
        let played = capture::play(path).map_err(|e| Failure::input(format!("--root {e}")))?;
        if !played.moves() {
            return Err(Failure::impossible(format!(
                "top --root {}: has no series, so nothing moves in it; expected a capture made with 'wattwise capture --duration 30s -o FILE'",
                path.display()
            )));
        }
        return watched(args, &played, Time::Played(&played));
    }
    let running = args.root.open_watched("top")?;
    args.root.tell_left(&*running.root)?;
    watched(args, &*running.root, Time::Clock)
}

fn watched(args: &TopArgs, root: &dyn Root, time: Time<'_>) -> Outcome {
    let once = args.once || args.json;
    if !once && !Screen::Out.is_terminal() {
        return Err(Failure::input("top: expected a terminal; --once prints one sample, --json as JSON"));
    }
    let signals = Signals::catch().map_err(Failure::work)?;
    let first = match &time {
        Time::Clock => moment(),
        Time::Played(_) => at(0.0),
    };
    let run = TopRun { args, root, watch: TopWatch::open(root, first), time, signals };
    if once { one(run) } else { on_a_terminal(run) }
}

/// One sample, printed.
fn one(run: TopRun<'_>) -> Outcome {
    let TopRun { args, root, mut watch, time, signals } = run;
    let file = args.record.as_ref().map(|path| path.open("--record")).transpose()?;
    let (over, every) = (AtomicBool::new(false), args.every);
    let (sample, recorded) = std::thread::scope(|scope| {
        let recording = file.map(|file| scope.spawn(|| recorded(root, file, every, &over)));
        if matches!(time, Time::Clock) {
            signals.sleep(every);
        }
        let sample = time.next().map(|at| watch.sample(at));
        over.store(true, Ordering::Relaxed);
        let recorded =
            recording.map(|r| r.join().unwrap_or_else(|_| Err(Failure::work("the recording failed"))));
        (sample, recorded)
    });
    recorded.transpose()?;
    if let Some(signal) = signals.caught() {
        return Ok(128 + signal as u8);
    }
    let sample = sample.ok_or_else(|| Failure::input("--root: the capture has one moment only"))?;
    match args.json {
        true => print_json_as(SCHEMA, &sample)?,
        false => print(&text(&sample, args.sort)?)?,
    }
    Ok(0)
}

/// Records until told to stop.
fn recorded(
    root: &dyn Root,
    file: crate::args::output::OpenOutput,
    every: Duration,
    over: &AtomicBool,
) -> Result<(), Failure> {
    let length = Duration::from_secs(30 * 24 * 3600);
    let options = CaptureOptions { length, every, acpi: false, registers: Vec::new() };
    let head = capture::capture(root, &options, file.out, &|| over.load(Ordering::Relaxed));
    written(&file.name, head).map(|_| ())
}

/// Without its library nothing is drawn.
#[cfg(not(feature = "top"))]
fn text(_: &wattwise_live::top::sample::Sample, _: Sort) -> Result<String, Failure> {
    Err(not_built())
}

#[cfg(not(feature = "top"))]
fn on_a_terminal(_: TopRun<'_>) -> Outcome {
    Err(not_built())
}

#[cfg(not(feature = "top"))]
fn not_built() -> Failure {
    Failure::impossible(
        "top: this wattwise is built without the screen; --json prints a sample; install it with --features top",
    )
}
