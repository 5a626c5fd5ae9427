//! What holds for all inputs: units go out and come back, and no text makes a check panic.

mod common;

use proptest::prelude::*;
use unisono_cluster::{Bytes, InterfacePattern, LinkEnd, RankRange, Rate, TimeSpan, check};

proptest! {
    #[test]
    fn bytes_go_out_and_come_back(bytes: u64, shift in 0u32..64) {
        for value in [bytes, bytes >> shift, (bytes >> shift) << shift, (bytes % 1_000_000) * 1_000_000_000] {
            prop_assert_eq!(Bytes(value).to_string().parse(), Ok(Bytes(value)));
        }
        prop_assert_eq!(bytes.to_string().parse(), Ok(Bytes(bytes)));
    }

    #[test]
    fn rates_go_out_and_come_back(rate: u64, digits in 0u32..20) {
        for value in [rate, rate / 10u64.pow(digits) * 10u64.pow(digits)] {
            prop_assert_eq!(Rate(value).to_string().parse(), Ok(Rate(value)));
        }
    }

    #[test]
    fn times_go_out_and_come_back(time: u64, minutes in 0u64..1_000_000) {
        for value in [time, minutes * 60_000_000_000] {
            prop_assert_eq!(TimeSpan(value).to_string().parse(), Ok(TimeSpan(value)));
        }
    }

    #[test]
    fn fractions_are_exact(whole in 0u64..100_000, fraction in 0u64..1000) {
        let time = format!("{whole}.{fraction:03} us");
        prop_assert_eq!(time.parse(), Ok(TimeSpan(whole * 1000 + fraction)));
        let rate = format!("{whole}.{fraction:03} KB/s");
        prop_assert_eq!(rate.parse(), Ok(Rate(whole * 1000 + fraction)));
        let bits = format!("{} bit/s", whole * 8);
        prop_assert_eq!(bits.parse(), Ok(Rate(whole)));
    }

    #[test]
    fn what_is_read_is_shown_as_the_same(text in "[0-9]{0,21}[.]?[0-9]{0,10} ?[a-zA-Z/\u{b5}]{0,6}") {
        if let Ok(bytes) = text.parse::<Bytes>() {
            prop_assert_eq!(bytes.to_string().parse(), Ok(bytes));
        }
        if let Ok(rate) = text.parse::<Rate>() {
            prop_assert_eq!(rate.to_string().parse(), Ok(rate));
        }
        if let Ok(time) = text.parse::<TimeSpan>() {
            prop_assert_eq!(time.to_string().parse(), Ok(time));
        }
    }

    #[test]
    fn other_texts_go_out_and_come_back(text in "\\PC{0,12}", ends in "(rank )?[a-z0-9]{1,3}(/[a-z0-9]{1,3})?") {
        for text in [&text, &ends] {
            if let Ok(end) = text.parse::<LinkEnd>() {
                prop_assert_eq!(end.to_string().parse(), Ok(end));
            }
            if let Ok(pattern) = text.parse::<InterfacePattern>() {
                prop_assert_eq!(pattern.to_string().parse(), Ok(pattern));
            }
            if let Ok(range) = text.parse::<RankRange>() {
                prop_assert_eq!(range.to_string().parse(), Ok(range));
            }
        }
    }

    /// A file with a part exchanged, doubled or cut is accepted or refused with places that it has.
    #[test]
    fn no_file_makes_a_check_panic(at in 0usize..2500, length in 0usize..40, put in "\\PC{0,12}|[\\[\\]{}:,*&!|>'\"\\-\n ]{0,6}") {
        let text = include_str!("../../../examples/mixed-fleet.yaml");
        let cut = |index: usize| text.floor_char_boundary(index.min(text.len()));
        let changed = format!("{}{put}{}", &text[..cut(at)], &text[cut(at + length)..]);
        let file = common::File::new(&changed);
        if let Err(problems) = check(&file.path()) {
            prop_assert!(!problems.is_empty());
            for problem in problems {
                let (line, column) = common::place(&problem.source);
                prop_assert!(line >= 1 && column >= 1 && line as usize <= changed.lines().count() + 1, "{}", problem);
                prop_assert!(!problem.message.is_empty() && problem.kind != unisono_cluster::ProblemKind::Internal, "{}", problem);
            }
        }
    }
}

#[test]
fn units_are_what_they_say() {
    for (text, bytes) in [
        ("0", 0),
        ("4096", 4096),
        ("1G", 1 << 30),
        ("1g", 1 << 30),
        ("64K", 65536),
        ("64KiB", 65536),
        ("64 KB", 64_000),
        ("64 kB", 64_000),
        ("1.5 GiB", 3 << 29),
        ("1.5 GB", 1_500_000_000),
        ("2T", 2 << 40),
    ] {
        assert_eq!(text.parse(), Ok(Bytes(bytes)), "{text}");
    }
    for (text, rate) in [
        ("50 GB/s", 50_000_000_000),
        ("400 Gbit/s", 50_000_000_000),
        ("400Gbps", 50_000_000_000),
        ("1 KiB/s", 1024),
        ("1 kB/s", 1000),
        ("7 B/s", 7),
    ] {
        assert_eq!(text.parse(), Ok(Rate(rate)), "{text}");
    }
    for (text, nanos) in [
        ("2us", 2_000),
        ("2.5 \u{b5}s", 2_500),
        ("30s", 30_000_000_000),
        ("5 min", 300_000_000_000),
        ("1 h", 3_600_000_000_000),
        ("0.000000001 s", 1),
    ] {
        assert_eq!(text.parse(), Ok(TimeSpan(nanos)), "{text}");
    }
    for text in [
        "",
        "1..5K",
        ".5K",
        "5.K",
        "1  K",
        "K",
        "1e3",
        "+1",
        "0x10",
        "1 KIB",
        "999999999999999999999",
        "\u{663}K",
    ] {
        assert!(text.parse::<Bytes>().is_err(), "{text}");
    }
    for text in ["1", "1 bit/s", "1 iB/s", "1 GB", "1 mbit/s", "1 Gib/s"] {
        assert!(text.parse::<Rate>().is_err(), "{text}");
    }
}
