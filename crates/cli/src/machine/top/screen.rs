//! The terminal: taken, drawn on, given back on every way out (also by a panic or a signal).

use super::draw;
use super::view::TopView;
use crate::exit::Failure;
use ratatui::DefaultTerminal;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use rustix::event::{PollFd, PollFlags, poll};
use std::time::{Duration, Instant};
use wattwise_child::Signals;
use wattwise_live::top::sample::Sample;

/// Lines that the Page keys scroll by.
const PAGE: usize = 10;

/// What a key asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wanted {
    Nothing,
    Quit,
    Record,
}

/// Runs with the terminal taken. `ratatui::try_init` has a panic give it back too.
pub(super) fn with(work: impl FnOnce(&mut DefaultTerminal) -> Result<(), Failure>) -> Result<(), Failure> {
    let mut terminal =
        ratatui::try_init().map_err(|e| Failure::impossible(format!("top: the terminal: {e}")))?;
    let given_back = Back;
    let ended = work(&mut terminal);
    drop(given_back);
    ended
}

/// Gives the terminal back.
struct Back;

impl Drop for Back {
    fn drop(&mut self) {
        _ = ratatui::try_restore();
    }
}

/// Draws; what stands on the screen already is not written again.
pub(super) fn draw(
    terminal: &mut DefaultTerminal,
    view: &TopView,
    sample: Option<&Sample>,
) -> Result<(), Failure> {
    let drawn = terminal.draw(|frame| match sample {
        Some(sample) => draw::page(frame.area(), frame.buffer_mut(), &view.shown(sample)),
        None => draw::waiting(frame.area(), frame.buffer_mut()),
    });
    drawn.map(|_| ()).map_err(|e| Failure::work(format!("top: the terminal: {e}")))
}

/// Waits for the next sample's time, a key or a signal. Keys change the view.
pub(super) fn wait(
    until: Instant,
    signals: &Signals,
    view: &mut TopView,
    sample: Option<&Sample>,
) -> Result<Wanted, Failure> {
    let failed = |e: std::io::Error| Failure::work(format!("top: the terminal: {e}"));
    let left = until.saturating_duration_since(Instant::now());
    let keys = std::io::stdin();
    let signal = signals.fd();
    let mut fds = [PollFd::new(&keys, PollFlags::IN), PollFd::new(&signal, PollFlags::IN)];
    // Interrupted by a signal: the caller looks.
    _ = poll(&mut fds, Some(&wattwise_child::timespec(left)));
    let gone = fds[0].revents().intersects(PollFlags::HUP | PollFlags::ERR);
    let mut wanted = if gone { Wanted::Quit } else { Wanted::Nothing };
    while wanted == Wanted::Nothing && event::poll(Duration::ZERO).map_err(failed)? {
        if let Event::Key(key) = event::read().map_err(failed)? {
            wanted = pressed(key, view, sample.map_or(0, |s| s.cpus.len()));
        }
    }
    Ok(wanted)
}

/// What a key does.
pub(super) fn pressed(key: KeyEvent, view: &mut TopView, cpus: usize) -> Wanted {
    if key.kind == KeyEventKind::Release {
        return Wanted::Nothing;
    }
    let last = cpus.saturating_sub(1);
    match key.code {
        KeyCode::Char('c') if key.modifiers.contains(KeyModifiers::CONTROL) => return Wanted::Quit,
        KeyCode::Char('q') | KeyCode::Esc => return Wanted::Quit,
        KeyCode::Char('r') => return Wanted::Record,
        KeyCode::Char('p' | ' ') => view.paused = !view.paused,
        KeyCode::Char('s') => (view.sort, view.scroll) = (view.sort.next(), 0),
        KeyCode::Down => view.scroll = (view.scroll + 1).min(last),
        KeyCode::Up => view.scroll = view.scroll.saturating_sub(1),
        KeyCode::PageDown => view.scroll = (view.scroll + PAGE).min(last),
        KeyCode::PageUp => view.scroll = view.scroll.saturating_sub(PAGE),
        KeyCode::Home => view.scroll = 0,
        _ => {}
    }
    Wanted::Nothing
}
