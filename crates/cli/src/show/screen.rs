//! The one way by which text reaches a terminal, a pipe or a log.
//!
//! Names of tasks, files, machines and policies come from strangers, and so do the errors that quote them. They all end
//! up in what is printed here, where every character is shown that a terminal would act on instead. Only our own
//! styles pass, and only where colours are wanted.

use crate::exit::Failure;
use std::io::{IsTerminal, Write};
use std::sync::atomic::{AtomicBool, AtomicI8, Ordering};
use wattwise_figure::on_screen;

/// Whether standard output has something else: an output file named `-`.
static LEFT: AtomicBool = AtomicBool::new(false);

/// Leaves standard output to a result: what is printed from now on goes to standard error.
pub(crate) fn leave_standard_output() {
    LEFT.store(true, Ordering::Relaxed);
}

/// Whether there is more to do than to print.
static GOES_ON: AtomicBool = AtomicBool::new(false);

/// From now on a reader of standard output who has gone away ends nothing: settings are held, or are to be left in force.
pub(crate) fn go_on_without_a_reader() {
    GOES_ON.store(true, Ordering::Relaxed);
}

/// How much is said beside results: below 0 only failures, above 0 also what is read and decided.
static SAID: AtomicI8 = AtomicI8::new(0);

/// How much is to be said from now on.
pub(crate) fn say_only(quiet: bool, verbose: bool) {
    SAID.store(i8::from(verbose) - i8::from(quiet), Ordering::Relaxed);
}

/// Whether what is beside the result is to be said (not with `--quiet`).
pub(crate) fn notes() -> bool {
    SAID.load(Ordering::Relaxed) >= 0
}

/// Whether what is read and decided is to be said (`--verbose`).
pub(crate) fn details() -> bool {
    SAID.load(Ordering::Relaxed) > 0
}

/// Whether a line of progress is shown.
pub(crate) fn shows_progress() -> bool {
    notes() && Screen::Err.can_rewrite()
}

/// What the tables' styles are written as: bold, dim, green, and back.
const STYLES: [&str; 6] = ["\x1b[0m", "\x1b[1m", "\x1b[2m", "\x1b[22m", "\x1b[38;5;10m", "\x1b[39m"];

/// Columns of a pipe, a log and a small terminal.
pub(crate) const COLUMNS: usize = 80;

/// A line in bold where styles are wanted.
pub(crate) fn bold(text: &str, colour: bool) -> String {
    if colour { format!("\x1b[1m{text}\x1b[0m") } else { text.to_owned() }
}

/// How a text is to look.
#[derive(Clone, Copy)]
pub(crate) struct TextStyle {
    /// With styles.
    pub(crate) colour: bool,
    /// Width at most, in columns.
    pub(crate) columns: usize,
    /// Lines of the terminal; none for what has no height.
    pub(crate) lines: Option<usize>,
}

impl TextStyle {
    /// A text in a page, which has room.
    pub(crate) const PAGE: TextStyle = TextStyle { colour: false, columns: 160, lines: None };
    /// A text for files and tests.
    #[cfg(test)]
    pub(crate) const PLAIN: TextStyle = TextStyle { colour: false, columns: COLUMNS, lines: None };

    /// The first of these texts that stands above the prompt, which takes the last line of a terminal; else the last of them.
    pub(crate) fn first_that_fits(self, texts: impl Iterator<Item = String>) -> String {
        let mut last = String::new();
        for text in texts {
            last = text;
            let rows = |line: &str| printed(line).div_ceil(self.columns).max(1);
            if self.lines.is_none_or(|lines| last.lines().map(rows).sum::<usize>() < lines) {
                break;
            }
        }
        last
    }
}

/// Columns that a line takes, without its styles.
fn printed(line: &str) -> usize {
    let styles = STYLES.iter().map(|style| line.matches(style).count() * style.len());
    line.chars().count() - styles.sum::<usize>()
}

/// Where text goes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Screen {
    /// Standard output: results.
    Out,
    /// Standard error: what is said beside them.
    Err,
}

impl Screen {
    /// Whether it is a terminal.
    pub(crate) fn is_terminal(self) -> bool {
        match self {
            Screen::Out => std::io::stdout().is_terminal(),
            Screen::Err => std::io::stderr().is_terminal(),
        }
    }

    /// Whether to use colours there.
    pub(crate) fn colour(self) -> bool {
        wants_colour(|name| std::env::var(name).ok(), self.is_terminal())
    }

    /// Colours and columns there.
    pub(crate) fn look(self) -> TextStyle {
        let size = match self {
            Screen::Out => rustix::termios::tcgetwinsize(std::io::stdout()),
            Screen::Err => rustix::termios::tcgetwinsize(std::io::stderr()),
        };
        let columns = size.map_or(0, |size| usize::from(size.ws_col));
        // A terminal that does not know its size says 0.
        let lines = size.ok().map(|size| usize::from(size.ws_row)).filter(|&lines| lines > 0);
        TextStyle { colour: self.colour(), columns: columns.max(COLUMNS), lines }
    }

    /// Whether a line there can be written over: progress.
    pub(crate) fn can_rewrite(self) -> bool {
        self.is_terminal() && !is_dumb(&|name: &str| std::env::var(name).ok())
    }
}

fn is_dumb(env: &dyn Fn(&str) -> Option<String>) -> bool {
    env("TERM").is_some_and(|term| term == "dumb")
}

/// As no-color.org and force-color.org have it: NO_COLOR is the strongest, then FORCE_COLOR, then what the terminal is.
fn wants_colour(env: impl Fn(&str) -> Option<String>, terminal: bool) -> bool {
    let set = |name: &str| env(name).filter(|value| !value.is_empty());
    match (set("NO_COLOR"), set("FORCE_COLOR")) {
        (Some(_), _) => false,
        (None, Some(force)) => force != "0",
        (None, None) => terminal && !is_dumb(&env),
    }
}

/// A text as it may be written: on_screen, but for our own styles.
fn styled(text: &str, colour: bool) -> String {
    if !colour {
        return on_screen(text).into_owned();
    }
    let mut shown = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('\x1b') {
        shown += &on_screen(&rest[..at]);
        let style = STYLES.iter().find(|style| rest[at..].starts_with(**style));
        let taken = style.map_or(1, |style| style.len());
        match style {
            Some(style) => shown += style,
            None => shown += &on_screen(&rest[at..at + taken]),
        }
        rest = &rest[at + taken..];
    }
    shown + &on_screen(rest)
}

/// Prints to standard output; a reader who has gone away (`| head`) ends the program in peace.
pub(crate) fn print(text: &str) -> Result<(), Failure> {
    if LEFT.load(Ordering::Relaxed) {
        tell(text);
        return Ok(());
    }
    let text = styled(text, Screen::Out.colour());
    written(std::io::stdout().lock().write_all(text.as_bytes()))
}

/// What came of printing.
pub(crate) fn written(done: std::io::Result<()>) -> Result<(), Failure> {
    match done.and_then(|()| std::io::stdout().flush()) {
        Err(e) if e.kind() == std::io::ErrorKind::BrokenPipe => {
            if !GOES_ON.load(Ordering::Relaxed) {
                std::process::exit(0);
            }
            Ok(())
        }
        r => r.map_err(Failure::work),
    }
}

/// Prints a script or a page of ours as it is: no stranger's text is in it.
pub(crate) fn print_generated(text: &[u8]) -> Result<(), Failure> {
    written(std::io::stdout().lock().write_all(text))
}

/// Prints a value as JSON. What a terminal acts on is written as JSON's own escapes, which mean the same.
pub(crate) fn print_json(value: &impl serde::Serialize) -> Result<(), Failure> {
    let text = serde_json::to_string_pretty(value).map_err(Failure::work)?;
    print(&(wattwise_figure::on_screen_json(&text) + "\n"))
}

/// Says something on standard error, as it is. That nobody reads it is no failure.
pub(crate) fn tell(text: &str) {
    _ = std::io::stderr().lock().write_all(styled(text, Screen::Err.colour()).as_bytes());
}

/// Writes over the line of progress.
pub(crate) fn progress(text: &str) {
    if shows_progress() {
        _ = std::io::stderr().lock().write_all(format!("\r\x1b[K{}", on_screen(text)).as_bytes());
    }
}

/// Says a line on standard error, with our name before it; no file's or task's name in it begins another.
macro_rules! say {
    ($($words:tt)*) => {
        $crate::show::screen::tell(&format!("wattwise: {}\n", wattwise_figure::one_line(&format!($($words)*))))
    };
}
pub(crate) use say;

/// Says what is neither the result nor a failure: not with `--quiet`.
macro_rules! note {
    ($($words:tt)*) => {
        if $crate::show::screen::notes() {
            $crate::show::screen::say!($($words)*)
        }
    };
}
pub(crate) use note;

/// Says what was read and decided: only with `--verbose`.
macro_rules! detail {
    ($($words:tt)*) => {
        if $crate::show::screen::details() {
            $crate::show::screen::say!($($words)*)
        }
    };
}
pub(crate) use detail;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_are_as_asked() {
        let with = |set: &[(&str, &str)], terminal| {
            let env = |name: &str| set.iter().find(|(n, _)| *n == name).map(|(_, v)| (*v).to_owned());
            wants_colour(env, terminal)
        };
        assert!(with(&[], true) && !with(&[], false));
        assert!(
            with(&[("FORCE_COLOR", "1")], false) && with(&[("FORCE_COLOR", "3"), ("TERM", "dumb")], true)
        );
        assert!(!with(&[("FORCE_COLOR", "0")], true) && with(&[("FORCE_COLOR", "")], true));
        assert!(!with(&[("TERM", "dumb")], true) && with(&[("TERM", "xterm")], true));
        assert!(!with(&[("NO_COLOR", "1")], true) && !with(&[("NO_COLOR", "1"), ("FORCE_COLOR", "1")], true));
        assert!(with(&[("NO_COLOR", "")], true));
    }

    /// A line that is wider than the terminal takes two, styles take no room, and the prompt needs a line.
    #[test]
    fn the_first_text_that_fits_is_shown() {
        let look = TextStyle { colour: true, columns: 10, lines: Some(4) };
        let wide = "0123456789ab\n0\n1\n".to_owned();
        let bold = format!("{}\n0\n1\n", bold("0123456789", true));
        let short = "0\n".to_owned();
        let fits = |texts: &[&String]| look.first_that_fits(texts.iter().map(|t| (*t).clone()));
        assert_eq!(fits(&[&wide, &bold, &short]), bold);
        assert_eq!(fits(&[&wide, &short]), short);
        assert_eq!(fits(&[&wide]), wide, "the last one, if none fits");
        let pipe = TextStyle { lines: None, ..look };
        assert_eq!(pipe.first_that_fits([wide.clone(), short].into_iter()), wide);
    }

    #[test]
    fn only_our_own_styles_pass_and_only_where_they_are_wanted() {
        let text = "\x1b[1mbold\x1b[0m \x1b[8mhidden \x1b]0;title\x07 \x1b[38;5;10mgreen\x1b[39m \u{202e}";
        let shown = styled(text, true);
        assert_eq!(
            shown,
            "\x1b[1mbold\x1b[0m \\u{1b}[8mhidden \\u{1b}]0;title\\u{7} \x1b[38;5;10mgreen\x1b[39m \\u{202e}"
        );
        assert!(!styled(text, false).contains('\x1b'));
    }
}
