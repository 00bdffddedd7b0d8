//! The space of a search: which settings of which policies may change, and between which values.
//!
//! ```text
//! PART[,PART...]      PART: a speed, idle or core policy, or caps, with or without :key=RANGE,...
//! RANGE: FROM..TO | WORD|WORD | one value, which is then fixed
//! ```
//!
//! A policy that is named alone has all its settings free, each in the range that its own table gives; where settings are
//! named, the others stay at their default. `caps` is the highest speed that users allow. Without a speed policy the
//! reference policy is what the rest is added to. The same as a file has the keys of a policy file:
//!
//! ```toml
//! speed = { policy = "burst", busy = "0..20", down = "step|proportional" }
//! caps = { max = "50..100" }
//! ```
//!
//! A search works on the unit cube: [`Space::policy`] makes a policy of a point. Ranges in the tables say what is allowed and
//! may be wide (`burst` takes up to 10 000 ticks), so a wide one is drawn out around its default: half of the points lie
//! on either side, and most are near it. A range that the user gives is even, or even in the logarithm from a factor of 20.

use std::path::Path;
use wattwise_figure::mistake::at_line;
use wattwise_figure::nearest;
use wattwise_figure::units::trim;
use wattwise_policy::chosen::{CoresSpec, IdleSpec};
use wattwise_policy::limits::Bound;
use wattwise_policy::{Param, ParamKind, Settings, cores, idle, number_and_unit, speed, unit_ratio};
use wattwise_replay::spec::PolicySpec;

/// Highest speed allowed, as a share of a core's highest; at all of it there is no cap.
static CAPS: &[Param] = &[Param {
    name: "max",
    help: "highest speed allowed, of a core's highest",
    kind: ParamKind::Number { unit: "%", min: 20.0, max: 100.0, default: 100.0 },
}];
/// The word for them.
const CAPS_WORD: &str = "caps";
/// Ranges of more than this are drawn out around their default.
const WIDE: f64 = 100.0;
/// The share of a one-sided range's points that are its default: such a default often means "off" or "by itself".
const AT_DEFAULT: f64 = 0.1;
/// From this factor on a user's range is even in the logarithm.
const LOGARITHMIC: f64 = 20.0;

/// What is wrong with a space.
#[derive(Debug, thiserror::Error)]
pub enum SpaceError {
    /// No such policy.
    #[error(
        "--space {given}: no policy of that name; did you mean '{nearest}'? ('wattwise policies' lists them, and 'caps' is a limit on the speed)"
    )]
    Unknown {
        /// What was written.
        given: String,
        /// The most similar name.
        nearest: String,
    },
    /// A part that cannot be used.
    #[error(
        "--space {given}: {problem}; expected parts such as burst, schedutil:rate_limit=1..20ms, consolidate or caps, divided by commas"
    )]
    Part {
        /// What was written.
        given: String,
        /// What is wrong with it.
        problem: String,
    },
    /// A file that cannot be used.
    #[error(
        "{path}: {problem}; expected speed = {{ policy = \"burst\", busy = \"0..20\" }}, and perhaps idle, cores and caps"
    )]
    File {
        /// The file.
        path: String,
        /// What is wrong with it.
        problem: String,
    },
}

/// Which part of a policy a setting belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Family {
    Speed,
    Idle,
    Cores,
    Caps,
}

/// The values that a setting may take in the search.
#[derive(Clone, Debug, PartialEq)]
enum ValueRange {
    /// All that its table allows.
    Own,
    /// From, to.
    Span(f64, f64),
    /// One of these.
    Values(Vec<f64>),
}

/// One setting that is free.
#[derive(Clone, Debug)]
struct Axis {
    family: Family,
    param: &'static Param,
    range: ValueRange,
}

/// A free setting, for people.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Free {
    /// The policy that it is a setting of, or `caps`.
    pub policy: String,
    /// Its name.
    pub name: String,
    /// Unit of its values; empty for counts and words.
    pub unit: String,
    /// What it may be, in words.
    pub range: String,
    /// What it is unless told otherwise.
    pub default: String,
}

/// A space.
#[derive(Clone)]
pub struct Space {
    base: PolicySpec,
    axes: Vec<Axis>,
    text: String,
}

/// A part as it is written: a name and its settings.
type Written = (String, Vec<(String, String)>);

impl Space {
    /// Reads a space; a word that ends in `.toml` is a file. What is not searched is the reference policy's, where the space
    /// names no speed policy.
    ///
    /// # Errors
    /// One line that says what is wrong, what was expected and the nearest name.
    pub fn parse(text: &str, reference: &PolicySpec) -> Result<Space, SpaceError> {
        let parts = if text.ends_with(".toml") { file(Path::new(text))? } else { inline(text) };
        Space::new(&parts, text, reference)
    }

    fn new(parts: &[Written], given: &str, reference: &PolicySpec) -> Result<Space, SpaceError> {
        let wrong = |problem: String| SpaceError::Part { given: given.to_owned(), problem };
        let speeds = parts.iter().find_map(|(name, _)| speed::find(name));
        let mut base = match speeds {
            Some(speed) => PolicySpec::alone(speed),
            None => reference.clone(),
        };
        let (mut axes, mut families) = (Vec::new(), Vec::new());
        for (name, pairs) in parts {
            let family = family(name).ok_or_else(|| SpaceError::Unknown {
                given: given.to_owned(),
                nearest: nearest(name, names()),
            })?;
            if families.contains(&family) {
                return Err(wrong(format!("'{name}' is a second part of its kind")));
            }
            families.push(family);
            begin(&mut base, family, name);
            let params = params(&base, family);
            if pairs.is_empty() {
                let free = params.iter().filter(|p| p.is_setting());
                axes.extend(free.map(|param| Axis { family, param, range: ValueRange::Own }));
            }
            for (i, (key, value)) in pairs.iter().enumerate() {
                let told = |problem: String| wrong(format!("{name}: {problem}"));
                if pairs[..i].iter().any(|(earlier, _)| earlier == key) {
                    return Err(told(format!("{key}: expected once, not twice")));
                }
                match range(params, key, value).map_err(told)? {
                    Some((param, range)) => axes.push(Axis { family, param, range }),
                    None => set(&mut base, family, key, value).map_err(told)?,
                }
            }
        }
        if axes.is_empty() {
            return Err(wrong("nothing is free to be searched".into()));
        }
        Ok(Space { base: base.renamed(), axes, text: written(parts) })
    }

    /// As it can be given again, a file's content included.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// How many settings are free.
    pub fn dimensions(&self) -> usize {
        self.axes.len()
    }

    /// The free settings.
    pub fn free(&self) -> Vec<Free> {
        self.axes.iter().map(|a| a.free(&self.base)).collect()
    }

    /// The policies of the space with all settings at their default.
    pub fn defaults(&self) -> PolicySpec {
        self.base.clone()
    }

    /// The point that is nearest to the defaults.
    pub fn default_at(&self) -> Vec<f64> {
        self.axes.iter().map(Axis::default_at).collect()
    }

    /// The policy at a point of the unit cube.
    pub fn policy(&self, at: &[f64]) -> PolicySpec {
        let mut spec = self.base.clone();
        for (axis, &u) in self.axes.iter().zip(at) {
            let value = axis.param.kind.show(axis.value(u));
            // A value of the parameter's own range is one that it takes.
            _ = set(&mut spec, axis.family, axis.param.name, &value);
        }
        spec.renamed()
    }
}

/// Cuts a text into parts: a word without `=`, or with `:` before it, begins a new one.
fn inline(text: &str) -> Vec<Written> {
    let pair = |word: &str| {
        let (key, value) = word.split_once('=').unwrap_or((word, ""));
        (key.trim().to_owned(), value.trim().to_owned())
    };
    let mut parts: Vec<Written> = Vec::new();
    for word in text.split(',') {
        let (head, first) = word.split_once(':').unwrap_or((word, ""));
        match parts.last_mut() {
            Some((_, pairs)) if head.contains('=') => pairs.push(pair(word)),
            _ => {
                let pairs = if first.is_empty() { Vec::new() } else { vec![pair(first)] };
                parts.push((head.trim().to_owned(), pairs));
            }
        }
    }
    parts
}

/// The parts of a file.
fn file(path: &Path) -> Result<Vec<Written>, SpaceError> {
    let fail = |problem: String| SpaceError::File { path: path.display().to_string(), problem };
    let text = wattwise_figure::budget::read_text(path).map_err(|e| fail(e.to_string()))?;
    if text.trim().is_empty() {
        return Err(fail("is empty".into()));
    }
    let at = |e: toml::de::Error| fail(at_line(&text, e.span().map(|s| s.start), e.message()));
    let table: toml::Table = text.parse().map_err(at)?;
    let known = ["speed", "idle", "cores", CAPS_WORD];
    let mut parts = Vec::new();
    if let Some(key) = table.keys().find(|k| !known.contains(&k.as_str())) {
        let nearest = nearest(key, known);
        return Err(fail(format!("unknown key '{key}'; did you mean '{nearest}'?")));
    }
    for key in known {
        match table.get(key) {
            None => {}
            Some(toml::Value::Boolean(true)) if key == CAPS_WORD => parts.push((key.into(), Vec::new())),
            Some(toml::Value::String(name)) => parts.push((name.clone(), Vec::new())),
            Some(toml::Value::Table(t)) => {
                let name = match t.get("policy") {
                    Some(toml::Value::String(name)) => name.clone(),
                    None if key == CAPS_WORD => key.to_owned(),
                    _ => return Err(fail(format!("'{key}' has no policy"))),
                };
                let pair = |(k, v): (&String, &toml::Value)| match v {
                    toml::Value::String(s) => (k.clone(), s.clone()),
                    v => (k.clone(), v.to_string()),
                };
                parts.push((name, t.iter().filter(|(k, _)| *k != "policy").map(pair).collect()));
            }
            Some(_) => return Err(fail(format!("'{key}' is neither a name nor a table"))),
        }
    }
    if parts.is_empty() { Err(fail("it names no policy".into())) } else { Ok(parts) }
}

fn written(parts: &[Written]) -> String {
    let part = |(name, pairs): &Written| {
        let pairs: Vec<String> = pairs.iter().map(|(k, v)| format!("{k}={v}")).collect();
        if pairs.is_empty() { name.clone() } else { format!("{name}:{}", pairs.join(",")) }
    };
    parts.iter().map(part).collect::<Vec<_>>().join(",")
}

fn family(name: &str) -> Option<Family> {
    match () {
        () if speed::find(name).is_some() => Some(Family::Speed),
        () if idle::find(name).is_some() => Some(Family::Idle),
        () if cores::find(name).is_some() => Some(Family::Cores),
        () if name == CAPS_WORD => Some(Family::Caps),
        () => None,
    }
}

fn names() -> impl Iterator<Item = &'static str> {
    let speeds = speed::ALL.iter().map(|p| p.name);
    speeds.chain(idle::ALL.iter().map(|p| p.name)).chain(cores::ALL.iter().map(|p| p.name)).chain([CAPS_WORD])
}

/// Puts a part with its defaults into a policy.
fn begin(base: &mut PolicySpec, family: Family, name: &str) {
    match family {
        Family::Speed => {}
        Family::Idle => {
            base.idle =
                idle::find(name).map(|idle| IdleSpec { idle, settings: Settings::defaults(idle.params) });
        }
        Family::Cores => {
            base.cores = cores::find(name)
                .map(|cores| CoresSpec { cores, settings: Settings::defaults(cores.params) });
        }
        Family::Caps => base.limits.max = None,
    }
}

fn params(base: &PolicySpec, family: Family) -> &'static [Param] {
    match family {
        Family::Speed => base.speed.params,
        Family::Idle => base.idle.as_ref().map_or(&[], |i| i.idle.params),
        Family::Cores => base.cores.as_ref().map_or(&[], |c| c.cores.params),
        Family::Caps => CAPS,
    }
}

/// Gives one setting of a policy a value.
fn set(spec: &mut PolicySpec, family: Family, key: &str, value: &str) -> Result<(), String> {
    let params = params(spec, family);
    let told = |e: wattwise_policy::SpecError| e.to_string();
    match family {
        Family::Speed => spec.speed_settings.set(params, key, value).map_err(told),
        Family::Idle => {
            spec.idle.as_mut().map_or(Ok(()), |i| i.settings.set(params, key, value)).map_err(told)
        }
        Family::Cores => {
            spec.cores.as_mut().map_or(Ok(()), |c| c.settings.set(params, key, value)).map_err(told)
        }
        Family::Caps => {
            let mut settings = Settings::defaults(params);
            settings.set(params, key, value).map_err(told)?;
            let percent = settings.number(key);
            spec.limits.max = (percent < 100.0).then_some(Bound::Share((percent * 1000.0).round() as u32));
            Ok(())
        }
    }
}

/// A range as it is written, and whose; none for a single value.
fn range(
    params: &'static [Param],
    key: &str,
    value: &str,
) -> Result<Option<(&'static Param, ValueRange)>, String> {
    let read = |text: &str| -> Result<f64, String> {
        let mut settings = Settings::defaults(params);
        settings.set(params, key, text).map_err(|e| e.to_string())?;
        Ok(settings.number(key))
    };
    let param = || params.iter().find(|p| p.name == key);
    if let Some((from, to)) = value.split_once("..") {
        let Some(param) = param() else { return read(from).map(|_| None) };
        if !matches!(param.kind, ParamKind::Number { .. } | ParamKind::Scale { .. }) {
            return Err(format!("{key}={value}: expected {}", param.kind.expected()));
        }
        // A unit that is written once is that of both ends.
        let unit = |text: &str| number_and_unit(text).map_or("", |(_, unit)| unit).to_owned();
        let from = match (unit(from).is_empty(), number_and_unit(to)) {
            (true, Some((_, unit))) if unit_ratio(unit, "").is_none() => format!("{from}{unit}"),
            _ => from.to_owned(),
        };
        let (low, high): (f64, f64) = (read(&from)?, read(to)?);
        if low >= high {
            return Err(format!("{key}={value}: expected a range that rises"));
        }
        return Ok(Some((param, ValueRange::Span(low, high))));
    }
    if value.contains('|') {
        let Some(param) = param() else { return read(value).map(|_| None) };
        let values: Vec<f64> = value.split('|').map(|v| read(v.trim())).collect::<Result<_, String>>()?;
        return Ok(Some((param, ValueRange::Values(values))));
    }
    Ok(None)
}

impl Axis {
    fn default(&self) -> f64 {
        match self.param.kind {
            ParamKind::Number { default, .. } => default,
            ParamKind::Choice(_) => 0.0,
            ParamKind::Scale { default, .. } => f64::from(default),
        }
    }

    /// The ends of the values.
    fn ends(&self) -> (f64, f64) {
        match (&self.range, self.param.kind) {
            (ValueRange::Span(low, high), _) => (*low, *high),
            (_, ParamKind::Number { min, max, .. }) => (min, max),
            (_, ParamKind::Scale { min, max, .. }) => (f64::from(min), f64::from(max)),
            (_, ParamKind::Choice(words)) => (0.0, words.len() as f64 - 1.0),
        }
    }

    /// The values, where they are few.
    fn values(&self) -> Option<Vec<f64>> {
        match (&self.range, self.param.kind) {
            (ValueRange::Values(values), _) => Some(values.clone()),
            (_, ParamKind::Choice(words)) => Some((0..words.len()).map(|i| i as f64).collect()),
            _ => None,
        }
    }

    /// Whether the values are drawn out, so that they are told by digits and not by steps.
    fn drawn_out(&self) -> bool {
        let (low, high) = self.ends();
        match self.range {
            ValueRange::Span(..) => low > 0.0 && high / low >= LOGARITHMIC,
            _ => high - low > WIDE && !matches!(self.param.kind, ParamKind::Scale { .. }),
        }
    }

    /// The value at `u`, rising, not yet rounded.
    fn raw(&self, u: f64) -> f64 {
        let ((low, high), default) = (self.ends(), self.default());
        match (&self.range, self.drawn_out()) {
            (_, false) => low + u * (high - low),
            (ValueRange::Span(..), true) => low * (high / low).powf(u),
            (_, true) if default <= low => {
                let (w, scale) = (((u - AT_DEFAULT) / (1.0 - AT_DEFAULT)).max(0.0), (high - low) / 1000.0);
                low + scale * (1001_f64.powf(w) - 1.0)
            }
            (_, true) if u < 0.5 => {
                let w = 1.0 - 2.0 * u;
                if low > 0.0 { default * (low / default).powf(w * w) } else { default - (default - low) * w }
            }
            (_, true) => {
                let w = 2.0 * u - 1.0;
                if default > 0.0 && high > default {
                    default * (high / default).powf(w * w)
                } else {
                    default + (high - default) * w
                }
            }
        }
    }

    /// The value at `u` as it is set: whole counts, steps of a fiftieth of the range or finer, or two digits.
    fn value(&self, u: f64) -> f64 {
        let u = u.clamp(0.0, 1.0);
        if let Some(values) = self.values() {
            return values[((u * values.len() as f64) as usize).min(values.len() - 1)];
        }
        let (raw, default, (low, high)) = (self.raw(u), self.default(), self.ends());
        if (raw - default).abs() <= 1e-9 * default.abs().max(1.0) {
            return default;
        }
        let whole = match self.param.kind {
            ParamKind::Number { unit, .. } => unit.is_empty(),
            _ => true,
        };
        let step = match self.drawn_out() {
            _ if raw == 0.0 => 1.0,
            true => 10_f64.powf(raw.abs().log10().floor() - 1.0),
            false => 10_f64.powf(((high - low) / 50.0).log10().floor()),
        };
        rounded(raw, if whole { step.max(1.0) } else { step }).clamp(low, high)
    }

    fn default_at(&self) -> f64 {
        let default = self.default();
        if let Some(values) = self.values() {
            let at = values.iter().position(|v| *v == default).unwrap_or(0);
            return (at as f64 + 0.5) / values.len() as f64;
        }
        // The least u that reaches it.
        let (mut below, mut above) = (0.0, 1.0);
        if self.raw(0.0) >= default {
            return 0.0;
        }
        for _ in 0..60 {
            let middle = f64::midpoint(below, above);
            if self.raw(middle) >= default { above = middle } else { below = middle }
        }
        above
    }

    fn free(&self, base: &PolicySpec) -> Free {
        let (low, high) = self.ends();
        let kind = &self.param.kind;
        let range = match self.values() {
            Some(values) => values.iter().map(|v| kind.show(*v)).collect::<Vec<_>>().join(", "),
            None => format!("{} to {}", trim(low, 6), trim(high, 6)),
        };
        let policy = match self.family {
            Family::Speed => base.speed.name,
            Family::Idle => base.idle.as_ref().map_or("", |i| i.idle.name),
            Family::Cores => base.cores.as_ref().map_or("", |c| c.cores.name),
            Family::Caps => CAPS_WORD,
        };
        let unit = match kind {
            ParamKind::Number { unit, .. } => unit,
            _ => "",
        };
        Free {
            policy: policy.into(),
            name: self.param.name.into(),
            unit: unit.to_owned(),
            range,
            default: kind.show(self.default()),
        }
    }
}

/// The multiple of `step`, a power of ten, that is nearest to a value: as the shortest decimal.
fn rounded(value: f64, step: f64) -> f64 {
    if step >= 1.0 {
        return (value / step).round() * step;
    }
    let parts = (1.0 / step).round();
    (value * parts).round() / parts
}

#[cfg(test)]
mod tests {
    use super::*;

    fn space(text: &str) -> Space {
        let reference = PolicySpec::parse("hwp:epp=102+max=80%").unwrap();
        Space::parse(text, &reference).unwrap_or_else(|e| panic!("{e}"))
    }

    fn names(space: &Space) -> Vec<String> {
        space.free().iter().map(|f| format!("{}.{}", f.policy, f.name)).collect()
    }

    /// What is free is what the policies' own tables say, without what nobody can set.
    #[test]
    fn a_policy_alone_has_all_its_settings_free() {
        assert_eq!(names(&space("burst")), ["burst.busy", "burst.idle", "burst.down"]);
        assert_eq!(names(&space("schedutil,caps")), ["schedutil.rate_limit", "caps.max"]);
        assert_eq!(names(&space("hwp")), ["hwp.epp"]);
        let free = ["period", "trial", "note", "full", "ratio", "bound"].map(|n| format!("consolidate.{n}"));
        assert_eq!(names(&space("consolidate")), free);
        assert_eq!(names(&space("burst:busy=0..20,idle=5,teo,caps")), ["burst.busy", "caps.max"]);
    }

    #[test]
    fn without_a_speed_policy_the_reference_is_the_ground() {
        assert_eq!(space("consolidate").defaults().text, "hwp:epp=102+consolidate+max=80%");
        assert_eq!(space("caps").defaults().text, "hwp:epp=102", "the cap is what is searched");
        assert_eq!(space("burst").defaults().text, "burst");
        assert_eq!(space("burst:busy=0..20,idle=5").defaults().text, "burst:idle=5");
    }

    /// Every point is a policy that can be written and read again, and the defaults are among the points.
    #[test]
    fn each_point_is_a_policy() {
        let mut random = wattwise_figure::Random::new(1);
        let all = wattwise_policy::speed::ALL.iter().map(|p| p.name).chain(["consolidate,caps", "lpmd,menu"]);
        for text in all {
            let reference = PolicySpec::parse("performance").unwrap();
            let Ok(space) = Space::parse(text, &reference) else { continue };
            assert_eq!(space.policy(&space.default_at()).text, space.defaults().text, "{text}");
            for edge in [0.0, 1.0, f64::NAN] {
                let at = vec![edge; space.dimensions()];
                let spec = space.policy(&at);
                assert_eq!(PolicySpec::parse(&spec.text).unwrap().text, spec.text);
            }
            for _ in 0..300 {
                let at: Vec<f64> = (0..space.dimensions()).map(|_| random.unit()).collect();
                let spec = space.policy(&at);
                assert_eq!(PolicySpec::parse(&spec.text).unwrap().text, spec.text);
            }
        }
    }

    /// A wide range: half of the points on either side of the default, most of them near it, the ends within reach.
    #[test]
    fn a_wide_range_is_drawn_out_around_its_default() {
        let space = space("consolidate");
        let value = |u: f64| space.axes[0].value(u);
        assert_eq!((value(0.0), value(0.5), value(1.0)), (1.0, 20.0, 10_000.0));
        assert!((30.0..120.0).contains(&value(0.75)), "{}", value(0.75));
        let values: Vec<f64> = (0..=1000).map(|i| value(f64::from(i) / 1000.0)).collect();
        assert!(values.is_sorted(), "{values:?}");
        let rate = &super::tests::space("schedutil").axes[0].clone();
        assert_eq!((rate.value(0.0), rate.value(0.09), rate.value(1.0)), (-1.0, -1.0, 1_000_000.0));
    }

    #[test]
    fn a_users_range_is_kept() {
        let s = space("schedutil:rate_limit=1..20ms");
        assert_eq!((s.axes[0].value(0.0), s.axes[0].value(1.0)), (1000.0, 20_000.0));
        assert_eq!(s.policy(&[0.5]).text, "schedutil:rate_limit=4500");
        let s = space("burst:down=proportional|step,busy=0..4");
        assert_eq!(s.policy(&[0.2, 0.6]).text, "burst:busy=2,down=proportional");
        assert_eq!(space("caps:max=50..100").policy(&[0.2]).text, "hwp:epp=102+max=60%");
    }

    #[test]
    fn a_file_says_the_same() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("space.toml");
        let reference = PolicySpec::parse("performance").unwrap();
        let read = |text: &str| {
            std::fs::write(&path, text).unwrap();
            Space::parse(path.to_str().unwrap(), &reference)
        };
        let s = read("speed = { policy = 'burst', busy = '0..20', idle = 4 }\ncaps = true").unwrap();
        assert_eq!(s.text(), "burst:busy=0..20,idle=4,caps");
        assert_eq!(read("cores = 'consolidate'").unwrap().text(), "consolidate");
        for (wrong, told) in [
            ("", "is empty; expected speed"),
            ("sped = 'burst'", "did you mean 'speed'"),
            ("speed = 3", "neither a name nor a table"),
            ("speed = { busy = 3 }", "'speed' has no policy"),
            ("speed = ", "space.toml: "),
        ] {
            let error = read(wrong).err().unwrap().to_string();
            assert!(error.contains(told) && error.contains("space.toml") && !error.contains('\n'), "{error}");
        }
    }

    #[test]
    fn what_is_no_space_is_one_line() {
        let reference = PolicySpec::parse("performance").unwrap();
        for (given, told) in [
            ("brust", "did you mean 'burst'"),
            ("cap", "did you mean 'caps'"),
            ("", "did you mean"),
            ("burst,schedutil", "'schedutil' is a second part of its kind"),
            ("performance", "nothing is free"),
            ("burst:busy=3", "nothing is free"),
            ("burst:bussy=0..3", "no parameter 'bussy'"),
            ("burst:busy=0..3,busy=0..9", "burst: busy: expected once, not twice"),
            ("burst:busy=9..3", "expected a range that rises"),
            ("burst:busy=0..30000", "expected a number from 0 to 10000"),
            ("burst:down=step|sideways", "down=sideways: expected one of step, proportional"),
            ("burst:down=1..2", "expected one of step, proportional"),
            ("schedutil:rate_limit=1MHz..2MHz", "expected a number"),
            ("missing.toml", "missing.toml: "),
        ] {
            let error = Space::parse(given, &reference).err().unwrap_or_else(|| panic!("{given} passes"));
            let error = error.to_string();
            assert!(
                error.contains(told) && error.contains(given) && !error.contains('\n'),
                "{given}: {error}"
            );
        }
    }
}
