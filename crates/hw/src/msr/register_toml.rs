//! The register files: `machines/registers/*.toml`.
//!
//! ```toml
//! vendors = ["Intel"]                 # whose CPUs
//!
//! [models]                            # names for groups of models
//! skl = ["6.4E", "6.5E"]              # family.model in hexadecimal; a family alone means all its models
//! client = ["skl", "6.9E"]            # a group may name groups
//!
//! [[register]]
//! name = "IA32_CLOCK_MODULATION"
//! address = 0x19A
//! scope = "thread"                    # whose it is: "thread", "core" or "package"
//! needs = ["acpi"]                    # features of cpuid.rs, all of them; an unknown one counts as absent
//! models = ["client"]                 # left out: every model that has the features
//! meaning = "..."
//! source = "..."                      # where the bits are described
//! fields = [
//!     { name = "duty", bits = "3:1", access = "rw", unless = ["ecmd"], meaning = "..." },
//!     { name = "duty", bits = "3:0", access = "rw", needs = ["ecmd"], unit = "%", scale = 6.25, meaning = "..." },
//!     { name = "log", bits = "5", access = "rwc0", meaning = "..." },
//!     { name = "lock", bits = "63", access = "rw", locks = "62:0", refuse = "cannot be undone", meaning = "..." },
//! ]
//! ```
//!
//! `access` is what the hardware allows: `ro`; `rw`; `rwc0`, a sticky log bit that is cleared by
//! writing 0 and unmoved by writing 1. `refuse` is ours: the reason why we never write a bit that
//! could be written. `counter` marks a count that wraps at the field's width. Fields may depend on
//! features (`needs`, `unless`) and models (`models`, `except`); two that share bits or a name must
//! exclude each other.
//!
//! A file is checked as a whole before it is used; an error names file, register and field.

use crate::cpus::cpuid::{CpuFacts, Feature, Vendor};
use crate::msr::register::{Field, FieldAccess, Register, Scope};
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};
use wattwise_figure::mistake::at_line;

/// What is wrong with a register file, in one line: file, register, field, and what was expected.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{file}: {what}")]
pub struct RegisterFileError {
    /// The file's name.
    pub file: String,
    /// Register, field and fault.
    pub what: String,
}

/// A register file, checked.
#[derive(Debug, Clone)]
pub struct RegisterFile {
    name: String,
    vendors: Vec<Vendor>,
    definitions: Vec<Definition>,
}

/// A set of models. Empty means no restriction.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Models(BTreeSet<(u32, Option<u32>)>);

impl Models {
    fn contains(&self, family: u32, model: u32) -> bool {
        self.0.contains(&(family, None)) || self.0.contains(&(family, Some(model)))
    }

    fn disjoint(&self, other: &Models) -> bool {
        let one = |a: &Models, b: &Models| {
            a.0.iter().any(|(family, model)| match model {
                Some(model) => b.contains(*family, *model),
                None => b.0.iter().any(|(f, _)| f == family),
            })
        };
        !one(self, other) && !one(other, self)
    }
}

/// When something exists.
#[derive(Debug, Clone, Default)]
struct Condition {
    needs: Vec<Feature>,
    unless: Vec<Feature>,
    models: Option<Models>,
    except: Models,
}

impl Condition {
    /// Why it does not exist on this CPU, in words; `None` if it does.
    fn missing(&self, cpu: &CpuFacts) -> Option<String> {
        if self.models.as_ref().is_some_and(|m| !m.contains(cpu.family, cpu.model)) {
            return Some(format!("not on {} family {:X}h model {:X}h", cpu.vendor, cpu.family, cpu.model));
        }
        if self.except.contains(cpu.family, cpu.model) {
            return Some(format!("not on {} family {:X}h model {:X}h", cpu.vendor, cpu.family, cpu.model));
        }
        for &feature in &self.needs {
            match cpu.has(feature) {
                Some(true) => {}
                Some(false) => return Some(format!("needs {}, which the CPU does not have", feature.name())),
                None => {
                    return Some(format!(
                        "needs {}, of which only CPUID can tell: load the module `cpuid`",
                        feature.name()
                    ));
                }
            }
        }
        self.unless.iter().find(|f| cpu.surely(**f)).map(|f| format!("has another form with {}", f.name()))
    }

    fn excludes(&self, other: &Condition) -> bool {
        let features = |a: &Condition, b: &Condition| a.needs.iter().any(|f| b.unless.contains(f));
        let models = match (&self.models, &other.models) {
            (Some(a), Some(b)) => a.disjoint(b),
            _ => false,
        };
        features(self, other) || features(other, self) || models
    }
}

#[derive(Debug, Clone)]
struct Definition {
    register: Register,
    when: Condition,
    field_when: Vec<Condition>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FileText {
    vendors: Vec<String>,
    #[serde(default)]
    models: BTreeMap<String, Vec<String>>,
    #[serde(default)]
    register: Vec<RegisterText>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RegisterText {
    name: String,
    address: u32,
    scope: Scope,
    #[serde(default)]
    needs: Vec<String>,
    models: Option<Vec<String>>,
    meaning: String,
    source: String,
    fields: Vec<FieldText>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FieldText {
    name: String,
    bits: String,
    access: FieldAccess,
    meaning: String,
    unit: Option<String>,
    scale: Option<f64>,
    #[serde(default)]
    counter: bool,
    refuse: Option<String>,
    locks: Option<String>,
    #[serde(default)]
    needs: Vec<String>,
    #[serde(default)]
    unless: Vec<String>,
    models: Option<Vec<String>>,
    #[serde(default)]
    except: Vec<String>,
}

/// Parses and checks a register file. `name` is used in errors.
///
/// # Errors
/// Anything that is not as the module's head says; the first fault found.
pub fn parse(text: &str, name: &str) -> Result<RegisterFile, RegisterFileError> {
    check(text)
        .map_err(|what| RegisterFileError { file: name.to_owned(), what: wattwise_figure::one_line(&what) })
        .map(|(vendors, definitions)| RegisterFile { name: name.to_owned(), vendors, definitions })
}

fn check(text: &str) -> Result<(Vec<Vendor>, Vec<Definition>), String> {
    let file: FileText =
        toml::from_str(text).map_err(|e| at_line(text, e.span().map(|s| s.start), e.message()))?;
    let mut vendors = Vec::new();
    for vendor in &file.vendors {
        vendors.push(match vendor.as_str() {
            "Intel" => Vendor::Intel,
            "AMD" => Vendor::Amd,
            "Hygon" => Vendor::Hygon,
            other => return Err(format!("vendors: `{other}`: expected Intel, AMD or Hygon")),
        });
    }
    if vendors.is_empty() {
        return Err("vendors: at least one is needed".into());
    }
    for group in file.models.keys() {
        models(&file.models, std::slice::from_ref(group)).map_err(|e| format!("models: {e}"))?;
    }
    let mut definitions: Vec<Definition> = Vec::new();
    for entry in file.register {
        let name = entry.name.clone();
        let definition = definition(&file.models, entry).map_err(|e| format!("{name}: {e}"))?;
        for before in &definitions {
            let other = &before.register;
            if other.address == definition.register.address {
                return Err(format!(
                    "{name}: address {:#X} is that of {} already",
                    other.address, other.name
                ));
            }
            if other.name == name {
                return Err(format!("{name}: there is a register of this name already"));
            }
        }
        definitions.push(definition);
    }
    Ok((vendors, definitions))
}

fn definition(groups: &BTreeMap<String, Vec<String>>, entry: RegisterText) -> Result<Definition, String> {
    let proper = |name: &str| {
        !name.is_empty() && name.len() <= 48 && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
    };
    if !proper(&entry.name) {
        return Err("a register's name is 1 to 48 letters, digits and `_`".into());
    }
    if entry.meaning.trim().is_empty() || entry.source.trim().is_empty() {
        return Err("meaning and source must not be empty".into());
    }
    if entry.fields.is_empty() {
        return Err("a register needs at least one field".into());
    }
    let when = condition(groups, &entry.needs, &[], entry.models.as_deref(), &[])?;
    let (mut fields, mut field_when): (Vec<Field>, Vec<Condition>) = (Vec::new(), Vec::new());
    for text in entry.fields {
        let at = |e: String| format!("field {}: {e}", text.name);
        if !proper(&text.name) {
            return Err(at("a field's name is 1 to 48 letters, digits and `_`".into()));
        }
        let (hi, lo) = bits(&text.bits).map_err(at)?;
        let condition =
            condition(groups, &text.needs, &text.unless, text.models.as_deref(), &text.except).map_err(at)?;
        let locks = text.locks.as_deref().map(bits).transpose().map_err(at)?;
        if (locks.is_some() || text.access == FieldAccess::Rwc0) && hi != lo {
            return Err(at("a lock or a log is one bit".into()));
        }
        if text.access == FieldAccess::Ro && text.refuse.is_some() {
            return Err(at("`refuse` is for bits that could be written; this one is `ro`".into()));
        }
        if text.refuse.as_ref().is_some_and(|r| r.trim().is_empty()) || text.meaning.trim().is_empty() {
            return Err(at("meaning and refuse must not be empty".into()));
        }
        let scale = text.scale.unwrap_or(1.0);
        if !(scale.is_finite() && scale > 0.0) {
            return Err(at("scale must be greater than 0".into()));
        }
        for (other, other_when) in fields.iter().zip(&field_when) {
            if condition.excludes(other_when) {
                continue;
            }
            if other.lo <= hi && lo <= other.hi {
                return Err(at(format!("bits {} overlap those of field {}", text.bits, other.name)));
            }
            if other.name == text.name {
                return Err(at("there is a field of this name already".into()));
            }
        }
        fields.push(Field {
            register: entry.name.clone(),
            name: text.name,
            hi,
            lo,
            access: text.access,
            refuse: text.refuse,
            meaning: text.meaning,
            unit: text.unit,
            scale,
            counter: text.counter,
            locks,
        });
        field_when.push(condition);
    }
    let register = Register {
        name: entry.name,
        address: entry.address,
        scope: entry.scope,
        meaning: entry.meaning,
        source: entry.source,
        fields,
    };
    Ok(Definition { register, when, field_when })
}

fn condition(
    groups: &BTreeMap<String, Vec<String>>,
    needs: &[String],
    unless: &[String],
    only: Option<&[String]>,
    except: &[String],
) -> Result<Condition, String> {
    let features = |names: &[String]| {
        names
            .iter()
            .map(|n| Feature::from_name(n).ok_or_else(|| format!("`{n}` is not a feature of cpuid.rs")))
            .collect::<Result<Vec<_>, _>>()
    };
    Ok(Condition {
        needs: features(needs)?,
        unless: features(unless)?,
        models: only.map(|m| models(groups, m)).transpose()?,
        except: models(groups, except)?,
    })
}

/// Bits as `hi:lo` or one number.
fn bits(text: &str) -> Result<(u8, u8), String> {
    let (hi, lo) = text.split_once(':').unwrap_or((text, text));
    match (hi.parse::<u8>(), lo.parse::<u8>()) {
        (Ok(hi), Ok(lo)) if lo <= hi && hi <= 63 => Ok((hi, lo)),
        _ => Err(format!("bits `{text}`: expected `high:low` or one bit, from 63 to 0")),
    }
}

fn models(groups: &BTreeMap<String, Vec<String>>, names: &[String]) -> Result<Models, String> {
    let mut all = Models::default();
    let mut seen = BTreeSet::new();
    let mut open: Vec<&String> = names.iter().collect();
    while let Some(name) = open.pop() {
        if let Some(members) = groups.get(name) {
            // A group in itself, or named twice, adds nothing new.
            if seen.insert(name) {
                open.extend(members);
            }
            continue;
        }
        let (family, model) = match name.split_once('.') {
            Some((family, model)) => (family, Some(model)),
            None => (name.as_str(), None),
        };
        let hex = |text: &str| u32::from_str_radix(text, 16).ok().filter(|n| *n <= 0x1ff);
        match (hex(family), model.map(hex)) {
            (Some(family), None) => all.0.insert((family, None)),
            (Some(family), Some(Some(model))) => all.0.insert((family, Some(model))),
            _ => {
                return Err(format!(
                    "`{name}`: expected a group of [models], or family.model in hexadecimal"
                ));
            }
        };
    }
    Ok(all)
}

impl RegisterFile {
    /// The file's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The registers of this CPU, with the fields that it has; and for those that it has not, their
    /// name, address and the reason. Nothing if the file is about other vendors.
    pub fn for_cpu(&self, cpu: &CpuFacts) -> (Vec<Register>, Vec<Absent>) {
        let (mut present, mut absent) = (Vec::new(), Vec::new());
        if !self.vendors.contains(&cpu.vendor) {
            return (present, absent);
        }
        for d in &self.definitions {
            match d.when.missing(cpu) {
                Some(why) => {
                    absent.push(Absent { name: d.register.name.clone(), address: d.register.address, why })
                }
                None => {
                    let mut register = d.register.clone();
                    let mut keep = d.field_when.iter().map(|when| when.missing(cpu).is_none());
                    register.fields.retain(|_| keep.next().unwrap_or(false));
                    present.push(register);
                }
            }
        }
        (present, absent)
    }

    /// The families and models that the file names anywhere: a model for each, the first for a family
    /// as a whole. For tests that go through all of them.
    pub fn models(&self) -> Vec<(u32, u32)> {
        let mut all = BTreeSet::new();
        for d in &self.definitions {
            for when in std::iter::once(&d.when).chain(&d.field_when) {
                for models in when.models.iter().chain(std::iter::once(&when.except)) {
                    all.extend(models.0.iter().map(|(family, model)| (*family, model.unwrap_or(0))));
                }
            }
        }
        all.into_iter().collect()
    }

    /// The vendors whose CPUs the file describes.
    pub fn vendors(&self) -> &[Vendor] {
        &self.vendors
    }
}

/// A register that this CPU does not have.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Absent {
    /// Its name.
    pub name: String,
    /// Its address.
    pub address: u32,
    /// Why, in words: the model, or the feature that is missing or unknown.
    pub why: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str =
        "vendors = [\"Intel\"]\n[models]\nskl = [\"6.4E\", \"6.5E\"]\nall = [\"skl\", \"F\"]\n";

    fn register(name: &str, address: u32, fields: &str) -> String {
        format!(
            "[[register]]\nname = \"{name}\"\naddress = {address:#x}\nscope = \"thread\"\nmeaning = \"m\"\n\
             source = \"s\"\nfields = [{fields}]\n"
        )
    }

    fn field(name: &str, bits: &str, rest: &str) -> String {
        format!("{{ name = \"{name}\", bits = \"{bits}\", access = \"rw\", meaning = \"m\"{rest} }},")
    }

    fn words(text: &str) -> String {
        let words = parse(text, "some.toml").unwrap_err().to_string();
        assert!(words.starts_with("some.toml: ") && !words.contains('\n'), "{words}");
        words
    }

    #[test]
    fn faults_name_file_register_and_field() {
        let of = |fields: &str| words(&format!("{HEAD}{}", register("REG", 0x10, fields)));
        let two = |a: &str, b: &str| of(&[a, b].concat());
        for (given, expected) in [
            (
                two(&field("a", "7:0", ""), &field("b", "9:7", "")),
                "REG: field b: bits 9:7 overlap those of field a",
            ),
            (
                two(&field("a", "7:0", ""), &field("a", "9:8", "")),
                "REG: field a: there is a field of this name",
            ),
            (of(&field("a", "64", "")), "REG: field a: bits `64`: expected `high:low`"),
            (of(&field("a", "0:3", "")), "REG: field a: bits `0:3`"),
            (of(&field("a", "x", "")), "REG: field a: bits `x`"),
            (of(&field("a", "", "")), "REG: field a: bits ``"),
            (of(&field("a b", "1", "")), "REG: field a b: a field's name is"),
            (of(&field("a", "1", ", needs = [\"wings\"]")), "REG: field a: `wings` is not a feature"),
            (of(&field("a", "1", ", models = [\"7Z\"]")), "REG: field a: `7Z`: expected a group"),
            (of(&field("a", "1", ", scale = 0")), "REG: field a: scale"),
            (of(&field("a", "2:1", ", locks = \"0\"")), "REG: field a: a lock or a log is one bit"),
            (of(&field("a", "1", ", refuse = \" \"")), "REG: field a: meaning and refuse"),
            (of(&field("a", "1", ", colour = 1")), "unknown field `colour`"),
            (
                of(&field("a", "1", "").replace("rw", "ro").replace(" }", ", refuse = \"r\" }")),
                "REG: field a: `refuse` is for",
            ),
            (of(&field("a", "2:1", "").replace("rw", "rwc0")), "REG: field a: a lock or a log is one bit"),
            (of(""), "REG: a register needs at least one field"),
        ] {
            assert!(given.contains(expected), "{given} instead of {expected}");
        }
        let one = field("a", "0", "");
        let twice = |a, b| words(&format!("{HEAD}{}{}", register("A", a, &one), register("B", b, &one)));
        assert_eq!(twice(0x10, 0x10), "some.toml: B: address 0x10 is that of A already");
        let same = words(&format!("{HEAD}{}{}", register("A", 1, &one), register("A", 2, &one)));
        assert_eq!(same, "some.toml: A: there is a register of this name already");
        assert!(words("").contains("line 1: missing field `vendors`"));
        assert!(words("vendors = []").contains("at least one"));
        assert!(words("vendors = [\"Cyrix\"]").contains("`Cyrix`"));
        assert!(words(&HEAD.replace("6.5E", "6.XY")).contains("models: `6.XY`"));
        assert!(words("vendors = [\"Intel\"]\n\nx = = 2").contains("line 3"));
        assert!(words(&format!("{HEAD}{}", register("A\\u000a", 1, &one))).contains("A : a register's name"));
    }

    #[test]
    fn fields_that_exclude_each_other_may_share_bits() {
        let cpu = |model, features: &[Feature]| CpuFacts::of(Vendor::Intel, 6, model).with(features);
        let ecmd = Feature::ExtendedClockModulation;
        for (a, b) in [
            (", needs = [\"ecmd\"]", ", unless = [\"ecmd\"]"),
            (", models = [\"6.01\"]", ", models = [\"all\"]"),
        ] {
            let fields = [field("a", "7:0", a), field("a", "9:7", b)].concat();
            let file = parse(&format!("{HEAD}{}", register("REG", 0x10, &fields)), "f").unwrap();
            let width = |cpu: &CpuFacts| file.for_cpu(cpu).0[0].fields[0].most();
            assert_eq!(width(&cpu(1, &[ecmd])), 255);
            assert_eq!(width(&cpu(0x5E, &[])), 7);
        }
        for b in
            [", models = [\"F.02\"]", ", models = [\"6.4E\"]", ", needs = [\"hwp\"]", ", except = [\"F\"]"]
        {
            let fields = [field("a", "7:0", ", models = [\"all\"]"), field("b", "9:7", b)].concat();
            assert!(words(&format!("{HEAD}{}", register("REG", 0x10, &fields))).contains("overlap"), "{b}");
        }
    }

    #[test]
    fn groups_in_a_circle_end() {
        let circle = "vendors = [\"Intel\"]\n[models]\na = [\"b\", \"6.01\"]\nb = [\"a\", \"b\"]\n";
        let text = format!("{circle}{}", register("REG", 1, &field("f", "0", ", models = [\"a\"]")));
        assert_eq!(parse(&text, "f").unwrap().models(), [(6, 1)]);
    }
}
