//! A sample, drawn: heading, policy, watts, CPUs, programs, keys. From 80x24 to 200x60, whatever is left out is counted.

use super::view::ShownSample;
use ratatui::buffer::Buffer;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Borders, Cell, Paragraph, Row, Table, Widget};
use wattwise_figure::units::show_khz;
use wattwise_live::top::sample::{CpuSample, InForce, Sample};

/// From this width on programs stand beside the CPUs, else below.
const WIDE: u16 = 120;
/// Width of the programs beside the CPUs.
const TASKS: u16 = 46;
/// Programs below the CPUs.
const TASKS_BELOW: u16 = 7;

const DIM: Style = Style::new().add_modifier(Modifier::DIM);
const BOLD: Style = Style::new().add_modifier(Modifier::BOLD);

/// Before the first sample.
pub(super) fn waiting(area: Rect, buffer: &mut Buffer) {
    Paragraph::new("wattwise top: the first sample takes a second").render(area, buffer);
}

/// The whole page.
pub(super) fn page(area: Rect, buffer: &mut Buffer, shown: &ShownSample) {
    let policy = policy_lines(&shown.sample.policy, area.width);
    let watts = watts_lines(&shown.sample, area.width);
    let fixed = |lines: &[Line<'_>]| Constraint::Length(u16::try_from(lines.len()).unwrap_or(1));
    let [head, in_force, energy, body, keys] = Layout::vertical([
        Constraint::Length(1),
        fixed(&policy),
        fixed(&watts),
        Constraint::Min(4),
        Constraint::Length(1),
    ])
    .areas(area);
    heading(&shown.sample, head.width).render(head, buffer);
    Paragraph::new(policy).render(in_force, buffer);
    Paragraph::new(watts).render(energy, buffer);
    let (left, right) = match area.width >= WIDE {
        true => {
            let [left, right] =
                Layout::horizontal([Constraint::Min(60), Constraint::Length(TASKS)]).areas(body);
            (left, right)
        }
        false => {
            let [above, below] =
                Layout::vertical([Constraint::Min(5), Constraint::Length(TASKS_BELOW)]).areas(body);
            (above, below)
        }
    };
    cpus(left, buffer, shown);
    tasks(right, buffer, &shown.sample);
    footer(shown).render(keys, buffer);
}

/// The page as plain text.
pub(super) fn plain(shown: &ShownSample, columns: u16, rows: u16) -> String {
    let area = Rect::new(0, 0, columns, rows);
    let mut buffer = Buffer::empty(area);
    page(area, &mut buffer, shown);
    let mut out = String::new();
    for y in 0..rows.saturating_sub(1) {
        let line: String = (0..columns).map(|x| buffer[(x, y)].symbol()).collect();
        if !line.trim().is_empty() {
            out += line.trim_end();
            out.push('\n');
        }
    }
    out
}

fn watts(w: f64) -> String {
    match w {
        _ if w >= 100.0 => format!("{w:.0} W"),
        _ if w >= 10.0 => format!("{w:.1} W"),
        _ => format!("{w:.2} W"),
    }
}

/// Which machine, and its figures at the right.
fn heading(s: &Sample, width: u16) -> Line<'static> {
    let mut figures = vec![s.watts.map_or_else(|| "watts unavailable".to_owned(), watts)];
    figures.extend(s.celsius.map(|c| format!("{c:.0} °C")));
    figures.push(match (s.power_from.as_str(), s.charge) {
        (from, Some(charge)) => format!("{from} {:.0} %", charge * 100.0),
        (from, None) => from.to_owned(),
    });
    figures.extend(s.own.map(|own| format!("top itself {:.1} %", own * 100.0)));
    let figures = figures.join("  ");
    let room = usize::from(width).saturating_sub(figures.chars().count() + 2);
    let name = cut(&format!("{}, {} CPUs", s.machine, s.cpus.len()), room);
    let gap = " ".repeat(usize::from(width).saturating_sub(name.chars().count() + figures.chars().count()));
    Line::from(vec![Span::styled(name, BOLD), Span::raw(gap), Span::styled(figures, BOLD)])
}

/// The policy in force, and why, where somebody says so.
fn policy_lines(p: &InForce, width: u16) -> Vec<Line<'static>> {
    let mut parts: Vec<String> = Vec::new();
    parts.extend(p.driver.clone());
    if !p.governors.is_empty() {
        parts.push(format!("governor {}", p.governors.join("/")));
    }
    if !p.epps.is_empty() {
        parts.push(format!("epp {}", p.epps.join("/")));
    }
    parts.extend(p.limits_khz.map(|(a, b)| format!("{} to {}", show_khz(a), show_khz(b))));
    parts.extend(p.boost.map(|on| if on { "boost on".to_owned() } else { "boost off".to_owned() }));
    parts.extend(p.profile.as_ref().map(|name| format!("profile {name}")));
    parts.extend(p.idle_governor.as_ref().map(|name| format!("idle {name}")));
    if parts.is_empty() {
        parts.push("the kernel shows no policy".to_owned());
    }
    let mut lines = wrapped("policy  ", &parts, width);
    if let Some(why) = &p.why {
        lines.push(Line::from(cut(&format!("        {why}"), width.into())));
    }
    lines
}

/// Watts by domain. They lie in each other, so nothing is added.
fn watts_lines(s: &Sample, width: u16) -> Vec<Line<'static>> {
    match s.domains.is_empty() {
        true => vec![Line::styled(cut(&format!("watts   {}", s.energy), width.into()), DIM)],
        false => {
            let parts: Vec<String> =
                s.domains.iter().map(|d| format!("{} {}", d.name, watts(d.watts))).collect();
            wrapped("watts   ", &parts, width)
        }
    }
}

/// Parts after a name, over at most three lines.
fn wrapped(name: &str, parts: &[String], width: u16) -> Vec<Line<'static>> {
    let mut lines = vec![name.to_owned()];
    let indent = " ".repeat(name.len());
    for part in parts {
        let line = lines.last_mut().expect("one at least");
        let fresh = line.len() <= name.len();
        if !fresh && line.chars().count() + part.chars().count() + 3 > width.into() {
            if lines.len() == 3 {
                break;
            }
            lines.push(format!("{indent}{part}"));
            continue;
        }
        *line += if fresh { "" } else { " · " };
        *line += part;
    }
    lines.into_iter().map(|l| Line::from(cut(&l, width.into()))).collect()
}

/// A text of at most `most` characters.
fn cut(text: &str, most: usize) -> String {
    match text.chars().count() > most {
        true => text.chars().take(most.saturating_sub(1)).collect::<String>() + "…",
        false => text.to_owned(),
    }
}

/// A bar of eight characters.
fn bar(share: f64) -> String {
    const FULL: usize = 8;
    let eighths = (share.clamp(0.0, 1.0) * FULL as f64 * 8.0).round() as usize;
    let part = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"][eighths % 8];
    format!("{}{part}", "█".repeat(eighths / 8))
}

fn share(x: f64) -> String {
    if x > 0.0 && x < 0.0005 { "0".to_owned() } else { format!("{:.1}", x * 100.0) }
}

/// The CPUs, and how many there is no room for.
fn cpus(area: Rect, buffer: &mut Buffer, shown: &ShownSample) {
    let s = &shown.sample;
    let hybrid = s.cpus.iter().any(|c| c.kind.is_some());
    // The deepest states are what one looks for: where there is no room, the shallow ones go.
    let fixed = 4 + 10 + 7 + 10 + 9 + if hybrid { 7 } else { 0 };
    let room = usize::from(area.width.saturating_sub(fixed) / 8);
    let first = s.states.len().saturating_sub(room);
    let mut head =
        vec!["cpu".to_owned(), "busy".to_owned(), "%".to_owned(), "speed".to_owned(), "wakes/s".to_owned()];
    let mut widths = [4, 9, 6, 10, 8].map(Constraint::Length).to_vec();
    if hybrid {
        head.insert(1, "kind".to_owned());
        widths.insert(1, Constraint::Length(7));
    }
    for name in &s.states[first..] {
        head.push(cut(name, 7));
        widths.push(Constraint::Length(7));
    }
    let rows_room = usize::from(area.height.saturating_sub(2));
    let scroll = shown.view.scroll.min(s.cpus.len().saturating_sub(rows_room));
    let left = s.cpus.len().saturating_sub(scroll + rows_room);
    let rows = s.cpus.iter().skip(scroll).take(rows_room).map(|c| row(c, first, hybrid));
    // Names and bars begin at the left, all else is numbers.
    let words = if hybrid { 3 } else { 2 };
    let cell = |(at, text): (usize, String)| if at < words { Cell::from(text) } else { right(text) };
    let header = Row::new(head.into_iter().enumerate().map(cell)).style(BOLD);
    let more = if left > 0 { format!(", {left} more below") } else { String::new() };
    let title = format!(" CPUs by {}{more}; C-states in % of the time ", shown.view.sort.word());
    let table = Table::new(rows, widths)
        .header(header)
        .block(Block::new().borders(Borders::TOP).border_style(DIM).title(title));
    Widget::render(table, area, buffer);
}

/// Numbers stand under each other by their last digit.
fn right(text: String) -> Cell<'static> {
    Cell::from(Line::from(text).right_aligned())
}

fn row(c: &CpuSample, first: usize, hybrid: bool) -> Row<'static> {
    let none = || "-".to_owned();
    let busy = c.busy.unwrap_or(0.0);
    let colour = match busy {
        b if b > 0.8 => Color::Red,
        b if b > 0.3 => Color::Yellow,
        _ => Color::Green,
    };
    let mut cells = vec![
        Cell::from(c.cpu.to_string()),
        Cell::from(bar(busy)).style(Style::new().fg(colour)),
        right(c.busy.map_or_else(none, share)),
        right(c.khz.map_or_else(none, show_khz)),
        right(c.wakeups.map_or_else(none, |w| format!("{w:.0}"))),
    ];
    if hybrid {
        cells.insert(1, Cell::from(c.kind.as_deref().map_or_else(none, |k| cut(k, 6))));
    }
    cells.extend(c.idle.iter().skip(first).map(|x| right(share(*x))));
    Row::new(cells)
}

/// Programs by their wake-ups.
fn tasks(area: Rect, buffer: &mut Buffer, s: &Sample) {
    let block = Block::new().borders(Borders::TOP).border_style(DIM).title(" programs by wake-ups ");
    if let Some(why) = &s.tasks_missing {
        Paragraph::new(format!("unavailable: {why}")).block(block).render(area, buffer);
        return;
    }
    let rows = s.tasks.iter().take(area.height.saturating_sub(2).into()).map(|t| {
        Row::new([
            right(format!("{:.0}", t.wakeups)),
            right(share(t.busy)),
            right(t.pid.to_string()),
            Cell::from(cut(&t.name, 20)),
        ])
    });
    let head = ["wakes/s", "% CPU", "pid"].map(|name| right(name.to_owned()));
    let header = Row::new(head.into_iter().chain([Cell::from("program")])).style(BOLD);
    let table = Table::new(rows, [9, 7, 8, 20].map(Constraint::Length)).header(header).block(block);
    Widget::render(table, area, buffer);
}

/// Keys, and what is going on.
fn footer(shown: &ShownSample) -> Line<'static> {
    let mut spans = vec![Span::raw("q quit  p pause  s sort  r record  ↑↓ scroll")];
    let mut say = |text: String, colour: Color| {
        spans.push(Span::raw("  "));
        spans.push(Span::styled(text, Style::new().fg(colour).add_modifier(Modifier::REVERSED)));
    };
    if shown.view.paused {
        say(" paused ".to_owned(), Color::Yellow);
    }
    if let Some(file) = &shown.view.recording {
        say(format!(" recording to {file} "), Color::Red);
    }
    if shown.view.ended {
        say(" the capture is over ".to_owned(), Color::Cyan);
    } else if shown.view.playing {
        say(format!(" capture at {:.0} s ", shown.sample.at_s), Color::Cyan);
    }
    Line::from(spans)
}
