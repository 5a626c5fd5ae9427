//! Reports as bytes.

use proptest::prelude::*;
use unisono_graph::NodeReport;

use crate::samples::fleet;

#[test]
fn reports_survive_the_wire() {
    for report in fleet() {
        let bytes = report.to_bytes().unwrap();
        assert!(bytes.len() < 1024, "{} bytes are not compact", bytes.len());
        assert_eq!(NodeReport::from_bytes(&bytes), Ok(report));
    }
}

#[test]
fn other_bytes_are_refused() {
    let bytes = fleet()[0].to_bytes().unwrap();
    for end in 0..bytes.len() {
        assert!(
            NodeReport::from_bytes(&bytes[..end]).is_err(),
            "cut at {end}"
        );
    }
    let longer = [&bytes[..], &[0]].concat();
    assert!(
        NodeReport::from_bytes(&longer)
            .unwrap_err()
            .to_string()
            .contains("1 bytes too many")
    );
    let mut newer = bytes;
    newer[0] = 9;
    assert!(
        NodeReport::from_bytes(&newer)
            .unwrap_err()
            .to_string()
            .contains("layout 9")
    );
}

proptest! {
    #[test]
    fn rubbish_does_no_harm(mut bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        if let Some(first) = bytes.first_mut() {
            *first = 1;
        }
        if let Ok(report) = NodeReport::from_bytes(&bytes) {
            prop_assert_eq!(NodeReport::from_bytes(&report.to_bytes().unwrap()), Ok(report));
        }
    }
}
