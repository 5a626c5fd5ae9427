//! The header as C11 and as C++17, by every compiler here, against the Rust mirror.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;

use unisono_abi::layout::{ALL, SIZES};
use unisono_abi_tests::{layout_header, repository, run};

/// The compilers to try: (program, flags, extension of the source).
const C: [&str; 5] = ["-std=c11", "-Wall", "-Wextra", "-pedantic", "-Werror"];
const CXX: [&str; 5] = ["-std=c++17", "-Wall", "-Wextra", "-pedantic", "-Werror"];
const COMPILERS: [(&str, [&str; 5], &str); 4] = [
    ("cc", C, "c"),
    ("c++", CXX, "cpp"),
    ("clang", C, "c"),
    ("clang++", CXX, "cpp"),
];

/// The compilers that are here; a C and a C++ compiler must be.
fn compilers() -> Vec<(&'static str, [&'static str; 5], &'static str)> {
    COMPILERS
        .into_iter()
        .filter(|(program, ..)| {
            let here = Command::new(program).arg("--version").output().is_ok();
            assert!(
                here || program.starts_with("clang"),
                "{program} is needed for this test"
            );
            here
        })
        .collect()
}

/// Compiles and runs a program that includes the headers.
fn output(source: &str, program: &str, flags: [&str; 5], extension: &str) -> String {
    let folder = tempfile::tempdir().expect("a folder for the program");
    let file = folder.path().join("program").with_extension(extension);
    let binary = folder.path().join("program");
    std::fs::write(&file, source).expect("the program's source");
    let include = repository("include");
    let mut compile = Command::new(program);
    compile
        .args(flags)
        .arg("-I")
        .arg(&include)
        .arg("-o")
        .arg(&binary)
        .arg(&file);
    run(&mut compile).expect("the header compiles without a warning");
    run(&mut Command::new(&binary)).expect("the program runs")
}

#[test]
fn the_header_is_standalone() {
    for (program, flags, extension) in compilers() {
        for header in ["unisono_plugin.h", "unisono_plugin_layout.h"] {
            let source = format!(
                "#include \"{header}\"\n#include \"{header}\"\nint main(void) {{ return 0; }}\n"
            );
            assert_eq!(output(&source, program, flags, extension), "");
        }
    }
}

#[test]
fn every_offset_and_size_agrees() {
    let mut expected = String::new();
    for field in ALL.iter().copied().flatten() {
        let _ = writeln!(
            expected,
            "{} {} {} {}",
            field.struct_name, field.field, field.offset, field.size
        );
    }
    let mut sizes = String::new();
    for (name, size) in SIZES {
        let _ = writeln!(expected, "{name} {size}");
        let _ = writeln!(
            sizes,
            "  printf(\"{name} %u\\n\", (unsigned)sizeof({name}));"
        );
    }
    let source = format!(
        "#include <stdio.h>\n#include \"unisono_plugin_layout.h\"\n\
         static const unisono_layout_entry layout[] = {{UNISONO_LAYOUT_TABLE}};\n\
         int main(void) {{\n  for (unsigned i = 0; i < sizeof(layout) / sizeof(layout[0]); i++)\n    \
         printf(\"%s %s %u %u\\n\", layout[i].struct_name, layout[i].field, layout[i].offset, \
         layout[i].size);\n{sizes}  return 0;\n}}\n"
    );
    for (program, flags, extension) in compilers() {
        let found = output(&source, program, flags, extension);
        for (found, expected) in found.lines().zip(expected.lines()) {
            assert_eq!(found, expected, "{program}: the header against hal/abi");
        }
        assert_eq!(found.lines().count(), expected.lines().count(), "{program}");
    }
}

/// Every struct of the header is in the mirror, every field of it too: sizes alone would not show
/// a field in what is padding on one side.
#[test]
fn the_mirror_misses_no_struct() {
    let header = std::fs::read_to_string(repository("include/unisono_plugin.h")).expect("header");
    let declared: Vec<_> = header
        .lines()
        .filter_map(|line| line.strip_prefix("typedef struct ")?.split_once(" {"))
        .map(|(name, _)| name)
        .collect();
    let mirrored: Vec<_> = SIZES.iter().map(|(name, _)| *name).collect();
    assert_eq!(declared, mirrored, "the same structs in the same order");
    for fields in ALL {
        let name = fields[0].struct_name;
        let (size, covered) = (
            SIZES
                .iter()
                .find(|(n, _)| *n == name)
                .map_or(0, |(_, size)| *size),
            fields
                .iter()
                .map(|field| field.size as usize)
                .sum::<usize>(),
        );
        assert_eq!(
            covered, size,
            "{name} has padding: a field is missing or out of place"
        );
    }
}

#[test]
fn the_generated_header_is_what_the_generator_makes() {
    let path = repository("include/unisono_plugin_layout.h");
    let committed = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        committed == layout_header(),
        "include/unisono_plugin_layout.h is old: cargo xtask abi"
    );
}

/// The constants of one module of the mirror, by the prefix that they have in the header.
fn constants_of(file: &Path, module: &str) -> Vec<String> {
    let text = std::fs::read_to_string(file).expect("a module of hal/abi");
    let start = text.find(&format!("pub mod {module} {{")).expect(module);
    let end = start + text[start..].find("\n}").expect("the module's end");
    text[start..end]
        .lines()
        .filter_map(|line| line.trim().strip_prefix("pub const ")?.split_once(':'))
        .map(|(name, _)| name.to_owned())
        .collect()
}

#[test]
fn every_constant_agrees() {
    let expected = constants();
    let mut source =
        String::from("#include <stdio.h>\n#include \"unisono_plugin.h\"\nint main(void) {\n");
    for name in expected.keys() {
        let _ = writeln!(
            source,
            "  printf(\"{name} %lld\\n\", (long long)UNISONO_{name});"
        );
    }
    let texts = [
        ("PLUGIN_QUERY_SYMBOL", unisono_abi::QUERY_SYMBOL),
        ("CPU_INTERFACE", unisono_abi::CPU_INTERFACE),
        ("DMABUF_INTERFACE", unisono_abi::DMABUF_INTERFACE),
    ];
    for (name, _) in texts {
        let _ = writeln!(source, "  printf(\"%s\\n\", UNISONO_{name});");
    }
    source.push_str("  return 0;\n}\n");
    for (program, flags, extension) in compilers() {
        let found = output(&source, program, flags, extension);
        let mut lines = found.lines();
        for (name, value) in &expected {
            assert_eq!(
                lines.next(),
                Some(format!("{name} {value}").as_str()),
                "{program}"
            );
        }
        for (name, text) in texts {
            assert_eq!(lines.next(), Some(text), "{program}: {name}");
        }
    }
}

/// Every constant of the header is compared: none is new there and unknown here.
#[test]
fn no_constant_is_left_out() {
    let header = std::fs::read_to_string(repository("include/unisono_plugin.h")).expect("header");
    let known = constants();
    let tokens = header.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'));
    let not_values = [
        "PLUGIN_H",
        "PLUGIN_EXPORT",
        "PLUGIN_QUERY_SYMBOL",
        "CPU_INTERFACE",
        "DMABUF_INTERFACE",
        "DEVICE",
        "EXPORT",
        "PLACE",
        "CMD",
    ];
    for name in tokens.filter_map(|token| token.strip_prefix("UNISONO_")) {
        if name.ends_with('_') || not_values.contains(&name) {
            continue; // a family named in a comment: UNISONO_DEVICE_*
        }
        assert!(
            known.contains_key(name),
            "UNISONO_{name} is not compared with hal/abi"
        );
    }
    for (file, module, count) in [
        ("error.rs", "status", 15),
        ("command.rs", "command_kind", 10),
        ("command.rs", "dtype", 14),
        ("command.rs", "reduction", 7),
        ("device.rs", "device_kind", 5),
        ("queue.rs", "queue_state", 5),
    ] {
        let found = constants_of(&repository("hal/abi/src").join(file), module);
        assert_eq!(
            found.len(),
            count,
            "{module} of hal/abi grew: add it to this test"
        );
    }
}

/// (name without UNISONO_, value as the mirror has it).
fn constants() -> BTreeMap<&'static str, i64> {
    use unisono_abi::*;
    let mut all = BTreeMap::new();
    macro_rules! add {
        ($($name:literal = $value:expr),+ $(,)?) => {$(
            assert!(all.insert($name, i64::try_from($value).expect("fits")).is_none(), $name);
        )+};
    }
    add!(
        "PLUGIN_MAGIC" = MAGIC,
        "PLUGIN_ABI_MAJOR" = ABI_MAJOR,
        "PLUGIN_ABI_MINOR" = ABI_MINOR,
        "OK" = status::OK,
        "AGAIN" = status::AGAIN,
        "ERR_INVALID" = status::INVALID,
        "ERR_UNSUPPORTED" = status::UNSUPPORTED,
        "ERR_OUT_OF_MEMORY" = status::OUT_OF_MEMORY,
        "ERR_DEVICE" = status::DEVICE,
        "ERR_LINK" = status::LINK,
        "ERR_PEER" = status::PEER,
        "ERR_TIMEOUT" = status::TIMEOUT,
        "ERR_ABORTED" = status::ABORTED,
        "ERR_MISMATCH" = status::MISMATCH,
        "ERR_AUTH" = status::AUTH,
        "ERR_NO_DRIVER" = status::NO_DRIVER,
        "ERR_INTERNAL" = status::INTERNAL,
        "ERR_POISONED" = status::POISONED,
        "I8" = dtype::I8,
        "U8" = dtype::U8,
        "I16" = dtype::I16,
        "U16" = dtype::U16,
        "I32" = dtype::I32,
        "U32" = dtype::U32,
        "I64" = dtype::I64,
        "U64" = dtype::U64,
        "F16" = dtype::F16,
        "BF16" = dtype::BF16,
        "F32" = dtype::F32,
        "F64" = dtype::F64,
        "F8E4M3FN" = dtype::F8E4M3FN,
        "F8E5M2" = dtype::F8E5M2,
        "SUM" = reduction::SUM,
        "PROD" = reduction::PROD,
        "MIN" = reduction::MIN,
        "MAX" = reduction::MAX,
        "AND" = reduction::AND,
        "OR" = reduction::OR,
        "XOR" = reduction::XOR,
        "LOG_ERROR" = level::ERROR,
        "LOG_WARN" = level::WARN,
        "LOG_INFO" = level::INFO,
        "LOG_DEBUG" = level::DEBUG,
        "LOG_TRACE" = level::TRACE,
        "PARAM_BOOL" = param_type::BOOL,
        "PARAM_INT" = param_type::INT,
        "PARAM_BYTES" = param_type::BYTES,
        "PARAM_DURATION_NS" = param_type::DURATION_NS,
        "PARAM_STRING" = param_type::STRING,
        "DEVICE_CPU" = device_kind::CPU,
        "DEVICE_GPU" = device_kind::GPU,
        "DEVICE_NPU" = device_kind::NPU,
        "DEVICE_NIC" = device_kind::NIC,
        "DEVICE_OTHER" = device_kind::OTHER,
        "REACH_HOST" = reach::HOST,
        "REACH_PROCESS" = reach::PROCESS,
        "REACH_PEER" = reach::PEER,
        "REACH_DMABUF" = reach::DMABUF,
        "STREAM_POLLED" = stream_can::POLLED,
        "STREAM_CHECKS_WORDS" = stream_can::CHECKS_WORDS,
        "STREAM_CAPTURE" = stream_can::CAPTURE,
        "STREAM_RINGS" = stream_can::RINGS,
        "SIDE_ABSENT" = side::ABSENT,
        "SIDE_NATIVE" = side::NATIVE,
        "SIDE_EMULATED" = side::EMULATED,
        "EVENT_DEVICE_SIGNAL_SHIFT" = side::DEVICE_SIGNAL_SHIFT,
        "EVENT_DEVICE_WAIT_SHIFT" = side::DEVICE_WAIT_SHIFT,
        "EVENT_HOST_SIGNAL_SHIFT" = side::HOST_SIGNAL_SHIFT,
        "EVENT_HOST_QUERY_SHIFT" = side::HOST_QUERY_SHIFT,
        "PLACE_DEVICE" = place::DEVICE,
        "PLACE_HOST" = place::HOST,
        "PLACE_IMPORTED" = place::IMPORTED,
        "MEMORY_DATA" = memory_kind::DATA,
        "MEMORY_SIGNAL" = memory_kind::SIGNAL,
        "MEMORY_BELL" = memory_kind::BELL,
        "MEMORY_STAGING" = memory_kind::STAGING,
        "MEMORY_PROCESS" = memory_kind::PROCESS,
        "MEMORY_EXPORTABLE" = memory_flag::EXPORTABLE,
        "MEMORY_LAZY" = memory_flag::LAZY,
        "EXPORT_PROCESS" = export::PROCESS,
        "EXPORT_DMABUF" = export::DMABUF,
        "EXPORT_MAX" = EXPORT_MAX,
        "CMD_COPY" = command_kind::COPY,
        "CMD_REDUCE" = command_kind::REDUCE,
        "CMD_SIGNAL" = command_kind::SIGNAL,
        "CMD_WAIT" = command_kind::WAIT,
        "CMD_PUT" = command_kind::PUT,
        "CMD_RECORD" = command_kind::RECORD,
        "CMD_WAIT_EVENT" = command_kind::WAIT_EVENT,
        "CMD_READ" = command_kind::READ,
        "CMD_SCALE" = command_kind::SCALE,
        "CMD_CALL" = command_kind::CALL,
        "CMD_WORDS" = CMD_WORDS,
        "CMD_STREAMING" = CMD_STREAMING,
        "NO_WINDOW" = NO_WINDOW,
        "QUEUE_IDLE" = queue_state::IDLE,
        "QUEUE_READY" = queue_state::READY,
        "QUEUE_WAITING" = queue_state::WAITING,
        "QUEUE_CONNECTING" = queue_state::CONNECTING,
        "QUEUE_FAILED" = queue_state::FAILED,
        "SLEEP_READY" = sleep::READY,
        "SLEEP_FUTEX" = sleep::FUTEX,
        "SLEEP_FD" = sleep::FD,
        "SLEEP_WAKER" = sleep::WAKER,
        "LINK_MAPPED" = link_type::MAPPED,
        "LINK_POSTED" = link_type::POSTED,
        "SCOPE_NODE" = scope::NODE,
        "SCOPE_NETWORK" = scope::NETWORK,
        "SCOPE_PAIR" = scope::PAIR,
        "SANITIZER_NONE" = sanitizer::NONE,
        "SANITIZER_ADDRESS" = sanitizer::ADDRESS,
        "SANITIZER_THREAD" = sanitizer::THREAD,
        "SANITIZER_MEMORY" = sanitizer::MEMORY,
    );
    all
}
