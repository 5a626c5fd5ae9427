//! Parameters given, left out, misspelt and out of bounds.

use super::*;

fn spec(name: &str, kind: ParamKind, default: &str, min: i64, max: i64) -> ParamSpec {
    ParamSpec {
        name: name.into(),
        help: "Help.".into(),
        default: default.into(),
        kind,
        min,
        max,
    }
}

fn table() -> Vec<ParamSpec> {
    vec![
        spec("connections", ParamKind::Int, "2", 1, 16),
        spec("chunk", ParamKind::Bytes, "128 KiB", 4096, 1 << 30),
        spec("spin", ParamKind::Duration, "20us", 0, 1_000_000_000),
        spec("pin", ParamKind::Bool, "false", 0, 0),
        spec("interface", ParamKind::String, "", 0, 0),
    ]
}

fn parse(given: &[(&str, &str)]) -> Result<ParamValues, String> {
    let given: Vec<_> = given
        .iter()
        .map(|(n, t)| ((*n).to_owned(), (*t).to_owned()))
        .collect();
    ParamValues::parse(&table(), &given)
}

#[test]
fn what_is_not_given_has_its_default() {
    let values = parse(&[("chunk", "1 MiB"), ("interface", "lo")]).unwrap();
    let numbers: Vec<_> = values.values().iter().map(|v| v.number).collect();
    assert_eq!(numbers, [2, 1 << 20, 20_000, 0, 0]);
    assert_eq!(values.values()[4].text, "lo");
    let defaults: Vec<_> = values.values().iter().map(|v| v.is_default).collect();
    assert_eq!(defaults, [true, false, true, true, false]);
    let raw = values.raw(&table());
    assert_eq!(raw.len(), 5);
    assert_eq!((raw[1].number, raw[1].text.len), (1 << 20, 0));
    assert_eq!((raw[4].number, raw[4].text.len), (0, 2));
}

#[test]
fn what_is_wrong_is_said() {
    let error = |given: &[(&str, &str)]| parse(given).unwrap_err();
    assert_eq!(
        error(&[("conections", "2")]),
        "there is no parameter `conections`; did you mean `connections`? \
         the plugin takes: connections, chunk, spin, pin, interface"
    );
    assert_eq!(
        error(&[("pin", "true"), ("pin", "true")]),
        "the parameter `pin` is given twice"
    );
    assert_eq!(
        error(&[("chunk", "1 KiB")]),
        "chunk: `1 KiB` is out of bounds, it must be between 4 KiB and 1 GiB"
    );
    assert_eq!(
        error(&[("spin", "20")]),
        "spin: `20` has no unit: give a duration, like 20 us, 5 ms or 1.5 s"
    );
    assert_eq!(
        error(&[("pin", "perhaps")]),
        "pin: `perhaps` is neither true nor false"
    );
    assert_eq!(
        error(&[("connections", "two")]),
        "connections: `two` is no whole number of 64 bits"
    );
}
