//! The order of the search, manifests, and what a failed search says.

mod common;

use std::fs;
use std::path::Path;

use common::Workshop;
use unisono_hal::{Failure, Loader, Manifest, Origin, Refusal, SearchPath};

fn loader(places: &[(Origin, &Path)]) -> Loader {
    let path = places
        .iter()
        .fold(SearchPath::empty(), |path, (origin, place)| {
            path.then(*origin, *place)
        });
    Loader::new(path)
}

fn manifest(shop: &Workshop, file: &str, name: &str, library: &str, change: &str) {
    let text = format!(
        r#"{{"name": "{name}", "library": "{library}", "version": "1", "vendor": "tests",
            "abi_major": 1, "abi_minor": 1{change}}}"#
    );
    fs::write(shop.path(file), text).unwrap();
}

#[test]
fn the_first_place_that_has_it_wins_and_the_list_shows_both() {
    let (a, b) = (Workshop::new(), Workshop::new());
    let first = a.bad_with("sound", "first_wins", &[]);
    let second = b.bad_with("sound", "first_wins", &[]);
    b.bad_with("sound", "only_b", &[]);
    let loader = loader(&[
        (Origin::Environment, a.folder.path()),
        (Origin::User, b.folder.path()),
    ]);
    // A `-` in a name is a `_` in a file's.
    assert_eq!(loader.load("first-wins").unwrap().path(), Some(&*first));
    let list = loader.list();
    let row = |i: usize| (list[i].name.as_str(), list[i].origin);
    assert_eq!(row(0), ("first_wins", Origin::Environment));
    assert_eq!(row(1), ("first_wins", Origin::User));
    assert_eq!(row(2), ("only_b", Origin::User));
    assert_eq!(list[1].path, second);
    assert_eq!(list[1].shadowed_by.as_ref(), Some(&first));
}

#[test]
fn one_that_is_refused_is_not_replaced_by_another() {
    let (a, b) = (Workshop::new(), Workshop::new());
    a.bad_with("wrong_major", "no_fallback", &[]);
    b.bad_with("sound", "no_fallback", &[]);
    let loader = loader(&[
        (Origin::ClusterFile, a.folder.path()),
        (Origin::System, b.folder.path()),
    ]);
    let error = loader.load("no_fallback").unwrap_err();
    assert!(matches!(error.refusal(), Some(Refusal::Major { .. })));
}

#[test]
fn a_failed_search_says_every_place() {
    let shop = Workshop::new();
    shop.bad_with("sound", "zebra", &[]);
    fs::write(shop.path("broken.plugin.json"), "{").unwrap();
    let nowhere = shop.path("nowhere");
    let loader = loader(&[
        (Origin::ClusterFile, Path::new("relative/folder")),
        (Origin::Environment, &nowhere),
        (Origin::User, shop.folder.path()),
    ]);
    let error = loader.load("zebre").unwrap_err();
    let Failure::NotFound { near, there } = &*error.failure else {
        panic!("{error}");
    };
    assert_eq!(
        (near.as_deref(), &there[..]),
        (Some("zebra"), &["zebra".to_owned()][..])
    );
    let text = error.to_string();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines[0], "plugin zebre was not found; did you mean zebra?");
    assert_eq!(
        lines[2],
        "  relative/folder (named by the cluster file): is not an absolute path, so it is not used"
    );
    assert!(
        lines[3].contains("nowhere (named by UNISONO_PLUGIN_PATH): cannot be read"),
        "{text}"
    );
    assert!(lines[4].contains("broken.plugin.json"), "{text}");
    assert!(
        lines[5].ends_with("(the user's folder): plugins zebra"),
        "{text}"
    );
}

#[test]
fn two_in_one_place_claim_a_name() {
    let shop = Workshop::new();
    let first = shop.bad_with("sound", "claimed", &[]);
    fs::copy(&first, shop.path("other.so")).unwrap();
    manifest(&shop, "other.plugin.json", "claimed", "other.so", "");
    let loader = loader(&[(Origin::User, shop.folder.path())]);
    let error = loader.load("claimed").unwrap_err();
    let text = error.to_string();
    assert!(
        matches!(&*error.failure, Failure::TwoOfOneName { .. }),
        "{text}"
    );
    assert!(
        text.contains("other.so") && text.contains("libunisono_plugin_claimed.so"),
        "{text}"
    );
}

#[test]
fn manifests() {
    let shop = Workshop::new();
    fs::rename(shop.bad_with("sound", "described", &[]), shop.path("x.so")).unwrap();
    let loader = loader(&[(Origin::User, shop.folder.path())]);
    let load = || loader.load("described");
    assert!(matches!(
        &*load().unwrap_err().failure,
        Failure::NotFound { .. }
    ));
    manifest(&shop, "d.plugin.json", "described", "x.so", "");
    let found = loader.list();
    assert_eq!(found[0].manifest.as_ref().unwrap().vendor, "tests");
    assert_eq!(load().unwrap().name(), "described");

    let digest = format!(r#", "sha256": "{}""#, "0".repeat(64));
    manifest(&shop, "d.plugin.json", "described", "x.so", &digest);
    let Some(Refusal::Digest { found, .. }) = load().unwrap_err().refusal().cloned() else {
        panic!("another file");
    };
    manifest(
        &shop,
        "d.plugin.json",
        "described",
        "x.so",
        &format!(r#", "sha256": "{found}""#),
    );
    assert_eq!(load().unwrap().name(), "described");

    // The manifest's version is read before the library is.
    let text = fs::read_to_string(shop.path("d.plugin.json")).unwrap();
    fs::write(
        shop.path("d.plugin.json"),
        text.replace("\"abi_major\": 1", "\"abi_major\": 3"),
    )
    .unwrap();
    assert!(matches!(
        load().unwrap_err().refusal(),
        Some(Refusal::Major { found: (3, 1), .. })
    ));

    let wrong = |name, library, change: &str| {
        manifest(&shop, "d.plugin.json", name, library, change);
        Manifest::read(&shop.path("d.plugin.json"))
            .unwrap_err()
            .to_string()
    };
    assert!(wrong("described", "../x.so", "").contains("is not a file name"));
    assert!(wrong("No", "x.so", "").contains("is not 1 to 32"));
    assert!(wrong("described", "x.so", r#", "sha256": "12""#).contains("64 hexadecimal digits"));
    assert!(wrong("described", "x.so", r#", "extra": 1"#).contains("unknown field `extra`"));
}

#[test]
fn a_file_in_the_search_path() {
    let shop = Workshop::new();
    let path = shop.bad_with("sound", "by_file", &[]);
    let loader = loader(&[(Origin::Environment, &path)]);
    assert_eq!(loader.load("by_file").unwrap().path(), Some(&*path));
}
