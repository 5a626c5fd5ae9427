//! No plugin and no vendor is named in the code that serves all of them.

mod common;

use std::fs;
use std::path::{Path, PathBuf};

use common::root;

/// Folders that must stay neutral.
const NEUTRAL: &[&str] = &["hal/src", "collectives"];

/// Words that name a vendor, its runtime, its links or its library. Each counts where no letter
/// stands before it and no small letter after it.
const WORDS: &[&str] = &[
    "nvidia",
    "cuda",
    "nccl",
    "nvlink",
    "nvswitch",
    "nvml",
    "amd",
    "rocm",
    "hip",
    "hsa",
    "rccl",
    "xgmi",
    "radeon",
    "huawei",
    "ascend",
    "ascendcl",
    "acl",
    "hccl",
    "hccs",
    "cann",
    "intel",
    "oneccl",
    "xelink",
    "habana",
    "gaudi",
    "neuron",
    "trainium",
    "mellanox",
    "broadcom",
    "cambricon",
    "mthreads",
    "tpu",
];

/// Conventions that users know by these names, which comments may refer to: nothing depends on them.
const CONVENTIONS: &[&str] = &["NCCL", "nccl-tests", "Intel MPI"];

/// Plugins of this project: their names as string literals.
const PLUGINS: &[&str] = &[
    "\"host\"",
    "\"tcp\"",
    "\"roce\"",
    "\"example-c\"",
    "\"example_c\"",
];

fn names_in(line: &str) -> Vec<String> {
    let text = &match line.split_once("//") {
        Some((code, comment)) => {
            let plain = |text: String, name: &&str| text.replace(*name, "");
            code.to_owned() + "//" + &CONVENTIONS.iter().fold(comment.to_owned(), plain)
        }
        None => line.to_owned(),
    };
    let lower = text.to_ascii_lowercase();
    let mut found = Vec::new();
    for word in WORDS {
        for (at, _) in lower.match_indices(word) {
            let before = text[..at].chars().next_back();
            let after = text[at + word.len()..].chars().next();
            if !before.is_some_and(|c| c.is_ascii_alphanumeric())
                && !after.is_some_and(|c| c.is_ascii_lowercase())
            {
                found.push((*word).to_owned());
            }
        }
    }
    let plugins = PLUGINS.iter().filter(|p| text.contains(**p));
    found.extend(plugins.map(|p| (*p).to_owned()));
    found
}

fn sources(folder: &Path, all: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        // Tests may use any name as an example.
        if path.file_stem().is_some_and(|stem| stem == "tests") {
            continue;
        }
        if path.is_dir() {
            sources(&path, all);
        } else if path.extension().is_some_and(|e| e == "rs" || e == "toml") {
            all.push(path);
        }
    }
}

#[test]
fn the_neutral_folders_name_nobody() {
    let mut files = Vec::new();
    for folder in NEUTRAL {
        sources(&root().join(folder), &mut files);
    }
    assert!(files.len() > 40, "the folders are where they were");
    let mut named = Vec::new();
    for file in files {
        let text = fs::read_to_string(&file).unwrap();
        for (number, line) in (1..).zip(text.lines()) {
            for word in names_in(line) {
                let file = file.strip_prefix(root()).unwrap().display();
                named.push(format!("{file}:{number}: {word}"));
            }
        }
    }
    assert!(named.is_empty(), "\n{}", named.join("\n"));
}

#[test]
fn the_search_finds_what_it_should_and_nothing_else() {
    for line in [
        "use cuda_sys;",
        "// the CUDA way",
        "fn nccl()",
        "x // NCCL on CUDA",
        "HipStream",
        "\"tcp\"",
        "an AMD card",
    ] {
        assert!(!names_in(line).is_empty(), "{line}");
    }
    for line in [
        "in ascending order",
        "the relationship",
        "a ship",
        "// as in NCCL",
        "x(); // Intel MPI",
        "camd",
        "host",
        "oracle",
    ] {
        assert_eq!(names_in(line), [""; 0], "{line}");
    }
}
