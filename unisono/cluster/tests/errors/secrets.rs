//! No error shows a secret.

use super::common::describe;
use super::problems;

#[test]
fn no_error_shows_a_secret() {
    let secret = "hunter2-".repeat(5);
    for text in [
        format!("security: {{ secret: {secret}, mode: tls }}\n"),
        format!("security: {{ mode: tls, secret: {secret} }}\n"),
        format!("security:\n  secert: {secret}\n"),
        format!("security:\n  secret: [{secret}]\n"),
        format!("security:\n  secret:\n    {secret}\n  mode: tls\n"),
        format!("security:\n  secret: |\n    {secret}\n   x\n"),
        format!("security: {{ secret: \"{secret}\n"),
        format!("security: {{ secret: '{secret}' x }}\n"),
        format!("secret: {secret}\n"),
        format!("pasword: {secret}\n"),
        "security: { secret: hunter2 }\n".to_owned(),
        "security: { secret: 4242424242424242424242 }\n".to_owned(),
    ] {
        let found = problems(&text);
        let shown = format!("{}{found:?}", describe(&found));
        assert!(
            !shown.contains("hunter2") && !shown.contains("424242"),
            "{text}\n{shown}"
        );
    }
}
