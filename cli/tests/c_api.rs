//! The C API, as a C program of two ranks that is compiled here against `include/` and the library.

mod common;
#[path = "common/plugins.rs"]
mod plugins;

use std::path::{Path, PathBuf};
use std::process::Command;

use common::{run, unisono};
use plugins::{plugins, skip};

/// The folder of `libunisono.so`, which cargo builds with this package's dependencies.
fn library() -> PathBuf {
    let folder = Path::new(env!("CARGO_BIN_EXE_unisono"))
        .parent()
        .expect("a folder");
    let folder = folder.join("deps");
    assert!(
        folder.join("libunisono.so").exists(),
        "{}",
        folder.display()
    );
    folder
}

fn sources() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/c")
}

fn include() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../include")
}

#[test]
fn a_c_program_uses_every_function() {
    let Ok(plugins) = plugins().inspect_err(|why| skip("a_c_program_uses_every_function", why))
    else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("two_ranks");
    let compiled = run(Command::new("cc")
        .args(["-std=c11", "-Wall", "-Wextra", "-Werror", "-O1", "-o"])
        .arg(&program)
        .arg(sources().join("two_ranks.c"))
        .arg("-I")
        .arg(include())
        .arg("-L")
        .arg(library())
        .arg(format!("-Wl,-rpath,{}", library().display()))
        .arg("-lunisono"));
    assert_eq!(compiled.code, Some(0), "{}", compiled.err);
    let done = run(unisono()
        .args(["run", "-n", "2", "--timeout", "50s", "--"])
        .arg(&program)
        // Cargo's search path for libraries comes before the program's own.
        .env_remove("LD_LIBRARY_PATH")
        .env("UNISONO_PLUGIN_PATH", plugins));
    assert_eq!(done.code, Some(0), "{done:?}");
    assert_eq!(done.out, "[0] all is well\n");
}

#[test]
fn the_header_is_c_and_cpp_and_stands_beside_that_of_plugins() {
    let folder = tempfile::tempdir().unwrap();
    let source = "#include \"unisono.h\"\n#include \"unisono_plugin.h\"\nint answer(void);\nint answer(void) { return UNISONO_SUCCESS; }\n";
    for (compiler, name, standard) in [
        ("cc", "both.c", "-std=c11"),
        ("c++", "both.cc", "-std=c++17"),
    ] {
        let file = folder.path().join(name);
        std::fs::write(&file, source).unwrap();
        let mut command = Command::new(compiler);
        command.args([
            standard,
            "-Wall",
            "-Wextra",
            "-pedantic",
            "-Werror",
            "-fsyntax-only",
            "-I",
        ]);
        let done = run(command.arg(include()).arg(&file));
        assert_eq!(done.code, Some(0), "{compiler}: {}", done.err);
    }
}
