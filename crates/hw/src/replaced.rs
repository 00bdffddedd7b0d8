//! What wattwise has put other values in the place of, for those who look at the machine later.
//!
//! Who applies an answer and asks again should not be told to give up as much speed once more. So `set` and the daemon leave a
//! note of the values that theirs have replaced: the file [`PATH`], a line `PATH VALUE` for each attribute. A capture takes it
//! along. Values that were replaced several times stand there as they were first; `wattwise restore` takes the note away.
//!
//! It is a note for reading a machine: what is put back comes from the journals, which only root reads.

use crate::root::over::OverRoot;
use crate::root::{Root, text};
use crate::states::cpufreq;
use std::collections::BTreeMap;

/// Where it is found below a root.
pub const PATH: &str = "run/wattwise/replaced";
/// Its name in the folder of the journals.
pub const NAME: &str = "replaced";

/// Attributes with the values that were replaced.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Replaced(BTreeMap<String, String>);

impl Replaced {
    /// The note of a machine; none where nothing was replaced.
    pub fn read(root: &dyn Root) -> Option<Replaced> {
        let note = text(root, PATH)?;
        let values = note.lines().filter_map(|line| line.split_once(' '));
        Some(values.map(|(path, value)| (path.to_owned(), value.to_owned())).collect())
            .filter(|r: &Replaced| !r.is_empty())
    }

    /// Whether nothing was replaced.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The file's text.
    pub fn text(&self) -> String {
        self.0.iter().map(|(path, value)| format!("{path} {value}\n")).collect()
    }

    /// The machine as it was before.
    pub fn before<'r>(mut self, now: &'r dyn Root) -> OverRoot<&'r dyn Root> {
        // In another mode the driver goes by another name, which nobody writes.
        for (switch, intel) in [("intel_pstate/status", true), ("amd_pstate/status", false)] {
            let Some(mode) = self.0.get(&format!("sys/devices/system/cpu/{switch}")) else { continue };
            let driver = cpufreq::driver_in_mode(intel, mode == "active");
            for policy in cpufreq::folders(now) {
                self.0.insert(format!("{policy}/scaling_driver"), driver.to_owned());
            }
        }
        OverRoot::new(now, self.0)
    }
}

impl FromIterator<(String, String)> for Replaced {
    /// Of equal paths the last one stays.
    fn from_iter<I: IntoIterator<Item = (String, String)>>(values: I) -> Replaced {
        Replaced(
            values.into_iter().filter(|(path, value)| is_a_line(path) && !value.contains('\n')).collect(),
        )
    }
}

fn is_a_line(path: &str) -> bool {
    !path.contains(char::is_whitespace)
}

/// A machine with the note that is kept elsewhere for it: of a root that is not `/`.
pub fn noted(root: Box<dyn Root>, note: String) -> impl Root {
    OverRoot::new(root, BTreeMap::from([(PATH.to_owned(), note)]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::root::tree::{Tree, TreeRoot};

    const POLICY: &str = "sys/devices/system/cpu/cpufreq/policy0";
    const STATUS: &str = "sys/devices/system/cpu/amd_pstate/status";

    #[test]
    fn a_machine_is_read_as_it_was_before() {
        let mut tree = Tree::default();
        for (path, value) in [
            (PATH.to_owned(), format!("{POLICY}/scaling_governor performance\n{STATUS} passive\ntorn")),
            (format!("{POLICY}/scaling_governor"), "powersave\n".to_owned()),
            (format!("{POLICY}/scaling_driver"), "amd-pstate-epp\n".to_owned()),
            (format!("{POLICY}/scaling_max_freq"), "3000000\n".to_owned()),
            (STATUS.to_owned(), "active\n".to_owned()),
        ] {
            tree.files.insert(path, value.into_bytes());
        }
        let now = TreeRoot::new(tree, "a tree");
        let before = Replaced::read(&now).expect("a note").before(&now);
        let value = |file: &str| text(&before, &format!("{POLICY}/{file}"));
        assert_eq!(value("scaling_governor").as_deref(), Some("performance"));
        assert_eq!(value("scaling_driver").as_deref(), Some("amd-pstate"));
        assert_eq!(value("scaling_max_freq").as_deref(), Some("3000000"));
        assert_eq!(value("scaling_min_freq"), None);
    }

    #[test]
    fn a_note_that_is_kept_elsewhere_is_captured_with_the_machine() {
        let note = "sys/a 1\nsys/b two words\n";
        let root = noted(Box::new(TreeRoot::new(Tree::default(), "a tree")), note.to_owned());
        let (tree, _) = crate::capture::snapshot(&root, &crate::capture::Options::default());
        let replaced = Replaced::read(&TreeRoot::new(tree, "a capture")).expect("a note");
        assert_eq!(replaced.text(), note);
    }
}
