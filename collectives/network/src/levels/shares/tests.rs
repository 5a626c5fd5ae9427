use proptest::prelude::*;

use super::super::levels_of_pairs;
use super::*;

/// Boxes of ranks whose cards have these rates, and wide links inside.
fn boxes(
    cards: &[Vec<u64>],
    way: impl Fn(u32, u32, u64) -> Way,
    top: bool,
) -> Option<Vec<Vec<u32>>> {
    let box_of: Vec<usize> = (cards.iter().enumerate())
        .flat_map(|(number, cards)| vec![number; cards.len()])
        .collect();
    let cards = cards.concat();
    let all = |from: u32, to: u32| match box_of[from as usize] == box_of[to as usize] {
        true => Way {
            bytes_per_second: 10_000,
            shared: Vec::new(),
        },
        false => way(from, to, cards[from as usize].min(cards[to as usize])),
    };
    let levels = levels_of_pairs(cards.len() as u32, |from, to| {
        if box_of[from as usize] == box_of[to as usize] {
            10_000
        } else {
            1
        }
    });
    levels.weights(top, all)
}

fn plain(_: u32, _: u32, bytes_per_second: u64) -> Way {
    Way {
        bytes_per_second,
        shared: Vec::new(),
    }
}

#[test]
fn members_share_by_their_cards() {
    let cards = [vec![50, 100, 50, 200], vec![400, 100]];
    // Nobody of the first box is faster than the fastest card of the second, and the other way round.
    let weights = boxes(&cards, plain, true).unwrap();
    assert_eq!(weights, [vec![1, 2, 1, 4, 2, 1], vec![1, 1]]);
}

#[test]
fn a_card_that_is_known_is_filled_by_several_others() {
    let cards = [vec![48, 48, 12, 12], vec![100, 25]];
    let all = cards.concat();
    let known = |from: u32, to: u32, bytes_per_second| {
        let end = |rank: u32, way: u64| Shared {
            id: u64::from(rank) * 2 + way,
            bytes_per_second: all[rank as usize],
        };
        Way {
            bytes_per_second,
            shared: vec![end(from, 0), end(to, 1)],
        }
    };
    let weights = boxes(&cards, known, true).unwrap();
    assert_eq!(weights[0], [4, 4, 1, 1, 4, 1]);
    // Else nobody knows that the fast card is faster than those which it meets.
    let weights = boxes(&cards, plain, true).unwrap();
    assert_eq!(weights[0], [4, 4, 1, 1, 2, 1]);
}

/// Boxes of four, two and two; the ranks of each share one card, all cards are alike.
#[test]
fn boxes_with_one_card_each_carry_the_same_whatever_their_size() {
    let box_of = [0, 0, 0, 0, 1, 1, 2, 2];
    let one_card = |from: u32, to: u32, bytes_per_second| {
        let end = |rank: u32, way: u64| Shared {
            id: box_of[rank as usize] * 2 + way,
            bytes_per_second: 100,
        };
        Way {
            bytes_per_second,
            shared: vec![end(from, 0), end(to, 1)],
        }
    };
    let cards = [vec![100; 4], vec![100; 2], vec![100; 2]];
    assert_eq!(boxes(&cards, one_card, true), None);
}

#[test]
fn cards_that_are_alike_or_unknown_need_no_shares() {
    assert_eq!(boxes(&[vec![100, 95], vec![91, 100]], plain, true), None);
    assert_eq!(boxes(&[vec![100, 0], vec![50, 100]], plain, true), None);
}

#[test]
fn a_card_that_two_use_carries_half_for_each() {
    // The first two ranks of the first box have one card.
    let way = |from: u32, _: u32, bytes_per_second| Way {
        bytes_per_second,
        shared: vec![Shared {
            id: u64::from(if from < 2 { 0 } else { from }),
            bytes_per_second: 100,
        }],
    };
    let weights = boxes(&[vec![100, 100, 100], vec![100, 100, 100]], way, false).unwrap();
    assert_eq!(weights, [vec![1, 1, 2, 1, 1, 1], vec![1, 1]]);
}

#[test]
fn the_slowest_of_many_boxes_adds_up_the_least() {
    let even = |rate| vec![rate, rate];
    let cards = [even(100), even(70), even(100), even(100)];
    let weights = boxes(&cards, plain, true).unwrap();
    // 1 + 2 x in proportion to 10 : 7 : 10 : 10, and the parts add up to one.
    let [a, slow, b, c] = weights[1][..] else {
        panic!("{weights:?}")
    };
    let sum = f64::from(a + slow + b + c);
    let near = |weight: u32, part: f64| (f64::from(weight) / sum - part).abs() < 0.02;
    assert!(
        near(slow, 0.0676) && [a, b, c].iter().all(|&w| near(w, 0.311)),
        "{weights:?}"
    );
    assert!(boxes(&cards, plain, false).is_none());
    let cards = [even(100), even(20), even(100), even(100)];
    let weights = boxes(&cards, plain, true).unwrap();
    let [a, slow, b, c] = weights[1][..] else {
        panic!("{weights:?}")
    };
    assert!(
        slow == 1 && [a, b, c].iter().all(|&weight| weight >= 10),
        "{weights:?}"
    );
}

proptest! {
    #[test]
    fn parts_are_near_to_rates(rates in prop::collection::vec(1u64..=1 << 48, 1..40)) {
        let rates: Vec<u128> = rates.into_iter().map(u128::from).collect();
        let weights = parts(&rates);
        prop_assert_eq!(weights.len(), rates.len());
        prop_assert!(weights.iter().all(|&weight| weight > 0));
        let (sum, total) = (rates.iter().sum::<u128>(), u128::from(weights.iter().sum::<u32>()));
        for (&weight, &rate) in weights.iter().zip(&rates) {
            // A twelfth: where rates are alike they count as the same.
            let (has, should) = (u128::from(weight) * sum, rate * total);
            let smallest = u128::from(weight) == 1;
            prop_assert!(smallest || has * 12 <= should * 13, "{weights:?} {rates:?}");
        }
    }

    #[test]
    fn nobody_takes_longer_than_with_equal_parts(rates in prop::collection::vec(1u64..1000, 3..10)) {
        let rates: Vec<u128> = rates.into_iter().map(u128::from).collect();
        let weights = parts(&poured(&rates));
        let total = f64::from(weights.iter().sum::<u32>());
        let others = rates.len() as f64 - 2.0;
        let longest = |part: &dyn Fn(usize) -> f64| {
            let times = rates.iter().enumerate().map(|(at, &rate)| (1.0 + others * part(at)) / rate as f64);
            times.fold(0.0, f64::max)
        };
        let equal = longest(&|_| 1.0 / rates.len() as f64);
        let poured = longest(&|at| f64::from(weights[at]) / total);
        prop_assert!(poured <= equal * 1.02, "{poured} {equal} {weights:?} {rates:?}");
    }
}
