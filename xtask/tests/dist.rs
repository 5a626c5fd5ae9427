//! What is installed can be built against by pkg-config and by CMake, and runs where it lies.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use unisono_tests::{header_functions, skip};

/// The folder of this build.
fn built() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_xtask"))
        .parent()
        .expect("a folder")
}

/// What a command says on standard output.
fn run(command: &mut Command) -> String {
    // Cargo's search path for libraries comes before a program's own.
    let done = command.env_remove("LD_LIBRARY_PATH").output();
    let done = done.unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let (out, err) = (
        String::from_utf8_lossy(&done.stdout).into_owned(),
        String::from_utf8_lossy(&done.stderr).into_owned(),
    );
    assert!(done.status.success(), "{command:?}: {out}{err}");
    out
}

/// Installs this build in a folder of its own; `None` if it is not all built.
fn install(test: &str) -> Option<tempfile::TempDir> {
    let plugins = ["host", "tcp", "roce", "cuda", "rocm", "ascend"]
        .map(|name| format!("libunisono_plugin_{name}.so"));
    let files = ["libunisono.a".to_owned(), "unisono".to_owned()];
    let missing = (files.iter().chain(&plugins)).find(|file| !built().join(file).exists());
    if let Some(file) = missing {
        skip(test, &format!("{file} is not built"));
        return None;
    }
    let prefix = tempfile::tempdir().expect("a folder");
    let mut install = Command::new(env!("CARGO_BIN_EXE_xtask"));
    install.args(["dist", "--built"]);
    if built().ends_with("debug") {
        install.arg("--debug");
    }
    install.arg("--prefix").arg(prefix.path().join("first"));
    install.env("CARGO_TARGET_DIR", built().parent().expect("a folder"));
    run(&mut install);
    // What is installed may be moved.
    let moved = prefix.path().join("unisono");
    std::fs::rename(prefix.path().join("first"), &moved).expect("it moves");
    Some(prefix)
}

fn program(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    let mut files = std::env::split_paths(&path).map(|folder| folder.join(name));
    files.find(|file| file.is_file())
}

fn sources() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/c"))
}

/// Runs a program as two ranks, with nothing but what is installed.
fn two_ranks(prefix: &Path, program: &Path) {
    let mut command = Command::new(prefix.join("bin/unisono"));
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("UNISONO_") {
            command.env_remove(name);
        }
    }
    command.env("XDG_CONFIG_HOME", "/nonexistent");
    command.env("XDG_DATA_HOME", "/nonexistent");
    command.args(["run", "-n", "2", "--timeout", "50s", "--"]);
    let said = run(command.arg(program));
    let said: BTreeSet<&str> = said.lines().collect();
    assert_eq!(said, BTreeSet::from(["[0] 3", "[1] 3"]));
}

#[test]
fn a_program_is_built_by_pkg_config() {
    let test = "a_program_is_built_by_pkg_config";
    let Some(pkg_config) = program("pkg-config") else {
        return skip(test, "pkg-config is not installed");
    };
    let Some(folder) = install(test) else {
        return;
    };
    let prefix = folder.path().join("unisono");
    let ask = |arguments: &[&str]| {
        let mut command = Command::new(&pkg_config);
        command.env("PKG_CONFIG_PATH", prefix.join("lib/pkgconfig"));
        run(command.args(arguments).arg("unisono"))
            .trim()
            .to_owned()
    };
    assert_eq!(ask(&["--modversion"]), env!("CARGO_PKG_VERSION"));
    let made = folder.path().join("installed");
    let mut compile = Command::new("cc");
    compile.args(["-std=c99", "-o"]).arg(&made);
    compile.arg(sources().join("installed.c"));
    compile.args(ask(&["--cflags", "--libs"]).split_whitespace());
    compile.arg(format!("-Wl,-rpath,{}", ask(&["--variable=libdir"])));
    run(&mut compile);
    two_ranks(&prefix, &made);
}

#[test]
fn a_program_is_built_by_cmake() {
    let test = "a_program_is_built_by_cmake";
    let Some(cmake) = program("cmake") else {
        return skip(test, "cmake is not installed");
    };
    let Some(folder) = install(test) else {
        return;
    };
    let prefix = folder.path().join("unisono");
    let tree = folder.path().join("tree");
    let mut configure = Command::new(&cmake);
    configure.arg("-S").arg(sources().join("cmake"));
    configure.arg("-B").arg(&tree);
    run(configure.arg(format!("-DCMAKE_PREFIX_PATH={}", prefix.display())));
    run(Command::new(&cmake).arg("--build").arg(&tree));
    two_ranks(&prefix, &tree.join("installed"));
}

#[test]
fn the_installed_library_exports_its_header_by_version() {
    let test = "the_installed_library_exports_its_header_by_version";
    if program("nm").is_none() || program("readelf").is_none() {
        return skip(test, "nm and readelf are not installed");
    }
    let Some(folder) = install(test) else {
        return;
    };
    let library = folder.path().join("unisono/lib/libunisono.so");
    let mut nm = Command::new("nm");
    nm.args(["-D", "--defined-only", "--with-symbol-versions"]);
    let listed = run(nm.arg(&library));
    let exported: BTreeSet<String> = (listed.lines())
        .filter_map(|line| line.split_whitespace().nth(2))
        .filter(|name| *name != "UNISONO_0.1")
        .map(str::to_owned)
        .collect();
    let declared = header_functions();
    let declared = declared.iter().map(|name| format!("{name}@@UNISONO_0.1"));
    assert_eq!(exported, declared.collect());
    let dynamic = run(Command::new("readelf").arg("-d").arg(&library));
    assert!(dynamic.contains("soname: [libunisono.so.0]"), "{dynamic}");
    assert!(!dynamic.contains("RUNPATH"), "{dynamic}");
}
