//! Whether there is a bus, and what is told to it.

use crate::asks::Asks;
use crate::brain::ProfileHold;
use crate::protocol::Status;

/// The desktop's side, where there is one.
pub(crate) struct Bus {
    #[cfg(feature = "dbus")]
    ppd: Option<crate::ppd::Ppd>,
}

/// Takes the names on a bus: `system`, or an address.
#[cfg(feature = "dbus")]
pub(crate) fn begin(bus: Option<&str>, asks: &Asks) -> Bus {
    let Some(bus) = bus else { return Bus { ppd: None } };
    match crate::ppd::Ppd::begin(bus, asks) {
        Ok(ppd) => Bus { ppd: Some(ppd) },
        Err(e) => {
            crate::asks::say(&format!(
                "D-Bus: {e}; desktops cannot choose a profile, 'wattwise profile' can"
            ));
            Bus { ppd: None }
        }
    }
}

/// Built without D-Bus.
#[cfg(not(feature = "dbus"))]
pub(crate) fn begin(bus: Option<&str>, _: &Asks) -> Bus {
    if bus.is_some_and(|b| b != "system") {
        crate::asks::say("this wattwised was built without D-Bus (feature dbus)");
    }
    Bus {}
}

impl Bus {
    /// What is in force now, and holds that have ended since.
    #[cfg_attr(not(feature = "dbus"), allow(unused_variables, clippy::unused_self))]
    pub(crate) fn tell(&self, told: impl FnOnce() -> (Status, Vec<ProfileHold>)) {
        #[cfg(feature = "dbus")]
        if let Some(ppd) = &self.ppd {
            let (status, ended) = told();
            ppd.tell(&status, &ended);
        }
    }
}
