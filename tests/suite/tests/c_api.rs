//! The C API: what the library exports is what the header declares, and C programs that know nothing
//! but these two get right results.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::Duration;

use unisono_tests::{header_functions, skip, soaking, watchdog};

/// The top of the workspace.
fn root() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

/// The folder of `libunisono.so`, which cargo builds with this package's dependencies.
fn library() -> PathBuf {
    let program = std::env::current_exe().expect("a path");
    let folder = program.parent().expect("a folder").to_owned();
    assert!(
        folder.join("libunisono.so").exists(),
        "{}",
        folder.display()
    );
    folder
}

fn run(command: &mut Command) -> Output {
    let done = command.output().expect("it starts");
    assert!(
        done.status.success(),
        "{command:?}: {}",
        String::from_utf8_lossy(&done.stderr)
    );
    done
}

/// Compiles a program of `tests/c` into `folder`.
fn compile(name: &str, folder: &Path) -> PathBuf {
    let (program, library) = (folder.join(name), library());
    let mut command = Command::new("cc");
    command.args("-std=c99 -O1 -Wall -Wextra -Werror -pedantic".split(' '));
    command.arg("-I").arg(root().join("include"));
    command.arg("-o").arg(&program);
    command.arg(root().join(format!("tests/c/{name}.c")));
    command.arg("-L").arg(&library);
    command.arg(format!("-Wl,-rpath,{}", library.display()));
    run(command.args(["-lunisono", "-lpthread", "-lm"]));
    program
}

/// Starts a compiled program with the plugins of this build. Cargo's search path for libraries comes
/// before the program's own, and may lead to an older build of this one.
fn start(program: &Path) -> Command {
    let mut command = Command::new(program);
    let plugins = library().parent().expect("a folder").to_owned();
    command.env_remove("LD_LIBRARY_PATH");
    command.env("UNISONO_PLUGIN_PATH", plugins);
    command
}

#[test]
fn the_library_exports_what_the_header_declares() {
    let library = library().join("libunisono.so");
    let listed = Command::new("nm")
        .args(["-D", "--defined-only"])
        .arg(library)
        .output();
    let Ok(listed) = listed else {
        skip(
            "the_library_exports_what_the_header_declares",
            "nm is not installed",
        );
        return;
    };
    let listed = String::from_utf8(listed.stdout).expect("text");
    let exported: BTreeSet<String> = (listed.lines())
        .filter_map(|line| line.split_whitespace().nth(2))
        .map(str::to_owned)
        .collect();
    let declared = header_functions();
    assert!(declared.len() > 50, "{declared:?}");
    let missing: Vec<_> = declared.difference(&exported).collect();
    let extra: Vec<_> = exported.difference(&declared).collect();
    assert!(
        missing.is_empty() && extra.is_empty(),
        "declared and not exported: {missing:?}; exported and not declared: {extra:?}"
    );
}

#[test]
fn the_header_is_plain_c_and_cpp() {
    let folder = tempfile::tempdir().expect("a folder");
    let source = "#include \"unisono.h\"\n\
                  #include \"unisono_plugin.h\"\n\
                  unisono_config config(void);\n\
                  unisono_config config(void) {\n\
                  \x20 unisono_config made = UNISONO_CONFIG_INIT;\n\
                  \x20 return made;\n\
                  }\n";
    for (compiler, name, standard) in [
        ("cc", "both.c", "-std=c99"),
        ("cc", "both.c", "-std=c17"),
        ("c++", "both.cc", "-std=c++17"),
    ] {
        let file = folder.path().join(name);
        std::fs::write(&file, source).expect("a file");
        let mut command = Command::new(compiler);
        command.args([standard, "-Wall", "-Wextra", "-pedantic", "-Werror"]);
        command.arg("-fsyntax-only");
        run(command.arg("-I").arg(root().join("include")).arg(&file));
    }
}

#[test]
fn every_operation_is_right_in_c() {
    let _watchdog = watchdog("operations.c", Duration::from_secs(600));
    let folder = tempfile::tempdir().expect("a folder");
    let program = compile("operations", folder.path());
    let (counts, ranks): (&[&str], &[&str]) = if soaking() {
        (
            &["0", "1", "2", "33", "1000"],
            &["1", "2", "3", "4", "5", "6", "7", "8", "9", "16"],
        )
    } else {
        (&["1", "33"], &["1", "2", "3", "4", "5"])
    };
    let all = counts.iter().map(|count| (*count, ranks));
    // Several pieces, at a few rank counts alone: checking takes longer than calling.
    let long = soaking().then_some(("20011", &["2", "3", "8"][..]));
    for (count, ranks) in all.chain(long) {
        let done = run(start(&program).arg(count).args(ranks));
        let said = String::from_utf8_lossy(&done.stdout);
        assert!(said.ends_with("results were right\n"), "{said}");
        println!(
            "soak: C, blocks of {count}, {} rank counts: {said}",
            ranks.len()
        );
    }
}

#[test]
fn every_operation_is_right_on_streams_in_c() {
    let _watchdog = watchdog("streams.c", Duration::from_secs(60));
    let folder = tempfile::tempdir().expect("a folder");
    let done = run(&mut start(&compile("streams", folder.path())));
    assert_eq!(String::from_utf8_lossy(&done.stdout), "all is well\n");
}
