//! Files as a stranger gives them, with names of his choice wherever a name can stand.

use crate::hostile::names;
use crate::tree::tree;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, OnceLock};
use wattwise_replay::library;
use wattwise_trace::{ImportOptions, Source, import};

/// A line of its own, if a name can make one.
pub(crate) const FORGED: &str = "~forged~";

/// Names without end.
pub(crate) struct Stock {
    names: Vec<String>,
    at: usize,
}

impl Stock {
    /// Of a stranger's choice.
    pub(crate) fn hostile(seed: u64) -> Stock {
        let all = names(seed, 2000).into_iter().filter(|name| !name.trim().is_empty()).enumerate();
        let forging = all.map(|(n, name)| match n % 4 {
            0 => format!("a\n{FORGED}\n{n}"),
            1 => format!("a{name}\r\n{FORGED} {name}\n{name}"),
            _ => name,
        });
        Stock { names: forging.collect(), at: 0 }
    }

    /// That act nowhere.
    pub(crate) fn plain() -> Stock {
        Stock { names: (0..2000).map(|n| format!("name {n}")).collect(), at: 0 }
    }

    pub(crate) fn next(&mut self) -> String {
        self.at += 1;
        self.names[(self.at - 1) % self.names.len()].clone()
    }

    /// One of at most so many bytes, without a zero.
    fn short(&mut self, bytes: usize) -> String {
        let mut name = self.next().replace('\0', "");
        while name.len() > bytes {
            name.pop();
        }
        name
    }

    fn used(&self, since: usize) -> usize {
        self.at - since
    }
}

/// Writes the file of this name; how many names are in it.
pub(crate) fn write(folder: &Path, file: &str, stock: &mut Stock) -> usize {
    let since = stock.at;
    let at = folder.join(file);
    let content: Vec<u8> = match file {
        "profiles.toml" => profiles(stock).into_bytes(),
        "work.toml" => work(stock, 40, "rounds = 2\nsteps = [{ run_us = 2200 }]").into(),
        "other.toml" => {
            work(stock, 8, "rounds = 30\nsteps = [{ sleep_us = [8000, 9000] }, { run_us = [6000, 7000] }]")
                .into()
        }
        "machine.toml" => machine(stock).into(),
        "policy.toml" => policy(stock).into(),
        "t.txt" => text(stock).into(),
        "t.perf" => patched(PERF.get_or_init(|| Binary::new("pipe.perf.zst")), stock),
        "t.dat" => patched(DAT.get_or_init(|| Binary::new("tc7-none.dat.zst")), stock),
        "specpower.csv" => table("specpower.csv", stock),
        "freqbench.csv" => table("freqbench.csv", stock),
        "table" => {
            std::fs::create_dir(&at).unwrap();
            hardware(&at, stock);
            return stock.used(since);
        }
        "result.json" => result(stock).into(),
        "locks.sh" => {
            std::fs::write(folder.join("counts"), counts(stock)).unwrap();
            "cp counts \"$WATTWISE_LOCK_WATCH.1\"\n".into()
        }
        "says.sh" => {
            let said: String = (0..20).map(|_| stock.next() + "\n").collect();
            std::fs::write(folder.join("said"), said + "\nrate: 5\n").unwrap();
            "cat said\n".into()
        }
        "libc.so" => {
            let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
            let libc =
                maps.lines().find_map(|l| l.split_whitespace().last().filter(|f| f.contains("/libc.so")));
            std::os::unix::fs::symlink(libc.unwrap(), at).unwrap();
            return 0;
        }
        "tree.tar" => {
            let used = write(folder, "tree", stock);
            let out = crate::shown::wattwise(folder, &["capture", "--root", "tree", "-o", file]);
            assert!(out.status.success(), "{out:?}");
            return used;
        }
        "tree" => {
            let names: Vec<String> = (0..40).map(|_| stock.next()).collect();
            tree(&at, &names);
            return stock.used(since);
        }
        _ => return 0,
    };
    std::fs::write(at, content).unwrap();
    stock.used(since)
}

/// A table of measurements on hardware: its words, its cells, a reason and its machine's name are a stranger's.
fn hardware(folder: &Path, stock: &mut Stock) {
    let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/hardware_table");
    let read = |name: &str| std::fs::read_to_string(from.join(name)).unwrap();
    let mut file: toml::Table = read("table.toml").parse().unwrap();
    for key in ["title", "source", "licence", "class", "kernel", "meter"] {
        file.insert(key.into(), stock.next().into());
    }
    file.insert("notes".into(), vec![toml::Value::from(stock.next())].into());
    // Braces stand for cells.
    let why = stock.next().replace(['{', '}'], "");
    let rule = format!("when = {{ mhz = '1500' }}\ncannot = {}", toml::Value::from(why));
    file.insert("rule".into(), vec![toml::Value::from(rule.parse::<toml::Table>().unwrap())].into());
    std::fs::write(folder.join("table.toml"), file.to_string()).unwrap();
    let mut rows = csv::Writer::from_path(folder.join("rows.csv")).unwrap();
    rows.write_record(["program", "mhz", "s", "package_w"]).unwrap();
    for _ in 0..20 {
        let name = stock.next();
        for (mhz, s, w) in [("2000", "10", "30"), ("1000", "20", "14"), ("1500", "15", "20")] {
            rows.write_record([&name, mhz, s, w]).unwrap();
        }
    }
    rows.flush().unwrap();
    let mut machine: toml::Table = read("machine.toml").parse().unwrap();
    for key in ["name", "source"] {
        machine["sheet"][key] = stock.next().into();
    }
    std::fs::write(folder.join("machine.toml"), machine.to_string()).unwrap();
}

/// A workload of tasks that do the same.
fn work(stock: &mut Stock, tasks: usize, does: &str) -> String {
    let mut file: toml::Table = "reference_khz = 1_700_000".parse().unwrap();
    file.insert("name".into(), stock.next().into());
    file.insert("summary".into(), stock.next().into());
    let mut task = || {
        let mut task: toml::Table = format!("role = 'foreground'\n{does}").parse().unwrap();
        task.insert("name".into(), stock.next().into());
        toml::Value::from(task)
    };
    file.insert("task".into(), (0..tasks).map(|_| task()).collect::<Vec<_>>().into());
    toml::to_string(&file).unwrap()
}

/// A path to a text in a TOML file.
type Place = Vec<String>;

fn texts(value: &toml::Value, at: &Place, into: &mut Vec<Place>) {
    let below = |key: String| [at.clone(), vec![key]].concat();
    match value {
        toml::Value::String(_) => into.push(at.clone()),
        toml::Value::Array(all) => {
            all.iter().enumerate().for_each(|(n, v)| texts(v, &below(n.to_string()), into))
        }
        toml::Value::Table(all) => all.iter().for_each(|(key, v)| texts(v, &below(key.clone()), into)),
        _ => {}
    }
}

fn put(value: &mut toml::Value, at: &[String], text: &str) {
    match (at, value) {
        ([], value) => *value = text.into(),
        ([key, rest @ ..], toml::Value::Array(all)) => {
            put(&mut all[key.parse::<usize>().unwrap()], rest, text)
        }
        ([key, rest @ ..], toml::Value::Table(all)) => put(all.get_mut(key).unwrap(), rest, text),
        _ => unreachable!("a path of `texts`"),
    }
}

/// A machine with other texts wherever they can be any.
fn machine(stock: &mut Stock) -> String {
    static FREE: OnceLock<(toml::Value, Vec<Place>)> = OnceLock::new();
    let (whole, free) = FREE.get_or_init(|| {
        let whole = toml::Value::Table(library::machine_text("i7-4510u").unwrap().parse().unwrap());
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("m.toml");
        let is_free = |place: &Place| {
            let mut other = whole.clone();
            put(&mut other, place, "any name, 1");
            std::fs::write(&file, toml::to_string(&other).unwrap()).unwrap();
            library::machine(file.to_str().unwrap()).is_ok()
        };
        let mut all = Vec::new();
        texts(&whole, &Vec::new(), &mut all);
        all.retain(is_free);
        assert!(all.len() > 10, "{all:?}");
        (whole.clone(), all)
    });
    let mut whole = whole.clone();
    for place in free {
        put(&mut whole, place, &stock.next());
    }
    toml::to_string(&whole).unwrap()
}

/// A file that is taken for a policy's.
fn policy(stock: &mut Stock) -> String {
    let mut file = toml::Table::new();
    let (key, value) = (stock.next(), stock.next());
    match stock.at / 2 % 3 {
        0 => _ = file.insert("speed".into(), value.into()),
        1 => _ = file.insert(key, value.into()),
        _ => {
            file.insert("speed".into(), "schedutil".into());
            file.insert("cmax".into(), value.into());
        }
    }
    toml::to_string(&file).unwrap()
}

/// A recording as tracefs prints it: tasks that follow one upon the other, each woken by the one before it.
fn text(stock: &mut Stock) -> String {
    let mut out = String::from("# tracer: nop\n#\n# entries-in-buffer/entries-written: 1/1   #P:1\n#\n");
    let comms: Vec<String> = (0..50).map(|_| stock.short(15)).collect();
    for round in 0..3 {
        for (n, comm) in comms.iter().enumerate() {
            let next = &comms[(n + 1) % comms.len()];
            let (tid, to) = (100 + n, 100 + (n + 1) % comms.len());
            let us = 1_000 * (round * comms.len() + n);
            let mut line = |us: usize, what: &str| {
                let s = 10.0 + us as f64 * 1e-6;
                out += &format!("{comm:>16}-{tid:<7} [000] d..2. {s:12.6}: {what}\n");
            };
            line(us, &format!("sched_waking: comm={next} pid={to} prio=120 target_cpu=000"));
            line(
                us + 900,
                &format!(
                    "sched_switch: prev_comm={comm} prev_pid={tid} prev_prio=120 prev_state=S ==> next_comm={next} next_pid={to} next_prio=120"
                ),
            );
        }
    }
    out
}

/// A recording of which every text can be another that is followed by zeros, as long as it can be read.
struct Binary {
    bytes: Vec<u8>,
    /// Where each text stands, and how much room it has.
    texts: BTreeMap<Vec<u8>, Vec<(usize, usize)>>,
}

static PERF: OnceLock<Binary> = OnceLock::new();
static DAT: OnceLock<Binary> = OnceLock::new();

impl Binary {
    fn new(name: &str) -> Binary {
        let file = format!("{}/../trace/tests/traces/{name}", env!("CARGO_MANIFEST_DIR"));
        let bytes = zstd::decode_all(std::fs::File::open(file).unwrap()).unwrap();
        let mut texts: BTreeMap<Vec<u8>, Vec<(usize, usize)>> = BTreeMap::new();
        let is_text = |b: &u8| (0x20..0x7f).contains(b);
        let mut at = 0;
        while at < bytes.len() {
            let length = bytes[at..].iter().take_while(|b| is_text(b)).count();
            let zeros = bytes[at + length..].iter().take(64).take_while(|b| **b == 0).count();
            if length >= 4 && zeros > 0 {
                // A task's name has sixteen bytes; other texts are padded to 64.
                let most = if length < 16 { 15 } else { 63 };
                let room = (length + zeros - 1).min(most.max(length));
                texts.entry(bytes[at..at + length].to_vec()).or_default().push((at, room));
            }
            at += length + 1;
        }
        let mut whole = Binary { bytes, texts };
        let read = |bytes: Vec<u8>| {
            let source = Source::Bytes { name: "x".into(), data: Arc::from(bytes) };
            import(source, &ImportOptions::default()).is_ok_and(|w| w.tasks.len() > 3)
        };
        // A format's own words are damage where they are others.
        let probes = ["", "a\nb", "sched:", &"x".repeat(63)].map(str::to_owned);
        let are_free = |texts: &[Vec<u8>]| {
            let mut named =
                probes.iter().map(|name| texts.iter().map(|t| (t.clone(), name.clone())).collect());
            named.all(|names| read(whole.with(&names)))
        };
        let all: Vec<Vec<u8>> = whole.texts.keys().cloned().collect();
        let mut free = Vec::new();
        let mut parts = vec![&all[..]];
        while let Some(part) = parts.pop() {
            match are_free(part) {
                true => free.extend_from_slice(part),
                false if part.len() > 1 => parts.extend(<[&[_]; 2]>::from(part.split_at(part.len() / 2))),
                false => {}
            }
        }
        assert!(free.len() > 10 && are_free(&free), "{name}: {}", free.len());
        whole.texts.retain(|text, _| free.contains(text));
        whole
    }

    fn with(&self, names: &BTreeMap<Vec<u8>, String>) -> Vec<u8> {
        let mut bytes = self.bytes.clone();
        for (text, name) in names {
            for &(at, room) in &self.texts[text] {
                bytes[at..at + text.len().max(room)].fill(0);
                let length = name.len().min(room);
                bytes[at..at + length].copy_from_slice(&name.as_bytes()[..length]);
            }
        }
        bytes
    }
}

fn patched(whole: &Binary, stock: &mut Stock) -> Vec<u8> {
    whole.with(&whole.texts.keys().map(|text| (text.clone(), stock.short(63))).collect())
}

/// Rows of a table of measurements with other texts.
fn table(file: &str, stock: &mut Stock) -> Vec<u8> {
    let path = format!("{}/../../machines/data/{file}", env!("CARGO_MANIFEST_DIR"));
    let mut rows = csv::Reader::from_path(path).unwrap();
    let mut out = csv::Writer::from_writer(Vec::new());
    out.write_record(rows.headers().unwrap()).unwrap();
    let mut others = BTreeMap::new();
    for row in rows.records().take(400) {
        let row = row.unwrap();
        let mut other = |cell: &str| match cell.is_empty() || cell.parse::<f64>().is_ok() {
            true => cell.to_owned(),
            false => others.entry(cell.to_owned()).or_insert_with(|| stock.next()).clone(),
        };
        out.write_record(row.iter().map(&mut other)).unwrap();
    }
    out.into_inner().unwrap()
}

/// A comparison whose names are others'.
fn result(stock: &mut Stock) -> String {
    let mut whole: serde_json::Value = serde_json::from_str(include_str!("../results/compare.json")).unwrap();
    let reference = stock.next();
    whole["workload"]["name"] = stock.next().into();
    whole["machine"] = stock.next().into();
    let old = whole["reference"].clone();
    let mut known = BTreeMap::new();
    for row in whole["results"].as_array_mut().unwrap() {
        let name = if row["policy"] == old { reference.clone() } else { stock.next() };
        known.insert(row["policy"].as_str().unwrap().to_owned(), name.clone());
        row["policy"] = name.into();
    }
    whole["reference"] = reference.into();
    whole.to_string()
}

/// What an interposer counted of a program whose symbols are a stranger's.
fn counts(stock: &mut Stock) -> String {
    let mut out = String::from("wattwise-locks 1 1\n");
    // Every second program has line ends in them.
    let is_cut = stock.at / 120 % 2 == 1;
    for n in 0..30 {
        let mut word = || {
            let name = stock.next().replace(' ', "_");
            let name = if is_cut { name } else { name.replace(['\n', '\r'], "_") };
            if name.is_empty() { "-".to_owned() } else { name }
        };
        out += &format!(
            "{:x} {}+10 {} {}+20 {} 1000 500 900000000 5000000 200 3\n",
            4096 + n,
            word(),
            word(),
            word(),
            word()
        );
    }
    out
}

/// Profiles: a summary, a value and a program of a stranger's choice.
fn profiles(stock: &mut Stock) -> String {
    let quoted = |name: String| serde_json::Value::String(name).to_string().replace('\u{7f}', "\\u007f");
    let (summary, epp, program) = (stock.next(), stock.next(), stock.next().replace('/', "_"));
    format!(
        "[profile.hostile]\nsummary = {}\nsettings = [{}]\n[[profile.hostile.when]]\nprogram = {}\nbias = \"power\"\n",
        quoted(summary),
        quoted(format!("epp={epp}")),
        quoted(program)
    )
}
