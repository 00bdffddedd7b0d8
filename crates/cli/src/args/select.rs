//! `--cpus`, `--cores`, `--packages`, `--type`, and by which mechanism CPUs are kept.

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use wattwise_control::cores::mechanism::MechanismKind;
use wattwise_hw::cpus::select::Selector;

/// Which CPUs are meant: one must satisfy each that was given.
#[derive(Debug, Clone, Default, clap::Args)]
pub(crate) struct SelectorArgs {
    /// CPUs, such as 0-3,8, or all
    #[arg(long, value_name = "LIST")]
    cpus: Option<String>,
    /// Cores, numbered through over the machine as `info cpus` shows them
    #[arg(long, value_name = "LIST")]
    cores: Option<String>,
    /// Packages (sockets)
    #[arg(long, value_name = "LIST")]
    packages: Option<String>,
    /// Kind of core: P, E or LP-E
    #[arg(long = "type", value_name = "KIND")]
    kind: Option<String>,
}

impl SelectorArgs {
    /// As the hardware's side takes it.
    pub(crate) fn selector(&self) -> Selector {
        Selector {
            cpus: self.cpus.clone(),
            cores: self.cores.clone(),
            packages: self.packages.clone(),
            kind: self.kind.clone(),
        }
    }
}

/// Takes the words of [`MechanismKind::ALL`].
pub(crate) fn mechanism() -> impl TypedValueParser<Value = MechanismKind> {
    PossibleValuesParser::new(MechanismKind::ALL.map(|k| PossibleValue::new(k.word()).help(k.help()))).map(
        |word| MechanismKind::ALL.into_iter().find(|k| k.word() == word).unwrap_or(MechanismKind::Slices),
    )
}
