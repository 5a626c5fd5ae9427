//! The suite against the plugins of this repository, each with the list that lies beside its source.

use std::path::{Path, PathBuf};

use unisono_abi_tests::{compile_plugin, example, repository};
use unisono_conformance::{Expectations, Suite};

/// The program that runs each check.
fn runner() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_unisono-conformance"))
}

/// A plugin of the workspace, which is built beside this test.
fn built(name: &str) -> PathBuf {
    let folder = runner().parent().expect("a program is in a folder");
    let file = format!("libunisono_plugin_{name}.so");
    let found = [folder.join(&file), folder.join("deps").join(&file)];
    let newest = found.into_iter().filter_map(|path| {
        let changed = path.metadata().and_then(|data| data.modified()).ok()?;
        Some((changed, path))
    });
    let newest = newest.max();
    newest.map_or_else(
        || {
            panic!(
                "{file} is not in {}: build the workspace first",
                folder.display()
            )
        },
        |(_, path)| path,
    )
}

/// What a plugin says of itself that it does not support, beside its source.
fn list(folder: &str) -> Expectations {
    let path = repository("plugins").join(folder).join("conformance.yaml");
    Expectations::read(&path).expect("a plugin's list")
}

fn conforms(plugin: &Path, folder: &str, params: &[(&str, &str)]) {
    let params = params
        .iter()
        .map(|(n, v)| ((*n).to_owned(), (*v).to_owned()));
    let suite = Suite::new(plugin, runner())
        .params(params.collect())
        .expect(list(folder));
    let report = suite
        .run(|row| println!("{}", row.line()))
        .expect("the suite runs");
    println!("{}", report.summary());
    let bad: Vec<_> = report
        .rows
        .iter()
        .filter(|row| !row.verdict.is_good())
        .map(|row| row.line())
        .collect();
    assert!(
        report.is_good(),
        "\n{}\n{}",
        bad.join("\n"),
        report.summary()
    );
}

#[test]
fn host() {
    conforms(&built("host"), "host", &[]);
}

#[test]
fn tcp() {
    conforms(&built("tcp"), "tcp", &[]);
}

#[test]
fn tcp_encrypted() {
    conforms(&built("tcp"), "tcp", &[("encrypt", "true")]);
}

#[test]
fn example_c() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("libunisono_plugin_example.so");
    compile_plugin(&example(), &path).expect("the example compiles as a vendor compiles it");
    conforms(&path, "example-c", &[]);
}
