//! Islands are found, whatever the order of ranks.

use unisono_pack::levels;

mod families;

fn groups(network: &unisono_network::Network) -> Vec<Vec<Vec<u32>>> {
    let levels = levels(network);
    levels
        .levels()
        .iter()
        .map(|level| level.groups.clone())
        .collect()
}

#[test]
fn flat_networks_have_one_level() {
    for (name, network) in [
        families::ring(8),
        families::mesh(8, true),
        families::torus(&[4, 4]),
        families::star(8),
        families::cube_mesh(),
    ] {
        let groups = groups(&network);
        assert_eq!(groups.len(), 1, "{name}: {groups:?}");
        assert_eq!(groups[0].len(), 1, "{name}");
    }
}

#[test]
fn boxes_leaves_and_unequal_islands() {
    let boxes = groups(&families::rails(3, 4, 450, 50).1);
    assert_eq!(boxes[0], [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 10, 11]]);
    assert_eq!(boxes.len(), 2);
    let leaves = groups(&families::fat_tree(4, 4, 2, 2).1);
    assert_eq!(leaves[0].len(), 4);
    let islands = groups(&families::two_islands(2, 3).1);
    assert_eq!(islands[0], [vec![0, 1], vec![2, 3, 4]]);
    let dies = groups(&families::dies().1);
    assert_eq!(dies[0], [[0, 1], [2, 3], [4, 5], [6, 7]]);
    assert_eq!(dies[1], [[0, 1, 4, 5], [2, 3, 6, 7]]);
    assert_eq!(dies[2].len(), 1);
}

#[test]
fn interleaved_ranks_stand_by_rails() {
    // Every second rank is in the other box, the other way around.
    let network = families::rails(2, 4, 450, 50).1;
    let network = network
        .restrict(&[0, 7, 1, 6, 2, 5, 3, 4])
        .expect("all ranks");
    let levels = levels(&network);
    assert_eq!(levels.levels()[0].groups, [[0, 2, 4, 6], [7, 5, 3, 1]]);
    assert_eq!(levels.order(), [0, 2, 4, 6, 7, 5, 3, 1]);
    assert_eq!(levels.group_of(0), [0, 1, 0, 1, 0, 1, 0, 1]);
    assert_eq!(levels.group_of(1), [0, 0]);
}
