//! Enough of AML, the byte code of ACPI tables, to find named packages. ACPI 6.5, chapter 20.
//!
//! Nothing is executed. A walk goes down through scopes, devices and processors, takes names with
//! constant values, notes what a method may return, and steps over the rest by its package length.
//! Table code outside methods (`If (CondRefOf (...)) { Scope ... }`) and method bodies hold expressions
//! whose arguments only an interpreter could count; there the walk feels its way, byte by byte, until
//! the next thing that it knows. What looks like a declaration of something that we want and is
//! broken is an error all the same.

use crate::acpi::error::AcpiError;
use std::collections::BTreeMap;

/// Deeper than any firmware nests, and shallow enough for any stack.
const DEEPEST: u32 = 40;

/// A constant.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum AmlValue {
    Integer(u64),
    Text(String),
    Buffer(Vec<u8>),
    Package(Vec<AmlValue>),
    /// A name, as it was written.
    Reference(Name),
}

/// A name as AML writes it: from the root, so many scopes up, and then these.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Name {
    root: bool,
    up: usize,
    segments: Vec<[u8; 4]>,
}

impl Name {
    /// The absolute path of this name in a scope.
    fn absolute(&self, scope: &str) -> String {
        let mut parts: Vec<&str> = if self.root { Vec::new() } else { segments_of(scope) };
        parts.truncate(parts.len().saturating_sub(self.up));
        let mut path = String::from("\\");
        path.push_str(&parts.join("."));
        for segment in &self.segments {
            if path.len() > 1 {
                path.push('.');
            }
            // Letters, digits and `_`, checked when the name was read. Padding is not shown: `_PR`.
            let padded = segment.iter().rev().take_while(|b| **b == b'_').count().min(3);
            path.extend(segment[..4 - padded].iter().map(|b| char::from(*b)));
        }
        path
    }

    fn last(&self) -> Option<&[u8; 4]> {
        self.segments.last()
    }
}

fn segments_of(path: &str) -> Vec<&str> {
    path.trim_start_matches('\\').split('.').filter(|s| !s.is_empty()).collect()
}

/// The scope above a path.
pub(super) fn parent(path: &str) -> String {
    let parts = segments_of(path);
    format!("\\{}", parts[..parts.len().saturating_sub(1)].join("."))
}

/// What a name stands for.
#[derive(Debug, Clone)]
pub(super) enum AmlObject {
    Value(AmlValue),
    /// What a method's `Return`s give, those that are constants or names; all paths through it alike.
    Method(Vec<AmlValue>),
    Alias(Name),
}

/// An object and where its declaration is.
#[derive(Debug, Clone)]
pub(super) struct Declared {
    pub(super) object: AmlObject,
    pub(super) table: String,
    pub(super) offset: usize,
}

/// All names of all tables that hold a constant, a method or an alias.
#[derive(Debug, Default)]
pub(super) struct Namespace {
    pub(super) objects: BTreeMap<String, Declared>,
    /// The paths of `Processor` objects with their ACPI ids.
    pub(super) processors: BTreeMap<String, u8>,
}

impl Namespace {
    /// The object of a name seen from a scope: a single segment is looked for upwards too.
    pub(super) fn find(&self, name: &Name, scope: &str) -> Option<(&str, &Declared)> {
        let direct = name.absolute(scope);
        if let Some((path, found)) = self.objects.get_key_value(&direct) {
            return Some((path, found));
        }
        if name.root || name.up > 0 || name.segments.len() != 1 {
            return None;
        }
        let mut scope = scope.to_owned();
        while scope != "\\" {
            scope = parent(&scope);
            if let Some((path, found)) = self.objects.get_key_value(&name.absolute(&scope)) {
                return Some((path, found));
            }
        }
        None
    }
}

/// Reads the names of a table's byte code (what follows the header, `start` bytes in).
///
/// # Errors
/// The first fault: an object that reaches beyond the one that holds it, nesting without end, a
/// package that is broken. What was found before it stays found.
pub(super) fn walk(
    table: &str,
    bytes: &[u8],
    start: usize,
    into: &mut Namespace,
    wanted: &dyn Fn(&[u8; 4]) -> bool,
) -> Result<(), AcpiError> {
    // No byte of a sound table is looked at more than a few times; feeling one's way through a
    // malicious one could take for ever.
    let budget = 20 * (bytes.len() + 1000);
    let mut walk = Walk { table, bytes, into, wanted, budget };
    walk.terms(start, bytes.len(), "\\", Context { depth: 0, feeling: false, method: None }, &mut Vec::new())
}

#[derive(Clone, Copy)]
struct Context {
    depth: u32,
    /// Whether unknown bytes are stepped over one by one.
    feeling: bool,
    /// Whether this is the body of a method, whose `Return`s count.
    method: Option<()>,
}

impl Context {
    fn inner(self) -> Context {
        Context { depth: self.depth + 1, ..self }
    }
}

struct Walk<'a> {
    table: &'a str,
    bytes: &'a [u8],
    into: &'a mut Namespace,
    wanted: &'a dyn Fn(&[u8; 4]) -> bool,
    budget: usize,
}

type Parsed<T> = Result<(T, usize), AcpiError>;

impl Walk<'_> {
    fn fault<T>(&self, at: usize, what: impl Into<String>) -> Result<T, AcpiError> {
        Err(AcpiError::Malformed { table: self.table.to_owned(), offset: at, what: what.into() })
    }

    fn spend(&mut self, at: usize) -> Result<(), AcpiError> {
        match self.budget.checked_sub(1) {
            Some(left) => {
                self.budget = left;
                Ok(())
            }
            None => self.fault(at, "objects within objects without end"),
        }
    }

    fn byte(&self, at: usize, end: usize) -> Result<u8, AcpiError> {
        match self.bytes.get(at) {
            Some(byte) if at < end => Ok(*byte),
            _ => self.fault(at, "ends in the middle of an object"),
        }
    }

    /// A package length: where what it measures ends, and where it begins.
    fn length(&self, at: usize, end: usize) -> Parsed<usize> {
        let lead = self.byte(at, end)?;
        let more = usize::from(lead >> 6);
        let mut length = usize::from(if more == 0 { lead & 0x3f } else { lead & 0xf });
        for i in 0..more {
            length |= usize::from(self.byte(at + 1 + i, end)?) << (4 + 8 * i);
        }
        let (begins, ends) = (at + 1 + more, at + length);
        if more > 0 && lead & 0x30 != 0 {
            return self.fault(at, "a package length with reserved bits");
        }
        if ends < begins || ends > end {
            return self.fault(at, format!("a length of {length} bytes where {} are left", end - at));
        }
        Ok((ends, begins))
    }

    fn segment(&self, at: usize, end: usize) -> Parsed<[u8; 4]> {
        let mut segment = [0; 4];
        for (i, to) in segment.iter_mut().enumerate() {
            let byte = self.byte(at + i, end)?;
            if !(byte.is_ascii_uppercase() || byte == b'_' || i > 0 && byte.is_ascii_digit()) {
                return self.fault(at + i, format!("byte {byte:#04x} in a name"));
            }
            *to = byte;
        }
        Ok((segment, at + 4))
    }

    fn name(&self, mut at: usize, end: usize) -> Parsed<Name> {
        let mut name = Name { root: false, up: 0, segments: Vec::new() };
        if self.byte(at, end)? == b'\\' {
            (name.root, at) = (true, at + 1);
        }
        while self.byte(at, end)? == b'^' {
            (name.up, at) = (name.up + 1, at + 1);
        }
        let count = match self.byte(at, end)? {
            0x00 => return Ok((name, at + 1)),
            0x2e => {
                at += 1;
                2
            }
            0x2f => {
                at += 2;
                usize::from(self.byte(at - 1, end)?)
            }
            _ => 1,
        };
        for _ in 0..count {
            let segment;
            (segment, at) = self.segment(at, end)?;
            name.segments.push(segment);
        }
        Ok((name, at))
    }

    fn little_endian(&self, at: usize, end: usize, bytes: usize) -> Parsed<u64> {
        let mut value = 0;
        for i in 0..bytes {
            value |= u64::from(self.byte(at + i, end)?) << (8 * i);
        }
        Ok((value, at + bytes))
    }

    /// A constant, or a name.
    fn value(&mut self, at: usize, end: usize, depth: u32) -> Parsed<AmlValue> {
        self.spend(at)?;
        if depth > DEEPEST {
            return self.fault(at, format!("nested more than {DEEPEST} deep"));
        }
        let integer = |(value, next)| (AmlValue::Integer(value), next);
        match self.byte(at, end)? {
            0x00 => Ok((AmlValue::Integer(0), at + 1)),
            0x01 => Ok((AmlValue::Integer(1), at + 1)),
            0xff => Ok((AmlValue::Integer(u64::MAX), at + 1)),
            0x0a => self.little_endian(at + 1, end, 1).map(integer),
            0x0b => self.little_endian(at + 1, end, 2).map(integer),
            0x0c => self.little_endian(at + 1, end, 4).map(integer),
            0x0e => self.little_endian(at + 1, end, 8).map(integer),
            0x0d => {
                let mut text = String::new();
                let mut next = at + 1;
                loop {
                    self.spend(next)?;
                    match self.byte(next, end)? {
                        0 => return Ok((AmlValue::Text(text), next + 1)),
                        byte if byte.is_ascii() => text.push(char::from(byte)),
                        byte => return self.fault(next, format!("byte {byte:#04x} in a string")),
                    }
                    next += 1;
                }
            }
            0x11 => {
                let (ends, begins) = self.length(at + 1, end)?;
                let (size, data) = self.value(begins, ends, depth + 1)?;
                let AmlValue::Integer(_) = size else {
                    return self.fault(begins, "a buffer whose size is not a constant");
                };
                Ok((AmlValue::Buffer(self.bytes[data..ends].to_vec()), ends))
            }
            op @ (0x12 | 0x13) => {
                let (ends, begins) = self.length(at + 1, end)?;
                let (count, mut next) = if op == 0x12 {
                    self.little_endian(begins, ends, 1)?
                } else {
                    match self.value(begins, ends, depth + 1)? {
                        (AmlValue::Integer(count), next) => (count, next),
                        _ => return self.fault(begins, "a package whose size is not a constant"),
                    }
                };
                let mut elements = Vec::new();
                while next < ends {
                    if elements.len() as u64 >= count {
                        return self.fault(next, format!("a package of {count} elements holds more"));
                    }
                    let element;
                    (element, next) = self.value(next, ends, depth + 1)?;
                    elements.push(element);
                }
                Ok((AmlValue::Package(elements), ends))
            }
            b'\\' | b'^' | b'_' | b'A'..=b'Z' | 0x2e | 0x2f => {
                self.name(at, end).map(|(name, next)| (AmlValue::Reference(name), next))
            }
            byte => self.fault(at, format!("byte {byte:#04x} where a constant was expected")),
        }
    }

    fn declare(&mut self, path: String, object: AmlObject, offset: usize) {
        let declared = Declared { object, table: self.table.to_owned(), offset };
        // The first declaration counts, as for an interpreter, which refuses the second. A constant
        // found where the walk feels its way gives way to nothing either.
        self.into.objects.entry(path).or_insert(declared);
    }

    /// The objects from `at` to `end`.
    fn terms(
        &mut self,
        mut at: usize,
        end: usize,
        scope: &str,
        mut context: Context,
        returns: &mut Vec<AmlValue>,
    ) -> Result<(), AcpiError> {
        if context.depth > DEEPEST {
            return self.fault(at, format!("nested more than {DEEPEST} deep"));
        }
        while at < end {
            self.spend(at)?;
            match self.term(at, end, scope, context, returns) {
                Ok(Some(next)) => at = next,
                Ok(None) => {
                    context.feeling = true;
                    at += 1;
                }
                Err(Fault::Sure(e)) => return Err(e),
                Err(Fault::Perhaps(e)) if !context.feeling => return Err(e),
                Err(Fault::Perhaps(_)) => at += 1,
            }
        }
        Ok(())
    }

    /// One object; `None` if it is none that we know.
    fn term(
        &mut self,
        at: usize,
        end: usize,
        scope: &str,
        context: Context,
        returns: &mut Vec<AmlValue>,
    ) -> Result<Option<usize>, Fault> {
        let op = self.byte(at, end)?;
        match op {
            // Name
            0x08 => self.named(at, end, scope, context),
            // Alias
            0x06 => {
                let (of, next) = self.name(at + 1, end)?;
                let (name, next) = self.name(next, end)?;
                self.declare(name.absolute(scope), AmlObject::Alias(of), at);
                Ok(Some(next))
            }
            // Scope
            0x10 => {
                let (ends, begins) = self.length(at + 1, end)?;
                let (name, next) = self.name(begins, ends)?;
                self.terms(next, ends, &name.absolute(scope), context.inner(), returns)?;
                Ok(Some(ends))
            }
            // Method
            0x14 => {
                let (ends, begins) = self.length(at + 1, end)?;
                let (name, next) = self.name(begins, ends)?;
                self.byte(next, ends)?;
                let path = name.absolute(scope);
                let mut returns = Vec::new();
                let inner = Context { feeling: true, method: Some(()), ..context.inner() };
                self.terms(next + 1, ends, &path, inner, &mut returns)?;
                self.declare(path, AmlObject::Method(returns), at);
                Ok(Some(ends))
            }
            // External
            0x15 => {
                let (_, next) = self.name(at + 1, end)?;
                self.byte(next + 1, end)?;
                Ok(Some(next + 2))
            }
            // If, Else, While: an expression, then objects
            0xa0..=0xa2 => {
                let (ends, begins) = self.length(at + 1, end)?;
                let inner = Context { feeling: context.feeling || op != 0xa1, ..context.inner() };
                self.terms(begins, ends, scope, inner, returns)?;
                Ok(Some(ends))
            }
            // Return
            0xa4 if context.method.is_some() => match self.value(at + 1, end, context.depth) {
                Ok((value, next)) => {
                    returns.push(value);
                    Ok(Some(next))
                }
                Err(_) => Ok(None),
            },
            0x5b => self.extended(at, end, scope, context, returns),
            // Constants and names are stepped over whole, lest their bytes be taken for something.
            0x0a | 0x0b | 0x0c | 0x0d | 0x0e | b'\\' | b'^' | b'_' | b'A'..=b'Z' | 0x2e | 0x2f
                if context.feeling =>
            {
                let (_, next) = self.value(at, end, context.depth)?;
                Ok(Some(next))
            }
            _ => Ok(None),
        }
    }

    /// A name and its value.
    fn named(
        &mut self,
        at: usize,
        end: usize,
        scope: &str,
        context: Context,
    ) -> Result<Option<usize>, Fault> {
        let (name, next) = self.name(at + 1, end)?;
        let ours = name.last().is_some_and(|n| (self.wanted)(n));
        match self.value(next, end, context.depth) {
            Ok((value, next)) => {
                self.declare(name.absolute(scope), AmlObject::Value(value), at);
                Ok(Some(next))
            }
            Err(e) if ours => Err(Fault::Sure(e)),
            // Not a constant after all. A buffer or package is stepped over whole.
            Err(_) if matches!(self.byte(next, end)?, 0x11..=0x13) => Ok(Some(self.length(next + 1, end)?.0)),
            Err(_) => Ok(None),
        }
    }

    /// Objects of two-byte codes.
    fn extended(
        &mut self,
        at: usize,
        end: usize,
        scope: &str,
        context: Context,
        returns: &mut Vec<AmlValue>,
    ) -> Result<Option<usize>, Fault> {
        match self.byte(at + 1, end)? {
            // Mutex: name, flags. Event: name.
            0x01 => {
                let (_, next) = self.name(at + 2, end)?;
                self.byte(next, end)?;
                Ok(Some(next + 1))
            }
            0x02 => Ok(Some(self.name(at + 2, end)?.1)),
            // OperationRegion: name, space, offset, length
            0x80 => {
                let (_, next) = self.name(at + 2, end)?;
                self.byte(next, end)?;
                let Ok((_, next)) = self.value(next + 1, end, context.depth) else { return Ok(None) };
                let Ok((_, next)) = self.value(next, end, context.depth) else { return Ok(None) };
                Ok(Some(next))
            }
            // Field, IndexField, BankField
            0x81 | 0x86 | 0x87 => Ok(Some(self.length(at + 2, end)?.0)),
            // Device, Processor, PowerResource, ThermalZone: a name, so many bytes, objects
            op @ 0x82..=0x85 => {
                let (ends, begins) = self.length(at + 2, end)?;
                let (name, next) = self.name(begins, ends)?;
                let path = name.absolute(scope);
                let skip = match op {
                    0x83 => 6,
                    0x84 => 3,
                    _ => 0,
                };
                if next + skip > ends {
                    return Ok(self.fault(next, "ends in the middle of an object")?);
                }
                if op == 0x83 {
                    let id = self.byte(next, ends)?;
                    self.into.processors.entry(path.clone()).or_insert(id);
                }
                self.terms(next + skip, ends, &path, context.inner(), returns)?;
                Ok(Some(ends))
            }
            _ => Ok(None),
        }
    }
}

/// A fault, and whether it counts where the walk feels its way and may have taken data for an object.
enum Fault {
    Sure(AcpiError),
    Perhaps(AcpiError),
}

impl From<AcpiError> for Fault {
    fn from(e: AcpiError) -> Fault {
        Fault::Perhaps(e)
    }
}
