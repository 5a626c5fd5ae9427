//! The corpus of bad plugins, each with the error that it must get.

mod common;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use common::{Workshop, loader};
use unisono_hal::{Failure, Refusal};

/// Compiles one of the corpus and gives the reason why it is refused.
fn refusal(stem: &str) -> Refusal {
    let shop = Workshop::new();
    refusal_of(&shop.bad(stem))
}

fn refusal_of(path: &Path) -> Refusal {
    let error = loader().load_path(path).expect_err("it is bad");
    let text = error.to_string();
    assert!(
        text.contains(path.to_str().unwrap()),
        "the path is named: {text}"
    );
    error.refusal().unwrap_or_else(|| panic!("{text}")).clone()
}

/// The sound one's bytes, changed, in a file.
fn altered(change: impl FnOnce(&mut Vec<u8>)) -> Refusal {
    let shop = Workshop::new();
    let path = shop.bad("sound");
    let mut bytes = fs::read(&path).unwrap();
    change(&mut bytes);
    fs::write(&path, bytes).unwrap();
    refusal_of(&path)
}

#[test]
fn the_sound_one_loads() {
    let shop = Workshop::new();
    let path = shop.bad("sound");
    let plugin = loader().load_path(&path).unwrap();
    assert_eq!((plugin.name(), plugin.path()), ("sound", Some(&*path)));
    assert_eq!(plugin.facts().vendor, "tests");
    let instance = plugin.instantiate(&[]).unwrap();
    assert_eq!(instance.devices().unwrap(), []);
    assert_eq!(instance.link_report().unwrap(), []);
    assert_eq!(instance.address().unwrap(), None);
}

#[test]
fn files_that_are_no_libraries() {
    assert_eq!(altered(|b| b[0] = b'M'), Refusal::NotElf);
    assert_eq!(altered(Vec::clear), Refusal::NotElf);
    assert!(matches!(altered(|b| b.truncate(40)), Refusal::Truncated(_)));
    assert!(matches!(
        altered(|b| b.truncate(b.len() / 2)),
        Refusal::Truncated(_)
    ));
    assert!(matches!(
        altered(|b| b.truncate(b.len() - 1)),
        Refusal::Truncated(_)
    ));
    // e_type and e_machine of the ELF header.
    assert_eq!(
        altered(|b| b[16] = 1),
        Refusal::NotShared("object file".into())
    );
    let Refusal::Machine { found, .. } = altered(|b| b[18] = 22) else {
        panic!("another machine");
    };
    assert_eq!(found, "s390x");
    assert!(matches!(altered(|b| b[4] = 1), Refusal::Machine { .. }));
    let folder = Workshop::new();
    let there = loader().load_path(folder.folder.path()).unwrap_err();
    assert!(
        matches!(there.refusal(), Some(Refusal::Unreadable(_))),
        "{there}"
    );
    let nowhere = loader().load_path("/nowhere/at/all.so").unwrap_err();
    assert!(
        matches!(nowhere.refusal(), Some(Refusal::Unreadable(_))),
        "{nowhere}"
    );
}

#[test]
fn a_file_cut_anywhere_is_refused_and_never_loaded() {
    let shop = Workshop::new();
    let path = shop.bad("sound");
    let whole = fs::read(&path).unwrap();
    for share in 0..40 {
        let cut = whole.len() * share / 40;
        fs::write(&path, &whole[..cut]).unwrap();
        let refusal = refusal_of(&path);
        assert!(
            matches!(refusal, Refusal::Truncated(_) | Refusal::NotElf),
            "{cut}: {refusal}"
        );
    }
}

#[test]
fn no_symbol() {
    assert_eq!(refusal("no_symbol"), Refusal::NoSymbol);
}

#[test]
fn a_library_that_it_needs_is_missing() {
    let shop = Workshop::new();
    let source = shop.path("needed.c");
    fs::write(&source, "int from_a_library(void) { return 0; }\n").unwrap();
    let needed = shop.compile(&source, "needed", &[]);
    let path = shop.bad_with(
        "needs_library",
        "needs_library",
        &[needed.to_str().unwrap().to_owned()],
    );
    fs::remove_file(&needed).unwrap();
    let Refusal::NeedsLibrary { names } = refusal_of(&path) else {
        panic!("a library is missing");
    };
    assert!(
        names[0].ends_with("libunisono_plugin_needed.so"),
        "{names:?}"
    );
}

#[test]
fn an_undefined_symbol_is_found_at_load() {
    let Refusal::Dlopen(text) = refusal("undefined_symbol") else {
        panic!("the system's loader refuses it");
    };
    assert!(text.contains("nobody_has_this_function"), "{text}");
}

#[test]
fn wrong_versions_and_sizes() {
    assert_eq!(
        refusal("wrong_magic"),
        Refusal::Magic {
            found: 0x1234_5678_90ab_cdef
        }
    );
    assert!(matches!(
        refusal("wrong_major"),
        Refusal::Major { found: (2, 3), .. }
    ));
    assert!(matches!(
        refusal("short_record"),
        Refusal::Short {
            name: "unisono_plugin",
            found: 64,
            minor: 9,
            ..
        }
    ));
    assert!(matches!(
        refusal("short_table"),
        Refusal::Short {
            name: "unisono_instance_table",
            found: 16,
            ..
        }
    ));
    assert!(matches!(
        refusal("rubbish_size"),
        Refusal::Size {
            name: "unisono_plugin",
            ..
        }
    ));
    assert!(matches!(
        refusal("rubbish_table_size"),
        Refusal::Size {
            name: "unisono_instance_table",
            ..
        }
    ));
    assert!(matches!(
        refusal("null_answer"),
        Refusal::NotForThisHost { .. }
    ));
}

#[test]
fn a_layout_that_differs_names_the_first_field() {
    let refusal = refusal("wrong_layout");
    assert_eq!(
        refusal,
        Refusal::Layout {
            name: "unisono_queue_state".into(),
            field: "accepted".into(),
            plugin: (16, 8),
            host: (8, 8),
        }
    );
    let text = refusal.to_string();
    assert!(
        text.contains(
            "unisono_queue_state.accepted is at offset 16 with 8 bytes in the plugin, at offset 8"
        ),
        "{text}"
    );
    assert_eq!(
        self::refusal("no_layout"),
        Refusal::MissingTable("layout table")
    );
}

#[test]
fn what_must_be_there() {
    assert!(matches!(
        refusal("missing_function"),
        Refusal::MissingFunction {
            table: "instance",
            function: "devices",
            ..
        }
    ));
    assert_eq!(
        refusal("missing_table"),
        Refusal::MissingTable("unisono_instance_table")
    );
}

#[test]
fn wild_pointers_do_not_crash_the_host() {
    let at = 0x1234_5678_9000;
    assert!(matches!(refusal("wild_record"), Refusal::Address { address, .. } if address == at));
    assert!(matches!(refusal("wild_table"), Refusal::Address { address, .. } if address == at));
    assert!(matches!(
        refusal("misaligned_record"),
        Refusal::Address { .. }
    ));
}

#[test]
fn counts_that_cannot_be_true() {
    let counted = |stem: &str| match refusal(stem) {
        Refusal::Count { what, found, .. } => (what, found),
        other => panic!("{other}"),
    };
    assert_eq!(
        counted("rubbish_params"),
        ("param_count".into(), 0xffff_ffff)
    );
    assert_eq!(
        counted("rubbish_layout"),
        ("layout_count".into(), 0xffff_ffff)
    );
    assert_eq!(
        counted("rubbish_text"),
        ("the length of vendor".into(), u64::MAX)
    );
}

#[test]
fn names_texts_and_requirements() {
    assert_eq!(
        refusal("bad_name"),
        Refusal::Name {
            found: "Bad Name".into()
        }
    );
    assert_eq!(
        refusal("other_name"),
        Refusal::OtherName {
            found: "somebody_else".into(),
            wanted: "other_name".into()
        }
    );
    assert_eq!(
        refusal("bad_text"),
        Refusal::Text {
            what: "vendor".into()
        }
    );
    assert_eq!(refusal("features"), Refusal::Features { bits: 1 << 40 });
    assert!(matches!(refusal("sanitizer"), Refusal::Sanitizer { .. }));
    let Refusal::Param { name, what } = refusal("bad_param") else {
        panic!("a parameter is wrong");
    };
    assert_eq!(name, "chunk");
    assert!(what.contains("between 4 KiB and 1 MiB"), "{what}");
}

#[test]
fn a_file_or_folder_that_everybody_may_write_to() {
    let shop = Workshop::new();
    let path = shop.bad_with("sound", "writable", &[]);
    let mode = |path: &Path, mode| {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    };
    mode(&path, 0o757);
    assert!(matches!(
        refusal_of(&path),
        Refusal::Writable { mode: 0o757, .. }
    ));
    mode(&path, 0o755);
    mode(shop.folder.path(), 0o777);
    let Refusal::Writable { path: named, .. } = refusal_of(&path) else {
        panic!("the folder is writable");
    };
    assert!(named.is_dir());
    // In a sticky folder others cannot touch the file.
    mode(shop.folder.path(), 0o1777);
    loader().load_path(&path).unwrap();
    mode(shop.folder.path(), 0o777);
    loader().allow_writable(true).load_path(&path).unwrap();
}

#[test]
fn two_plugins_with_one_name() {
    let (a, b) = (Workshop::new(), Workshop::new());
    let (first, second) = (
        a.bad_with("sound", "twin", &[]),
        b.bad_with("sound", "twin", &[]),
    );
    loader().load_path(&first).unwrap();
    loader().load_path(&first).unwrap();
    let error = loader().load_path(&second).unwrap_err();
    let text = error.to_string();
    assert_eq!(*error.failure, Failure::TwoOfOneName { first, second });
    for folder in [&a, &b] {
        assert!(
            text.contains(folder.folder.path().to_str().unwrap()),
            "{text}"
        );
    }
}
