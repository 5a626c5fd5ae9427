//! What the Markdown pages say is there: files that they link to, tests that they name.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const PAGES: [&str; 4] = [
    "README.md",
    "ARCHITECTURE.md",
    "CONTRIBUTING.md",
    "CHANGELOG.md",
];
const FOLDERS: [&str; 3] = ["vendor-docs", "vendor-docs/results", "plugins/example-c"];

fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent()
        .expect("xtask lies in the workspace")
        .to_owned()
}

fn pages() -> Vec<PathBuf> {
    let mut pages: Vec<_> = PAGES.iter().map(|page| root().join(page)).collect();
    for folder in FOLDERS {
        let entries = fs::read_dir(root().join(folder)).into_iter().flatten();
        let paths = entries.map(|entry| entry.expect("a readable folder").path());
        pages.extend(paths.filter(|path| path.extension().is_some_and(|e| e == "md")));
    }
    assert!(
        pages.len() > PAGES.len(),
        "the pages for vendors are not where they were"
    );
    pages
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// The targets of inline links.
fn links(text: &str) -> impl Iterator<Item = &str> {
    text.split("](")
        .skip(1)
        .filter_map(|rest| rest.split(')').next())
}

#[test]
fn links_lead_somewhere() {
    let mut broken = Vec::new();
    let mut checked = 0;
    for page in pages() {
        let text = read(&page);
        let folder = page.parent().expect("a page lies in a folder");
        for link in links(&text).filter(|link| !link.contains("://") && !link.starts_with('#')) {
            checked += 1;
            let file = link.split('#').next().unwrap_or(link);
            if !folder.join(file).exists() {
                broken.push(format!("{}: {link}", page.display()));
            }
        }
    }
    assert!(checked > 20, "only {checked} links were found");
    assert!(broken.is_empty(), "{}", broken.join("\n"));
}

/// Every word after `fn ` in the sources.
fn functions(folder: &Path, found: &mut BTreeSet<String>) {
    for entry in fs::read_dir(folder).expect("a readable folder") {
        let path = entry.expect("a readable folder").path();
        let name = path
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        if path.is_dir() {
            if name != "target" && !name.starts_with('.') {
                functions(&path, found);
            }
        } else if name.ends_with(".rs") {
            for rest in read(&path).split("fn ").skip(1) {
                let end = rest.find(|c: char| c != '_' && !c.is_ascii_alphanumeric());
                found.insert(rest[..end.unwrap_or(rest.len())].to_owned());
            }
        }
    }
}

#[test]
fn tests_that_the_architecture_names_exist() {
    let mut found = BTreeSet::new();
    functions(&root(), &mut found);
    let text = read(&root().join("ARCHITECTURE.md"));
    let is_name = |c: char| c == '_' || c.is_ascii_lowercase() || c.is_ascii_digit();
    // Names of three words and more between backquotes: here, only tests have such.
    let named: BTreeSet<&str> = text
        .split('`')
        .skip(1)
        .step_by(2)
        .filter(|word| word.chars().all(is_name) && word.matches('_').count() >= 2)
        .collect();
    assert!(named.len() > 10, "only {named:?}");
    let missing: Vec<_> = named
        .iter()
        .filter(|name| !found.contains(**name))
        .collect();
    assert!(missing.is_empty(), "no such functions: {missing:?}");
}

#[test]
fn the_c_program_of_the_readme_compiles() {
    let text = read(&root().join("README.md"));
    let program = text
        .split("```c\n")
        .nth(1)
        .expect("the README has a program in C");
    let program = program.split("```").next().unwrap_or(program);
    let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join("readme.c");
    fs::write(&file, program).expect("a file in the target folder");
    let compiled = Command::new(std::env::var_os("CC").unwrap_or_else(|| "cc".into()))
        .args([
            "-std=c11",
            "-Wall",
            "-Wextra",
            "-Werror",
            "-fsyntax-only",
            "-I",
        ])
        .args([root().join("include"), file])
        .output()
        .expect("a C compiler");
    assert!(
        compiled.status.success(),
        "{}",
        String::from_utf8_lossy(&compiled.stderr)
    );
}
