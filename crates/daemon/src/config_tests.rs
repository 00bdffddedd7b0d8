//! Profiles as people write them, and their mistakes.

use super::*;

#[test]
fn what_is_built_in_is_read() {
    let config = Config::parse("builtin.toml", BUILTIN, Config::default()).expect("no mistake");
    let names: Vec<&str> = config.profiles.keys().map(String::as_str).collect();
    assert_eq!(names, ["auto", "balanced", "performance", "power-saver", "powersaving"]);
    assert!(Ppd::ALL.iter().all(|p| config.profiles[p.name()].ppd == *p));
}

#[test]
fn a_mistake_is_told_with_line_and_column() {
    for (text, line, column, words) in [
        ("[profile.a]\nsettings = [\"epp=power\",\n  \"eppp=power\"]\n", 3, 3, "'eppp' is no setting"),
        ("[profile.a]\nspeed = \"powrd\"\n", 2, 9, "did you mean powerd"),
        ("[profile.a]\nspeed = \"powerd:load=x\"\n", 2, 9, "load=x"),
        ("[profile.a]\nbias = \"fast\"\n", 2, 8, "unknown word"),
        ("[profile.a]\nbais = \"power\"\n", 2, 1, "unknown field"),
        ("[profile.a]\n[[profile.a.when]]\ncharge_below = 120\n", 3, 16, "0 to 100"),
        ("[profile.a]\n[[profile.a.when]]\nbetween = \"22-7\"\n", 3, 11, "22:00-07:00"),
        ("[profile.a]\n[[profile.a.when]]\nbias = \"power\"\n", 1, 10, "no condition"),
        ("[daemon]\nlisten = \"0.0.0.0:9000\"\n", 2, 10, "127.0.0.1:PORT"),
        ("[daemon]\ndefault = \"balancd\"\n", 2, 11, "balanced"),
        ("[daemon\n", 1, 8, ""),
        ("[profile.\"../x\"]\n", 1, 10, "no name of a profile"),
    ] {
        let error = Config::from_text("p.toml", text).expect_err(text);
        assert_eq!((error.line, error.column), (line, column), "{error}\n{text}");
        assert!(error.message.contains(words) && !error.to_string().contains('\n'), "{error}");
    }
}

#[test]
fn the_later_wish_counts_and_the_rest_stays() {
    let text = "[profile.a]\nsettings = [\"min=20%\", \"epp=power\"]\n[[profile.a.when]]\npower = \"battery\"\n\
                settings = [\"max=60%\", \"epp=balance_power\"]\n";
    let config = Config::from_text("p.toml", text).expect("no mistake");
    let profile = &config.profiles["a"];
    let wish = profile.base.clone().under(&profile.cases[0].wish);
    assert_eq!(wish.to_string(), "max 60%, min 20%, epp balance_power");
}
