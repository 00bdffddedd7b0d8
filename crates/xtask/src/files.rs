//! `docs/files.md`: the formats of the files that people write, from the heads of the modules that read them; and no key that is
//! read is missing there.

use std::path::Path;

/// The page's sections: a module's head, and the sources in which the keys of its files are.
const SECTIONS: [(&str, &[&str]); 4] = [
    ("workload/file.rs", &["workload/file.rs"]),
    ("workload/rtapp.rs", &[]),
    ("machine/file.rs", &["machine/tables.rs", "machine/range.rs"]),
    ("estimate/sheet.rs", &["estimate/sheet.rs"]),
];

const HEAD: &str = "# Files that you write\n\n\
    <!-- Made by `cargo xtask files` from the modules that read these files: edit their heads. -->\n\n\
    A workload says what runs, a machine what it runs on; `compare` takes both by path (`wattwise compare my-work.toml -m my-machine.toml`).\n\
    `wattwise workloads show NAME` and `wattwise machines show NAME` print the bundled ones. Policies are said in words, see \
    `wattwise policies`;\npublished measurements as tables have [a page of their own](hardware.md).\n";

pub(crate) fn run(check: bool) -> Result<(), String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let read = |path: &str| std::fs::read_to_string(root.join(path)).map_err(|e| format!("{path}: {e}"));
    let mut page = HEAD.to_owned();
    for (module, sources) in SECTIONS {
        let section = section(&read(&format!("crates/model/src/{module}"))?);
        for source in sources {
            let text = read(&format!("crates/model/src/{source}"))?;
            let missing: Vec<_> = keys(&text).into_iter().filter(|key| !names(&section, key)).collect();
            if !missing.is_empty() {
                let missing = missing.join(", ");
                return Err(format!(
                    "crates/model/src/{module}: its head does not say what these keys are: {missing}"
                ));
            }
        }
        page.push('\n');
        page.push_str(&section);
    }
    let at = "docs/files.md";
    match check {
        true if read(at)? == page => Ok(()),
        true => Err(format!("{at} is not as its sources are: run `cargo xtask files`")),
        false => std::fs::write(root.join(at), page).map_err(|e| format!("{at}: {e}")),
    }
}

/// A module's head as Markdown: its first sentence is the heading, and links to items are their names.
fn section(source: &str) -> String {
    let lines = source.lines().map_while(|l| l.strip_prefix("//!"));
    let mut out = String::new();
    for (i, line) in lines.map(|l| l.strip_prefix(' ').unwrap_or(l)).enumerate() {
        match i {
            0 => out = format!("## {}", line.trim_end_matches('.')),
            _ => out += &without_links(line),
        }
        out.push('\n');
    }
    out
}

/// ``[`mod@crate::machine::file`]`` is `crate::machine::file`, and `[text](link)` stays.
fn without_links(line: &str) -> String {
    let mut out = String::new();
    let mut rest = line;
    while let Some((before, link)) = rest.split_once("[`") {
        let Some((name, after)) = link.split_once("`]") else { break };
        out += before;
        out += &format!("`{}`", name.trim_start_matches("mod@"));
        rest = after;
    }
    out + rest
}

/// The keys that the structs of a module read, and the words of its enums.
fn keys(source: &str) -> Vec<String> {
    let source = source.split("#[cfg(test)]").next().unwrap_or_default();
    let mut keys = Vec::new();
    let (mut read, mut within, mut skipped, mut case) = (false, None, false, None);
    for line in source.lines() {
        let code = line.trim();
        match code {
            _ if code.contains("derive(") && code.contains("Deserialize") => (read, case) = (true, None),
            _ if code.starts_with("table! {") => (read, case) = (true, None),
            _ if code.starts_with("#[serde(") && code.contains("rename_all") => {
                case = Some(if code.contains("snake_case") { '_' } else { '-' });
            }
            _ if code.contains("struct ") && code.ends_with('{') => {
                within = std::mem::take(&mut read).then_some(Within::Struct);
            }
            // Those that are not renamed are told apart by what they hold.
            _ if code.contains("enum ") && code.ends_with('{') => {
                within = case.take().filter(|_| std::mem::take(&mut read)).map(Within::Enum);
            }
            "}" => within = None,
            "#[serde(skip)]" => skipped = true,
            _ if code.starts_with("pub") && std::mem::take(&mut skipped) => {}
            _ => keys.extend(within.and_then(|w| w.key(code))),
        }
    }
    keys
}

/// What a line of a source is in.
#[derive(Clone, Copy)]
enum Within {
    Struct,
    /// Its words are joined by this.
    Enum(char),
}

impl Within {
    /// The key that a line names.
    fn key(self, code: &str) -> Option<String> {
        match self {
            Within::Struct => {
                let (key, _) = code.trim_start_matches("pub(super) ").split_once(": ")?;
                let of_key = |c: char| c.is_ascii_lowercase() || c == '_' || c.is_ascii_digit();
                (!key.is_empty() && key.chars().all(of_key)).then(|| key.to_owned())
            }
            Within::Enum(joint) => {
                let variant: String = code.chars().take_while(char::is_ascii_alphanumeric).collect();
                let mut word = String::new();
                for c in variant.chars() {
                    if c.is_ascii_uppercase() && !word.is_empty() {
                        word.push(joint);
                    }
                    word.push(c.to_ascii_lowercase());
                }
                (!word.is_empty()).then_some(word)
            }
        }
    }
}

/// Whether a page speaks of a key: in its code, where words are not part of others.
fn names(page: &str, key: &str) -> bool {
    page.split(|c: char| !(c.is_ascii_alphanumeric() || "_-".contains(c))).any(|word| word == key)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_those_of_structs_that_are_read() {
        let source = "#[derive(Clone, Deserialize)]\n#[serde(deny_unknown_fields)]\nstruct File {\n    name: String,\n    \
            #[serde(default)]\n    pub(super) span_s: f64,\n}\nstruct Other {\n    inner: u8,\n}\n\
            table! {\n    struct TickTable {\n        hz: f64,\n    }\n}\n#[cfg(test)]\n#[derive(Deserialize)]\nstruct T {\n    not: u8,\n}\n";
        assert_eq!(keys(source), ["name", "span_s", "hz"]);
        let words = "#[derive(Deserialize)]\n#[serde(rename_all = \"kebab-case\")]\nenum Trust {\n    #[default]\n    Guess,\n    \
            DeviceTree,\n}\n#[derive(Deserialize)]\n#[serde(deny_unknown_fields, rename_all = \"snake_case\")]\nenum Step {\n    \
            RunUs(f64),\n}\n#[derive(Deserialize)]\n#[serde(untagged)]\nenum Length {\n    Fixed(f64),\n}\nenum Other {\n    No,\n}\n";
        assert_eq!(keys(words), ["guess", "device-tree", "run_us"]);
    }

    #[test]
    fn a_head_is_a_section() {
        let source = "//! The format.\n//!\n//! See [`mod@crate::x`] and [`File::y`].\n\nuse z;\n//! no\n";
        assert_eq!(section(source), "## The format\n\nSee `crate::x` and `File::y`.\n");
        assert!(names("a `span_s` b", "span_s") && !names("a span_s2 b", "span_s"));
    }
}
