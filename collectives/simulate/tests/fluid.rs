//! Fluid cases whose answers are known, and files that are wrong.

use unisono_simulate::fluid::{FluidError, read, run};

const CASES: &str = include_str!("known_fluid_cases.json");

#[test]
fn rates_and_ends_are_exact() {
    let (cases, list) = read(CASES).unwrap();
    assert!(list && cases.len() >= 4);
    for case in cases {
        let answer = run(&case).unwrap();
        let (rates, finish) = (case.expected_rates.unwrap(), case.expected_finish.unwrap());
        for (what, expected, got) in [
            ("rate", &rates, &answer.rates),
            ("end", &finish, &answer.finish_s),
        ] {
            assert_eq!(expected.len(), got.len(), "{:?}", case.name);
            for (job, expected) in expected {
                let got = got[job];
                let near = (expected - got).abs() <= 1e-12 * expected;
                assert!(
                    near,
                    "{:?}: {what} of {job} is {got}, not {expected}",
                    case.name
                );
            }
        }
    }
}

#[test]
fn one_case_needs_no_list() {
    let text = r#"{"links_GBps": {"a": 12.5}, "jobs": {"j": {"route": ["a"], "GB": 25}}}"#;
    let (cases, list) = read(text).unwrap();
    assert!(!list);
    assert_eq!(run(&cases[0]).unwrap().finish_s["j"], 2.0);
}

#[test]
fn what_is_wrong_is_named() {
    let of = |links: &str, job: &str| {
        let text = format!(r#"{{"links_GBps": {{{links}}}, "jobs": {{"j": {{{job}}}}}}}"#);
        let case = read(&text).map(|(cases, _)| run(&cases[0]));
        match case {
            Ok(answer) => answer.unwrap_err().to_string(),
            Err(error) => error.to_string(),
        }
    };
    let text = of(r#""a": 0"#, r#""route": ["a"], "GB": 1"#);
    assert!(text.contains("link `a`"), "{text}");
    let text = of(r#""a": 1"#, r#""route": ["b"], "GB": 1"#);
    assert!(text.contains("`b`"), "{text}");
    let text = of(r#""a": 1"#, r#""route": [], "GB": 1"#);
    assert!(text.contains("empty route"), "{text}");
    let text = of(r#""a": 1"#, r#""route": ["a"], "GB": -1"#);
    assert!(text.contains("`GB` of job `j`"), "{text}");
    let text = of(r#""a": 1"#, r#""route": ["a"], "GB": 1, "gb": 2"#);
    assert!(text.contains("gb"), "{text}");
    assert!(matches!(read("[{]"), Err(FluidError::Json(_))));
}
