//! The figures of a result file, which may be a stranger's: only what a measurement can come to is shown.

use serde_json::Value;
use wattwise_figure::one_line;

/// Beyond what any result has in its units: counters and nanoseconds end below 2^64. Products of two stay finite.
const LARGEST: f64 = 1e20;

/// What is nearer to nothing is nothing: what is divided by it stays finite.
const SMALLEST: f64 = 1e-100;

/// What is below nothing by less is rounding: a sign before zeros is all that would be seen of it.
const ROUNDING: f64 = 1e-6;

/// Makes every text one line of which a terminal shows each character, and every zero one without a sign; refuses figures that
/// no measurement has, by their name.
pub(crate) fn believable(value: &mut Value) -> Result<(), String> {
    walk(value).map_err(|Odd { path, figure }| {
        format!(
            "{} is {figure:e}; expected a figure below {LARGEST:e}, as wattwise writes them",
            one_line(path.trim_start_matches('.'))
        )
    })
}

/// The same of a log, a value on each line. A line that is no JSON is left to the log's reader.
pub(crate) fn believable_lines(bytes: &[u8]) -> Result<(), String> {
    for (i, line) in bytes.split(|b| *b == b'\n').enumerate() {
        if let Ok(mut value) = serde_json::from_slice(line) {
            believable(&mut value).map_err(|why| format!("line {}: {why}", i + 1))?;
        }
    }
    Ok(())
}

/// A figure that is none, and where it stands.
struct Odd {
    path: String,
    figure: f64,
}

impl Odd {
    fn within(self, step: &str) -> Odd {
        Odd { path: format!("{step}{}", self.path), ..self }
    }
}

fn walk(value: &mut Value) -> Result<(), Odd> {
    match value {
        Value::String(text) => *text = one_line(text),
        Value::Array(items) => {
            for (i, item) in items.iter_mut().enumerate() {
                walk(item).map_err(|odd| odd.within(&format!("[{i}]")))?;
            }
        }
        Value::Object(fields) => {
            for (name, field) in fields.iter_mut() {
                walk(field).map_err(|odd| odd.within(&format!(".{name}")))?;
            }
        }
        Value::Number(number) => match number.as_f64() {
            Some(figure) if figure.abs() >= LARGEST => return Err(Odd { path: String::new(), figure }),
            Some(figure) if number.is_f64() && (-ROUNDING < figure && figure < SMALLEST) => {
                *value = Value::from(0.0);
            }
            _ => {}
        },
        Value::Null | Value::Bool(_) => {}
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_is_refused_by_line_and_field() {
        let log = b"{\"sum\": 18446744073709551615}\n{\"arm\": {\"j\": [2.0, -1e300]}}\n{\"torn";
        let why = believable_lines(log).expect_err("no energy is that large");
        assert!(why.starts_with("line 2: arm.j[1] is -1e300; expected a figure below 1e20"), "{why}");
        assert_eq!(believable_lines(&log[..40]), Ok(()));
    }
}
