//! What wattwise has put other values in the place of, for those who look at the machine later.
//!
//! Who applies an answer and asks again should not be told to give up as much speed once more. So `set` and the daemon leave a
//! note of the values that theirs have replaced: the file [`PATH`], a line `PATH VALUE` for each attribute, the changes of settings
//! apart by an empty line, the newest first. A capture takes it along; `wattwise restore` takes it away.
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

/// The most layers of a note; who sets more often is told by the newest.
const MOST: usize = 6;

/// A machine's values before one change of settings, where they are others than now.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Replaced(BTreeMap<String, String>);

/// A note's text. Of layers that come one by one, newest first, no more are asked for than are noted.
pub fn note(layers: impl IntoIterator<Item = Vec<(String, String)>>) -> String {
    let is_a_line =
        |(path, value): &(String, String)| !path.contains(char::is_whitespace) && !value.contains('\n');
    let lines = |layer: Vec<(String, String)>| -> String {
        layer.into_iter().filter(is_a_line).map(|(path, value)| format!("{path} {value}\n")).collect()
    };
    let layers: Vec<String> =
        layers.into_iter().map(lines).filter(|text| !text.is_empty()).take(MOST).collect();
    layers.join("\n")
}

impl Replaced {
    /// What stood on a machine before each change of settings, by its note: the newest change first. Nothing where nothing was replaced.
    pub fn layers(root: &dyn Root) -> Vec<Replaced> {
        let note = text(root, PATH).unwrap_or_default();
        let mut before = BTreeMap::new();
        let layers = note.split("\n\n").take(MOST).map(|layer| {
            let values = layer.lines().filter_map(|line| line.split_once(' '));
            before.extend(values.map(|(path, value)| (path.to_owned(), value.to_owned())));
            Replaced(before.clone())
        });
        layers.filter(|layer| !layer.0.is_empty()).collect()
    }

    /// The machine as it was then.
    pub fn before(mut self, now: &dyn Root) -> OverRoot<&dyn Root> {
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
    fn a_machine_is_read_as_it_was_before_each_change() {
        let set = |pairs: &[(&str, &str)]| -> Vec<(String, String)> {
            pairs.iter().map(|(file, value)| ((*file).to_owned(), (*value).to_owned())).collect()
        };
        let governor = format!("{POLICY}/scaling_governor");
        let layers = [
            set(&[(&governor, "performance"), ("torn\nline", "1")]),
            set(&[]),
            set(&[(&governor, "schedutil"), (STATUS, "passive")]),
        ];
        let mut tree = Tree::default();
        for (path, value) in [
            (PATH.to_owned(), note(layers)),
            (governor, "powersave\n".to_owned()),
            (format!("{POLICY}/scaling_driver"), "amd-pstate-epp\n".to_owned()),
            (format!("{POLICY}/scaling_max_freq"), "3000000\n".to_owned()),
            (STATUS.to_owned(), "active\n".to_owned()),
        ] {
            tree.files.insert(path, value.into_bytes());
        }
        let now = TreeRoot::new(tree, "a tree");
        let before = |layer: usize, file: &str| {
            let layers = Replaced::layers(&now);
            assert_eq!(layers.len(), 2);
            text(&layers[layer].clone().before(&now), &format!("{POLICY}/{file}"))
        };
        for (file, newest, oldest) in [
            ("scaling_governor", Some("performance"), Some("schedutil")),
            ("scaling_driver", Some("amd-pstate-epp"), Some("amd-pstate")),
            ("scaling_max_freq", Some("3000000"), Some("3000000")),
            ("scaling_min_freq", None, None),
        ] {
            assert_eq!(before(0, file).as_deref(), newest, "{file}");
            assert_eq!(before(1, file).as_deref(), oldest, "{file}");
        }
    }

    /// Each layer is a journal that has to be read.
    #[test]
    fn no_more_layers_are_asked_for_than_are_noted() {
        let mut asked = 0;
        let layers = std::iter::repeat_with(|| {
            asked += 1;
            vec![("sys/a".to_owned(), asked.to_string())]
        });
        assert_eq!(note(layers.take(1000)).split("\n\n").count(), MOST);
        assert_eq!(asked, MOST);
    }

    #[test]
    fn a_note_that_is_kept_elsewhere_is_captured_with_the_machine() {
        let root = noted(
            Box::new(TreeRoot::new(Tree::default(), "a tree")),
            "sys/a 1\nsys/b two words\n".to_owned(),
        );
        let (tree, _) = crate::capture::snapshot(&root, &crate::capture::CaptureOptions::default());
        let layers = Replaced::layers(&TreeRoot::new(tree, "a capture"));
        assert_eq!(layers.len(), 1);
        assert_eq!(text(&layers[0].clone().before(&root), "sys/b").as_deref(), Some("two words"));
    }
}
