//! Names as a stranger would choose them who wants what shows them to act: a shell, a terminal, a browser, a spreadsheet, Markdown.
//!
//! Tests of several crates use them (`#[path]`). The worst that any of them does where it is not stopped is an empty file `x`.

use wattwise_figure::Random;

/// Each acts somewhere, or helps another to.
const PARTS: &[&str] = &[
    // Shells.
    "$(touch x)",
    "`touch x`",
    "; touch x #",
    "=off; touch x #",
    "&& touch x",
    "| touch x",
    "> x",
    "\ntouch x\n",
    "'",
    "''",
    "\"",
    "\\",
    "\\'",
    "#",
    "!!",
    "~",
    "*",
    "?",
    "${IFS}",
    "$HOME",
    "{a,b}",
    "& touch x &",
    "-n",
    "--report=x",
    "=ls",
    "%s%n",
    "()",
    // Terminals.
    "\u{1b}[2J",
    "\u{1b}]0;title\u{7}",
    "\u{9b}31m",
    "\u{202e}",
    "\u{2066}",
    "\u{200f}",
    "\0",
    "\r",
    "\u{8}",
    "\u{7f}",
    "\u{85}",
    "\u{2028}",
    "\u{1b}[1m",
    "\u{61c}",
    "\u{206a}",
    "\u{b}",
    // HTML.
    "<script>alert(1)</script>",
    "</script>",
    "<!--",
    "-->",
    "\"><img src=x onerror=alert(1)>",
    "' onmouseover='alert(1)",
    "&lt;b&gt;",
    "&#60;script&#62;",
    "<svg/onload=alert(1)>",
    "</title>",
    "</style>",
    "javascript:alert(1)",
    "]]>",
    "<![CDATA[",
    "<b>",
    "</td></tr>",
    // CSV.
    "=1+1",
    "+1",
    "-1+1",
    "@SUM(A1)",
    "\t=1",
    ";=1",
    ",=1",
    "\"=1",
    "\u{ff1d}1",
    "=cmd|' /C calc'!A0",
    // Markdown.
    "|",
    "[x](http://e.vil)",
    "![x](y)",
    "https://e.vil",
    "www.e.vil",
    "a@b.cc",
    "**b**",
    "# h",
    "- i",
    "1. x",
    "```",
    "~~~",
    "\\|",
    "&copy;",
    "===",
    "---",
    "[^1]",
    "<http://e.vil>",
    "$x$",
    "~~s~~",
    "> q",
    "+ i",
    "2) y",
    ":::",
    // Lines of a recording.
    "a-1 [0] 1: b: c",
    "-1 0d..2 1: x:",
    "[000]",
    ": sched_switch:",
    " ==> ",
    " prev_pid=7",
    " pid=7 prio=9",
    " next_comm=",
    "#P:7",
    // What is usual.
    "C6",
    "a",
    "Web Content",
    "kworker/0:1",
    "ü漢",
    " ",
    "schedutil:rate_limit=1ms+teo",
    "",
];

/// So many names, the same for a seed; each part alone comes first.
pub(crate) fn names(seed: u64, n: usize) -> Vec<String> {
    let mut random = Random::new(seed);
    let made = |i: usize| match PARTS.get(i) {
        Some(part) => (*part).to_owned(),
        None => (0..1 + random.below(5)).map(|_| PARTS[random.below(PARTS.len())]).collect(),
    };
    (0..n).map(made).collect()
}

/// The characters of C0 (but a line's end and a tab), DEL and C1, and those of Unicode that change the order of letters: written out
/// here, so that a test does not ask the code under test.
pub(crate) fn acts_on_a_terminal(text: &str) -> Option<char> {
    text.chars().find(|&c| {
        let code = u32::from(c);
        (code < 0x20 && c != '\n' && c != '\t')
            || (0x7f..=0x9f).contains(&code)
            || [0x61c, 0x200e, 0x200f].contains(&code)
            || (0x2028..=0x202e).contains(&code)
            || (0x2066..=0x206f).contains(&code)
    })
}
