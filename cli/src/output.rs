//! What goes to standard error, with the rank in front where there is one.

use std::fmt::Write as _;
use std::io::Write as _;

/// Prints an error with its causes. Where several ranks print to one terminal, each line says whose
/// it is, and is written at once.
pub fn error(error: &anyhow::Error) {
    let causes = causes(error);
    // Errors of a cluster file show the place, as compilers do, and begin so by themselves.
    line(&format!("error: {}", causes.trim_start_matches("error: ")));
}

/// One message to standard error. If nobody reads it, nobody misses it.
pub fn line(text: &str) {
    let prefix = match std::env::var("UNISONO_RANK") {
        Ok(rank) => format!("unisono: rank {rank}: "),
        Err(_) => "unisono: ".to_owned(),
    };
    let mut out = String::new();
    for line in text.lines() {
        let _ = writeln!(out, "{prefix}{line}");
    }
    let _ = std::io::stderr().lock().write_all(out.as_bytes());
}

/// Prints to standard output. A reader that has gone away is no error: what it wanted it has.
pub fn print(text: &str) -> anyhow::Result<()> {
    let mut out = std::io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => Err(error.into()),
        _ => Ok(()),
    }
}

/// The error and its causes, without those that the text before already ends with.
fn causes(error: &anyhow::Error) -> String {
    let mut text = error.to_string();
    for cause in error.chain().skip(1) {
        let cause = cause.to_string();
        if !text.contains(&cause) {
            text.push_str(": ");
            text.push_str(&cause);
        }
    }
    text
}

#[cfg(test)]
mod tests {
    #[test]
    fn causes_are_told_once() {
        let error = anyhow::anyhow!("no such file").context("reading a.json");
        assert_eq!(super::causes(&error), "reading a.json: no such file");
        let error = anyhow::anyhow!("b").context("a: b");
        assert_eq!(super::causes(&error), "a: b");
    }
}
