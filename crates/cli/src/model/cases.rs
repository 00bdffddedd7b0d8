//! Workloads times machines: what is compared, one case each ([`Case`]).

use crate::exit::Failure;
use crate::model::machine;
use wattwise_model::machine::MachineModel;
use wattwise_model::workload::Workload;
pub(crate) use wattwise_replay::cases::Case;
use wattwise_replay::library;
use wattwise_replay::spec::PolicySpec;

/// Who asks for cases.
pub(crate) struct CasesAsked<'a> {
    /// The machines that are named; none: the one that each recording names.
    pub(crate) machines: &'a [MachineModel],
    /// The policies that are named; none: the usual ones of each machine.
    pub(crate) policies: &'a [PolicySpec],
    /// The reference that is named; none: what each machine does unless told otherwise.
    pub(crate) reference: Option<&'a str>,
    /// The usual policies of a machine.
    pub(crate) usual: &'a dyn Fn(&MachineModel) -> Vec<PolicySpec>,
}

/// All machines of the first workload, then of the second, and so on.
pub(crate) fn cases<'w>(works: &'w [Workload], asked: &CasesAsked<'_>) -> Result<Vec<Case<'w>>, Failure> {
    let mut cases = Vec::new();
    for workload in works {
        library::rankable(workload).map_err(Failure::input)?;
        let machines = match asked.machines {
            [] => vec![machine::machine_for(workload)?],
            named => named.to_vec(),
        };
        for machine in machines {
            cases.push(case(workload, machine, asked)?);
        }
    }
    Ok(cases)
}

fn case<'w>(
    workload: &'w Workload,
    machine: MachineModel,
    asked: &CasesAsked<'_>,
) -> Result<Case<'w>, Failure> {
    let policies = match asked.policies {
        [] => (asked.usual)(&machine),
        named => named.to_vec(),
    };
    Case::new(workload, machine, policies, asked.reference).map_err(Failure::input)
}
