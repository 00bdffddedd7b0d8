//! Registers and their fields: bits to values and back.

use serde::{Deserialize, Serialize};

/// Whose a register is: what is written through one thread shows in all that share it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Scope {
    /// Each logical CPU has its own.
    Thread,
    /// The threads of a core share it.
    Core,
    /// All CPUs of a package share it.
    Package,
}

/// What the hardware allows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FieldAccess {
    /// Reading only.
    Ro,
    /// Reading and writing.
    Rw,
    /// A sticky log bit: the hardware sets it, writing 0 clears it, writing 1 does nothing.
    Rwc0,
}

/// Why a value cannot be put into a field.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RegisterError {
    /// It has more bits than the field.
    #[error("{field}: {value} does not fit: 0 to {most}")]
    TooWide {
        /// `REGISTER.field`.
        field: String,
        /// What was asked.
        value: u64,
        /// The highest value.
        most: u64,
    },
    /// The field cannot be written.
    #[error("{0}: is read-only")]
    ReadOnly(String),
    /// The register has no such field on this CPU.
    #[error("{0}: this CPU's register has no such field")]
    NoField(String),
    /// The CPU has no such register, or we know none.
    #[error("{name}: {why}")]
    NoRegister {
        /// The register.
        name: String,
        /// The model, or the feature that is missing.
        why: String,
    },
    /// A value has no encoding.
    #[error("{0}")]
    NotEncodable(String),
}

/// Some bits of a register and what they mean.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Field {
    pub(super) register: String,
    /// Short name, unique in its register.
    pub name: String,
    /// Highest bit, 63 to 0.
    pub hi: u8,
    /// Lowest bit.
    pub lo: u8,
    /// What the hardware allows.
    pub access: FieldAccess,
    /// Why we never write it although the hardware would allow it.
    pub refuse: Option<String>,
    /// What it means.
    pub meaning: String,
    /// The unit of the value times `scale`.
    pub unit: Option<String>,
    /// What one step is, in `unit`.
    pub scale: f64,
    /// Counts up and wraps at the field's width.
    pub counter: bool,
    /// While this bit is set, these (high, low) cannot be written.
    pub locks: Option<(u8, u8)>,
}

/// Ones from `lo` to `hi`.
pub(super) fn span(hi: u8, lo: u8) -> u64 {
    let width = u32::from(hi - lo) + 1;
    (u64::MAX >> (64 - width)) << lo
}

impl Field {
    /// Ones at the field's bits.
    pub fn mask(&self) -> u64 {
        span(self.hi, self.lo)
    }

    /// The highest value.
    pub fn most(&self) -> u64 {
        self.mask() >> self.lo
    }

    /// The field's value in a register's.
    pub fn get(&self, raw: u64) -> u64 {
        (raw & self.mask()) >> self.lo
    }

    /// The register's value with this field changed and nothing else.
    ///
    /// # Errors
    /// [`RegisterError::TooWide`], [`RegisterError::ReadOnly`]. Whether the bits may be written is asked
    /// of [`crate::msr::Registers::check_write`].
    pub fn set(&self, raw: u64, value: u64) -> Result<u64, RegisterError> {
        if self.access == FieldAccess::Ro {
            return Err(RegisterError::ReadOnly(self.path()));
        }
        if value > self.most() {
            return Err(RegisterError::TooWide { field: self.path(), value, most: self.most() });
        }
        Ok(raw & !self.mask() | value << self.lo)
    }

    /// Whether we may write it.
    pub fn writable(&self) -> bool {
        self.access != FieldAccess::Ro && self.refuse.is_none()
    }

    /// `REGISTER.field`.
    pub fn path(&self) -> String {
        format!("{}.{}", self.register, self.name)
    }
}

/// A register as one CPU model has it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Register {
    /// The manual's name.
    pub name: String,
    /// The address: the offset in `dev/cpu/N/msr`.
    pub address: u32,
    /// Whose it is.
    pub scope: Scope,
    /// What it is for.
    pub meaning: String,
    /// Where it is described.
    pub source: String,
    /// Its fields on this model. Bits of none are reserved.
    pub fields: Vec<Field>,
}

/// One field of a decoded register.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Decoded<'a> {
    /// The field.
    pub field: &'a str,
    /// Its bits as a number.
    pub value: u64,
    /// The same in `unit`, when the field has one.
    pub scaled: Option<f64>,
    /// The unit.
    pub unit: Option<&'a str>,
    /// What it means.
    pub meaning: &'a str,
}

impl Register {
    /// The field of a name.
    ///
    /// # Errors
    /// [`RegisterError::NoField`] when this model's register has none.
    pub fn field(&self, name: &str) -> Result<&Field, RegisterError> {
        self.fields
            .iter()
            .find(|f| f.name == name)
            .ok_or_else(|| RegisterError::NoField(format!("{}.{name}", self.name)))
    }

    /// All fields of a value, for `info`.
    pub fn decode(&self, raw: u64) -> Vec<Decoded<'_>> {
        self.fields
            .iter()
            .map(|f| Decoded {
                field: &f.name,
                value: f.get(raw),
                scaled: f.unit.as_ref().map(|_| f.get(raw) as f64 * f.scale),
                unit: f.unit.as_deref(),
                meaning: &f.meaning,
            })
            .collect()
    }

    fn mask(&self, of: impl Fn(&Field) -> bool) -> u64 {
        self.fields.iter().filter(|f| of(f)).fold(0, |all, f| all | f.mask())
    }

    /// The bits that we may write.
    pub fn write_mask(&self) -> u64 {
        self.mask(Field::writable)
    }

    /// The bits that are described.
    pub fn known_mask(&self) -> u64 {
        self.mask(|_| true)
    }

    /// The sticky log bits, ours to write or not.
    pub fn log_mask(&self) -> u64 {
        self.mask(|f| f.access == FieldAccess::Rwc0)
    }

    /// The bits that the hardware lets software write, ours to write or not.
    pub fn hardware_mask(&self) -> u64 {
        self.mask(|f| f.access != FieldAccess::Ro)
    }

    /// The bits that cannot be written while the register holds `raw`, because a lock bit is set.
    pub fn locked(&self, raw: u64) -> u64 {
        self.fields
            .iter()
            .filter(|f| f.get(raw) != 0)
            .filter_map(|f| f.locks)
            .fold(0, |all, (hi, lo)| all | span(hi, lo))
    }
}
