//! What is committed is what the sources give, and the vendor's assembler takes it.

use std::path::{Path, PathBuf};
use std::process::Command;

use unisono_kernels::{CODE_OBJECTS, PTX, STEPS};
use unisono_tests::skip;

fn here() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The compiler that made what is committed, if it is there.
fn compiler() -> Option<String> {
    let name = std::env::var("CLANG").unwrap_or_else(|_| "clang-19".to_owned());
    let output = Command::new(&name).arg("--version").output().ok()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let linker = Command::new("ld.lld-19").arg("--version").output().is_ok()
        || Command::new("ld.lld").arg("--version").output().is_ok();
    (text.contains("version 19.") && linker).then_some(name)
}

#[test]
fn what_is_committed_is_what_the_sources_give() {
    let test = "what_is_committed_is_what_the_sources_give";
    let Some(clang) = compiler() else {
        skip(
            test,
            "clang 19 and lld 19 are not there to compile the kernels",
        );
        return;
    };
    let folder = tempfile::tempdir().expect("a folder");
    let done = Command::new(here().join("build.sh"))
        .arg(folder.path())
        .env("CLANG", clang)
        .status();
    assert!(done.expect("the script").success(), "the sources compile");
    let read = |path: PathBuf| std::fs::read(path).expect("what was compiled");
    for file in [
        "kernels.ptx",
        "gfx90a.hsaco",
        "gfx942.hsaco",
        "gfx1100.hsaco",
    ] {
        let committed = read(here().join("made").join(file));
        assert!(
            read(folder.path().join(file)) == committed,
            "plugins/kernels/made/{file} is not what the sources give: run cargo xtask kernels"
        );
    }
}

/// Each kernel of the PTX is in each code object, a descriptor and code, but for that of short steps.
#[test]
fn code_objects_have_the_same_kernels() {
    use object::{Object, ObjectSymbol};
    let entries = PTX.split(".visible .entry ").skip(1);
    let names = entries.filter_map(|e| e.split('(').next());
    let names: Vec<_> = names.filter(|name| *name != STEPS).collect();
    for (architecture, code) in CODE_OBJECTS {
        let file = object::File::parse(code).expect("an ELF file");
        let found = file.dynamic_symbols().filter_map(|s| s.name().ok());
        let found = found.filter(|name| name.starts_with("unisono_"));
        let found: std::collections::BTreeSet<_> = found.collect();
        for name in &names {
            let descriptor = format!("{name}.kd");
            assert!(
                found.contains(&descriptor.as_str()),
                "{architecture}: {descriptor}"
            );
        }
        assert_eq!(found.len(), names.len() * 2, "{architecture}");
    }
}

/// The assembler, named by `PTXAS` or on the path.
#[test]
fn the_assembler_takes_it_for_every_generation() {
    let test = "the_assembler_takes_it_for_every_generation";
    let ptxas = std::env::var("PTXAS").unwrap_or_else(|_| "ptxas".to_owned());
    if Command::new(&ptxas).arg("--version").output().is_err() {
        skip(
            test,
            "ptxas is not there: name it in PTXAS (the package nvidia-cuda-nvcc-cu12 has it)",
        );
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    for target in ["sm_70", "sm_80", "sm_90", "sm_100"] {
        let out = folder.path().join(target);
        let output = Command::new(&ptxas)
            .arg(format!("-arch={target}"))
            .arg(here().join("made/kernels.ptx"))
            .arg("-o")
            .arg(&out)
            .output()
            .expect("ptxas");
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{target}: {errors}");
        assert!(out.metadata().is_ok_and(|file| file.len() > 0), "{target}");
    }
}
