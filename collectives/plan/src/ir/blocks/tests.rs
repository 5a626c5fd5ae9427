//! Sets of blocks hold what they say.

use super::*;

fn all(blocks: Blocks, section: u32) -> Vec<u32> {
    blocks.iter(section).collect()
}

#[test]
fn sets_wrap_within_their_section() {
    assert_eq!(all(Blocks::new(8, 4), 10), [8, 9, 0, 1]);
    assert_eq!(all(Blocks::new(18, 4), 10), [18, 19, 10, 11]);
    assert_eq!(all(Blocks::strided(1, 5, 2, 4), 10), [1, 2, 5, 6, 9]);
    assert_eq!(all(Blocks::strided(11, 4, 1, 3), 10), [11, 14, 17, 10]);
    assert_eq!(all(Blocks::backwards(12, 4), 10), [12, 11, 10, 19]);
}

#[test]
fn a_set_of_one_run_has_one_form() {
    let run = Blocks::new(3, 4);
    assert_eq!(Blocks::strided(3, 4, 4, 9), run);
    assert_eq!(Blocks::strided(3, 4, 2, 2), run);
    assert_eq!(Blocks::strided(3, 1, 1, 7), Blocks::one(3));
    assert_eq!(Blocks::backwards(3, 1), Blocks::one(3));
    assert_eq!(Blocks::strided(3, 4, 2, 5).prefix(2), Blocks::new(3, 2));
}

#[test]
fn positions_are_found_again() {
    let sets = [
        Blocks::new(7, 6),
        Blocks::strided(6, 5, 2, 4),
        Blocks::strided(19, 3, 1, 4),
        Blocks::backwards(12, 7),
    ];
    for set in sets {
        let blocks = all(set, 10);
        for block in 0..30 {
            let position = blocks.iter().position(|&b| b == block);
            assert_eq!(set.position(block, 10), position.map(|p| p as u32), "{set}");
        }
        assert_eq!(set.find(set.prefix(2), 10), Some(0));
    }
    let strided = Blocks::strided(0, 6, 1, 2);
    assert_eq!(strided.find(Blocks::strided(4, 3, 1, 2), 12), Some(2));
    assert_eq!(strided.find(Blocks::new(4, 2), 12), None);
    assert_eq!(Blocks::new(8, 6).find(Blocks::new(1, 2), 10), Some(3));
    assert_eq!(Blocks::new(8, 6).find(Blocks::new(1, 4), 10), None);
}

#[test]
fn runs_around_sets() {
    assert_eq!(Blocks::new(8, 2).within(10), Blocks::new(8, 2));
    assert_eq!(Blocks::new(8, 3).within(10), Blocks::new(0, 10));
    assert_eq!(Blocks::strided(11, 3, 1, 3).within(10), Blocks::new(11, 7));
    assert_eq!(Blocks::backwards(4, 3).within(10), Blocks::new(2, 3));
    assert_eq!(Blocks::backwards(1, 3).within(10), Blocks::new(0, 10));
}
