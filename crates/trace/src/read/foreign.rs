//! Files that are taken for recordings and are none that is read: what they are, and the command that makes one of them. Each kind
//! is a line of the table, told by how a file starts.

use crate::error::{FORMATS, PACKED, TraceError};

/// What a kind is called, and what to do with it; FILE stands for the file's name.
pub(crate) struct Foreign {
    pub(crate) what: &'static str,
    pub(crate) remedy: &'static str,
    is: fn(&[u8]) -> bool,
}

const KINDS: [Foreign; 20] = [
    Foreign {
        what: "packed with lz4",
        remedy: "unpack it: `lz4 -d FILE PLAIN`",
        is: |s| s.starts_with(&[0x04, 0x22, 0x4d, 0x18]),
    },
    Foreign {
        what: "packed with lzip",
        remedy: "unpack it: `lzip -dk FILE`",
        is: |s| s.starts_with(b"LZIP"),
    },
    Foreign {
        what: "packed with lzma",
        remedy: "unpack it: `xz --format=lzma -dc FILE > PLAIN`",
        is: |s| s.starts_with(&[0x5d, 0, 0]),
    },
    Foreign {
        what: "packed with lzop",
        remedy: "unpack it: `lzop -dc FILE > PLAIN`",
        is: |s| s.starts_with(&[0x89, b'L', b'Z', b'O']),
    },
    Foreign {
        what: "packed with compress",
        remedy: "unpack it: `gzip -dc FILE > PLAIN`",
        is: |s| s.starts_with(&[0x1f, 0x9d]),
    },
    Foreign {
        what: "packed with snappy",
        remedy: "unpack it: `snzip -dc FILE > PLAIN`",
        is: |s| s.starts_with(b"\xff\x06\0\0sNaPpY"),
    },
    Foreign {
        what: "a zip archive",
        remedy: "unpack it: `unzip FILE`",
        is: |s| s.starts_with(b"PK\x03\x04"),
    },
    Foreign {
        what: "a 7z archive",
        remedy: "unpack it: `7z x FILE`",
        is: |s| s.starts_with(&[b'7', b'z', 0xbc, 0xaf, 0x27, 0x1c]),
    },
    Foreign {
        what: "a tar archive",
        remedy: "unpack it: `tar xf FILE`; a machine that `wattwise capture` wrote is no recording: see `wattwise info --root FILE`",
        is: |s| s.get(257..262) == Some(b"ustar"),
    },
    Foreign {
        what: "text in UTF-32",
        remedy: "convert it: `iconv -f UTF-32 -t UTF-8 FILE > PLAIN`",
        is: |s| s.starts_with(&[0xff, 0xfe, 0, 0]) || s.starts_with(&[0, 0, 0xfe, 0xff]),
    },
    Foreign {
        what: "a recording of Perfetto's as text",
        remedy: "take the .pftrace that it was made of, and convert that with `traceconv systrace FILE trace.txt`",
        is: |s| text(s).starts_with("packet {") || text(s).starts_with("packet{"),
    },
    Foreign {
        what: "a database of Perfetto's or another SQLite file",
        remedy: "take the recording that it was made of, and convert that with `traceconv systrace FILE trace.txt`",
        is: |s| s.starts_with(b"SQLite format 3\0"),
    },
    Foreign {
        what: "a result of wattwise's",
        remedy: "show it with `wattwise report FILE`; expected a recording",
        is: |s| is_json(s) && text(s).contains("\"wattwise."),
    },
    Foreign {
        what: "JSON of Chrome's tracing",
        remedy: "if it holds systemTraceEvents (systrace), take that text: `jq -r .systemTraceEvents FILE > trace.txt`; else it has none of \
                 the scheduler's events: record with `perf record`, `trace-cmd record` or `wattwise record`",
        is: |s| {
            is_json(s)
                && ["\"traceEvents\"", "\"systemTraceEvents\"", "\"ph\"", "\"displayTimeUnit\""]
                    .iter()
                    .any(|key| text(s).contains(key))
        },
    },
    Foreign {
        what: "JSON",
        remedy: "expected a recording (perf.data, trace.dat, ftrace text or a Perfetto trace), or rt-app's JSON: a .json with an object \"tasks\"",
        is: is_json,
    },
    Foreign {
        what: "a CTF trace, such as LTTng's",
        remedy: "which is not read: record with `perf record`, `trace-cmd record` or `wattwise record`",
        is: |s| {
            [
                [0xc1, 0x1f, 0xfc, 0xc1],
                [0xc1, 0xfc, 0x1f, 0xc1],
                [0x57, 0x1d, 0xd1, 0x75],
                [0x75, 0xd1, 0x1d, 0x57],
            ]
            .iter()
            .any(|m| s.starts_with(m))
                || s.starts_with(b"/* CTF")
        },
    },
    Foreign {
        what: "perf.data of a perf before Linux 2.6.34",
        remedy: "record again with a perf of this decade",
        is: |s| s.starts_with(b"PERFFILE") || s.starts_with(b"ELIFFREP"),
    },
    Foreign {
        what: "a recording of Windows (ETL)",
        remedy: "which is not read: expected one of Linux",
        is: |s| {
            s.get(0x28..0x2c).is_some_and(|_| {
                s.windows(24).take(512).any(|w| w == b"N\0T\0 \0K\0e\0r\0n\0e\0l\0 \0L\0o\0")
            })
        },
    },
    Foreign {
        what: "a program",
        remedy: "expected a recording; make one of it: `wattwise record -o FILE.perf -- FILE`",
        is: |s| s.starts_with(b"\x7fELF") || s.starts_with(b"#!"),
    },
    Foreign {
        what: "a machine, workload or policy of wattwise's (TOML)",
        remedy: "expected a recording; name a machine with -m, a policy with -p",
        is: |s| {
            text(s)
                .lines()
                .take(60)
                .any(|l| l.starts_with("schema = \"wattwise.") || l == "[platform]" || l == "[[task]]")
        },
    },
];

/// Which kind a file is that starts so.
pub(crate) fn of(start: &[u8]) -> Option<&'static Foreign> {
    KINDS.iter().find(|kind| (kind.is)(start))
}

fn text(start: &[u8]) -> &str {
    let start = start.trim_ascii_start();
    match std::str::from_utf8(start) {
        Ok(text) => text,
        // Up to where a letter is cut, or where it ceases to be text.
        Err(e) => std::str::from_utf8(&start[..e.valid_up_to()]).unwrap_or_default(),
    }
}

fn is_json(start: &[u8]) -> bool {
    let text = text(start);
    let mut letters = text.chars().filter(|c| !c.is_whitespace());
    matches!((letters.next(), letters.next()), (Some('{'), Some('"' | '}')) | (Some('['), Some('{' | ']')))
}

/// Why what starts like no recording is not read.
pub(crate) fn unknown(name: &str, start: &[u8]) -> TraceError {
    if start.is_empty() {
        return TraceError::Unusable {
            name: name.to_owned(),
            what: "is empty".into(),
            remedy: format!(
                "expected {FORMATS}, also as {PACKED}; make one with `wattwise record -o FILE -- COMMAND`"
            ),
        };
    }
    if let Some(kind) = of(start) {
        let what = format!("{}, no recording that wattwise reads", kind.what);
        return TraceError::Unusable {
            name: name.to_owned(),
            what,
            remedy: kind.remedy.replace("FILE", &wattwise_figure::shell::file(name)),
        };
    }
    if String::from_utf8_lossy(start).contains("sched_switch:") {
        return TraceError::Unusable {
            name: name.to_owned(),
            what: "text of the scheduler's events without the CPU and the time of each, expected both".into(),
            remedy:
                "print it anew: `perf script -F comm,tid,cpu,time,event,trace`, or take tracefs's `trace`"
                    .into(),
        };
    }
    let start = start.iter().take(16).flat_map(|b| b.escape_ascii()).map(char::from).collect();
    TraceError::Unknown { name: name.to_owned(), start }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_told_by_their_beginnings() {
        for (start, what) in [
            (&b"LZIP\x01"[..], "lzip"),
            (&[&[0u8; 257][..], b"ustar\0"].concat(), "tar"),
            (b"packet {\n  timestamp: 1\n}", "Perfetto"),
            (b"{\"traceEvents\":[{\"ph\":\"X\"}]}", "Chrome"),
            (b"[ {\"name\": \"a\", \"ph\": \"B\"} ]", "Chrome"),
            (b"{\"schema\": \"wattwise.compare/2\"}", "result"),
            (b"\x7fELF\x02", "program"),
            (b"\xc1\x1f\xfc\xc1", "CTF"),
        ] {
            let found = of(start).unwrap_or_else(|| panic!("{what}"));
            assert!(found.what.contains(what), "{what}: {}", found.what);
        }
    }

    #[test]
    fn recordings_are_no_foreign_files() {
        for start in [
            &b"# tracer: nop\n"[..],
            b"PERFILE2\x68\0\0\0",
            b"\x17\x08\x44tracing6\0",
            b"\n# tracer: nop\n#\n\x07",
            b"          <idle>-0  [000] d..2. 1.0: sched_switch: x",
            b"[000] 1.0: x: y",
            b"",
        ] {
            assert!(of(start).is_none(), "{start:?}");
        }
    }
}
