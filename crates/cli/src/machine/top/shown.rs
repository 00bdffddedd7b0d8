//! A sample as text, and the screen.

use super::view::TopView;
use super::{Sort, Time, TopRun, draw, recorded, screen};
use crate::args::output::OutputPath;
use crate::args::state;
use crate::exit::{Failure, Outcome};
use crate::show::screen::{Screen, say};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use wattwise_live::top::sample::Sample;

/// A sample as plain text: all CPUs, whatever a screen holds.
pub(super) fn text(sample: &Sample, sort: Sort) -> Result<String, Failure> {
    let rows = sample.cpus.len() + sample.tasks.len().min(10) + 16;
    let view = TopView { sort, ..TopView::default() };
    let columns = u16::try_from(Screen::Out.look().columns.clamp(80, 200)).unwrap_or(80);
    Ok(draw::plain(&view.shown(sample), columns, u16::try_from(rows).unwrap_or(u16::MAX)))
}

/// The screen, until it is left.
pub(super) fn on_a_terminal(run: TopRun<'_>) -> Outcome {
    let TopRun { args, root, mut watch, time, signals } = run;
    let every = args.every.max(Duration::from_secs(1));
    let mut view =
        TopView { sort: args.sort, playing: matches!(time, Time::Played(_)), ..TopView::default() };
    let over = AtomicBool::new(false);
    let (ended, recorded) = std::thread::scope(|scope| {
        let mut recording = None;
        let mut file = args.record.clone();
        let mut result = Ok(());
        let mut begin = args.record.is_some();
        let ended = screen::with(|terminal| {
            let mut sample: Option<Sample> = None;
            let mut next = Instant::now() + every.min(Duration::from_secs(1));
            loop {
                if std::mem::take(&mut begin) {
                    over.store(false, Ordering::Relaxed);
                    let path = file.take().map_or_else(default_capture, Ok)?;
                    let file = path.open("--record")?;
                    view.recording = Some(path.display().to_string());
                    recording = Some(scope.spawn(|| recorded(root, file, Duration::from_secs(1), &over)));
                }
                screen::draw(terminal, &view, sample.as_ref())?;
                let wanted = screen::wait(next, &signals, &mut view, sample.as_ref())?;
                if signals.caught().is_some() || wanted == screen::Wanted::Quit {
                    return Ok(());
                }
                if wanted == screen::Wanted::Record {
                    match recording.take() {
                        None => begin = true,
                        Some(running) => {
                            over.store(true, Ordering::Relaxed);
                            view.recording = None;
                            result =
                                running.join().unwrap_or_else(|_| Err(Failure::work("the recording failed")));
                        }
                    }
                }
                if Instant::now() >= next {
                    next = Instant::now() + every;
                    match time.next() {
                        Some(at) => {
                            let new = watch.sample(at);
                            if !view.paused {
                                sample = Some(new);
                            }
                        }
                        None => view.ended = true,
                    }
                }
            }
        });
        over.store(true, Ordering::Relaxed);
        let last = recording.map(|r| r.join().unwrap_or_else(|_| Err(Failure::work("the recording failed"))));
        (ended, last.unwrap_or(result))
    });
    ended?;
    recorded?;
    if let Some(signal) = signals.caught() {
        say!("signal {signal} came");
        return Ok(128 + signal as u8);
    }
    Ok(0)
}

fn default_capture() -> Result<OutputPath, Failure> {
    let name = format!("top-{}.tar.zst", state::now());
    Ok(state::folder("--record")?.join(name).into())
}
