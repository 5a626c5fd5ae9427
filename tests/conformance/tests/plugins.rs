//! The suite against the plugins of this repository, each with what it may leave out, by name.

use std::path::{Path, PathBuf};

use unisono_abi_tests::{compile_plugin, example};
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

fn conforms(plugin: &Path, expectations: Expectations) {
    conforms_with(plugin, &[], expectations);
}

fn conforms_with(plugin: &Path, params: &[(&str, &str)], expectations: Expectations) {
    let params = params
        .iter()
        .map(|(n, v)| ((*n).to_owned(), (*v).to_owned()));
    let suite = Suite::new(plugin, runner())
        .params(params.collect())
        .expect(expectations);
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
    let expectations = Expectations::default()
        .may_skip("link", "its links are mapped")
        .may_skip("flow", "its links are mapped")
        .may_skip("fault", "its links are mapped")
        .may_skip("link_sleep", "its links are mapped")
        .may_skip("report/address", "its links are mapped")
        .may_skip("leaks/links", "its links are mapped")
        .may_skip("leaks/unconnected_links", "its links are mapped")
        .may_skip(
            "sleep/disarmed",
            "its streams sleep on a futex or a descriptor",
        );
    conforms(&built("host"), expectations);
}

/// What tcp may leave out.
fn links_alone() -> Expectations {
    Expectations::default()
        .may_skip("device", "it has links alone")
        .may_skip("instance/no_error_record", "it has no device to refuse")
        .may_skip("memory", "it has links alone")
        .may_skip("copy", "it has links alone")
        .may_skip("reduce", "it has links alone")
        .may_skip("batch", "it has links alone")
        .may_skip("flag", "it has links alone")
        .may_skip("abort", "it has links alone")
        .may_skip("sleep", "it has links alone")
        .may_skip("cpu", "it has links alone")
        .may_skip("event", "it has links alone")
        .may_skip("threads", "it has links alone")
        .may_skip("share", "it has links alone")
        .may_skip("leaks/memory", "it has links alone")
        .may_skip("leaks/streams", "it has links alone")
        .may_skip("leaks/events", "it has links alone")
        .may_skip("leaks/any_order", "it has links alone")
        .may_skip("link_sleep/disarmed", "its links sleep on a descriptor")
}

#[test]
fn tcp() {
    conforms(&built("tcp"), links_alone());
}

#[test]
fn tcp_encrypted() {
    conforms_with(&built("tcp"), &[("encrypt", "true")], links_alone());
}

#[test]
fn example_c() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("libunisono_plugin_example.so");
    compile_plugin(&example(), &path).expect("the example compiles as a vendor compiles it");
    let expectations = Expectations::default()
        .may_skip("share", "no other process maps its memory")
        .may_skip("memory/bell", "its host is woken by a waker")
        .may_skip("memory/wrap", "its memory is its own")
        .may_skip("cpu", "it has no table `unisono.cpu`")
        .may_skip("device/flush", "it has no NIC")
        .may_skip("reduce/f8e4m3fn", "it only moves eight-bit floats")
        .may_skip("reduce/f8e5m2", "it only moves eight-bit floats")
        .may_skip("reduce/scale", "its kernels are those of REDUCE")
        .may_skip("reduce/call", "it calls no functions of the host's")
        .may_skip("batch/budget", "its threads do the work, not poll")
        .may_skip("link_sleep/disarmed", "its links sleep on a descriptor");
    conforms(&path, expectations);
}
