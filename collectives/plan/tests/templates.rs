//! Templates: every operation over random data of every kind, proved by the verifier.

use std::sync::Arc;

use unisono_plan::template::{Hierarchical, Level, Order, Ring, Rings, Route, Routes, Tree, Trees};
use unisono_plan::verify::{Settings, check, check_unanswered};
use unisono_plan::{Action, Algorithm, Op, Step, Template};

/// A small generator of numbers, so that every run is the same.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, bound: u32) -> u32 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        ((self.0 >> 33) % u64::from(bound.max(1))) as u32
    }

    fn shuffled(&mut self, count: u32) -> Vec<u32> {
        let mut all: Vec<u32> = (0..count).collect();
        for at in (1..count).rev() {
            let other = self.below(at + 1);
            all.swap(at as usize, other as usize);
        }
        all
    }
}

fn ops(ranks: u32) -> Vec<Op> {
    let mut ops = vec![
        Op::AllReduce,
        Op::ReduceScatter,
        Op::AllGather,
        Op::AllToAll,
    ];
    for root in [0, ranks / 2, ranks - 1] {
        ops.extend([
            Op::Broadcast { root },
            Op::Reduce { root },
            Op::Gather { root },
            Op::Scatter { root },
        ]);
    }
    ops
}

/// Verifies every operation that the template has, and says how many those are.
fn verify(template: &Template, ranks: u32) -> usize {
    let mut plans = 0;
    for op in ops(ranks) {
        if template.supports(op, ranks, false).is_ok() {
            let report = check(template.clone(), op, ranks, false, Settings::all);
            report.unwrap_or_else(|error| panic!("{error}\n{template:?}"));
            let unanswered = check_unanswered(template.clone(), op, ranks, Settings::all);
            unanswered.unwrap_or_else(|error| panic!("unanswered: {error}\n{template:?}"));
            plans += 1;
        }
    }
    plans
}

#[test]
fn algorithms_in_any_order() {
    let mut numbers = Numbers(1);
    let mut plans = 0;
    for ranks in (1..=9).chain([12, 16, 17]) {
        for algorithm in Algorithm::OVER_LINKS {
            let order = Arc::new(Order::new(numbers.shuffled(ranks)).unwrap());
            plans += verify(&Template::Ordered { algorithm, order }, ranks);
        }
    }
    println!("{plans} plans");
    assert!(plans > 700, "{plans}");
}

/// Of an order in runs, of which the last may be shorter: a reduce takes those of a run as one, whoever is its root.
#[test]
fn trees_of_runs() {
    let mut numbers = Numbers(9);
    let algorithm = Algorithm::Binomial;
    for ranks in (2..=9).chain([12, 16, 17]) {
        for run in [2, 3, 4, ranks] {
            let order = Order::new(numbers.shuffled(ranks)).unwrap().in_runs(run);
            let run_of = |rank: u32| order.position(rank).unwrap() / run;
            let order = Arc::new(order.clone());
            let template = Template::Ordered { algorithm, order };
            let what = format!("{ranks} in runs of {run}: {template:?}");
            assert_eq!(verify(&template, ranks), 3, "{what}: only reduces");
            for root in 0..ranks {
                let op = Op::Reduce { root };
                let report = check(template.clone(), op, ranks, false, Settings::all);
                assert!(report.is_ok(), "{what}: {report:?}");
                let programs = template.programs(op, ranks, false).unwrap();
                let puts = programs.iter().flat_map(|program| {
                    let sent = program.walk().filter_map(|step| put_to(&step));
                    sent.map(|to| (program.rank, to)).collect::<Vec<_>>()
                });
                let (near, far): (Vec<_>, Vec<_>) =
                    puts.partition(|&(from, to)| run_of(from) == run_of(to));
                let runs = ranks.div_ceil(run);
                assert_eq!((near.len() + far.len()) as u32, ranks - 1, "{what}");
                assert_eq!(
                    far.len() as u32,
                    runs - 1,
                    "{what}: one of each run puts to another"
                );
                // Those of a run all put to the same one, which the root is of its own.
                for at in 0..runs {
                    let of_run = near.iter().filter(|(_, to)| run_of(*to) == at);
                    let heads: std::collections::BTreeSet<u32> =
                        of_run.map(|(_, to)| *to).collect();
                    assert!(heads.len() <= 1, "{what}: {heads:?}");
                    assert!(at != run_of(root) || heads.iter().all(|head| *head == root));
                }
            }
        }
    }
}

/// To whom a step puts bytes.
fn put_to(step: &Step) -> Option<u32> {
    match step.action {
        Action::Put { to, value } if !value.blocks().is_empty() => Some(to),
        _ => None,
    }
}

#[test]
fn rings_in_any_order_with_any_weights() {
    let mut numbers = Numbers(2);
    let (mut plans, mut shared) = (0, 0);
    for ranks in (2..=9).chain([12, 16, 17]) {
        for count in 1..=3 {
            let ring = |_| Ring::new(numbers.shuffled(ranks), u64::from(numbers.below(9) + 1));
            let rings: Vec<Ring> = (0..count).map(ring).map(Result::unwrap).collect();
            let rings = Arc::new(Rings::new(rings).unwrap());
            shared += u32::from(rings.rings_on_a_hop() == 2);
            plans += verify(&Template::Rings(rings), ranks);
        }
    }
    println!("{plans} plans, {shared} with hops that two rings share");
    assert!(plans > 11 * 2 * 3 && shared > 3, "{plans} {shared}");
}

/// Levels of the groups that `level` and the unit give, all with one algorithm.
fn levels(groups: &[Vec<u32>], algorithms: &[Algorithm]) -> Template {
    let level = |(of, &algorithm): (&Vec<u32>, &Algorithm)| Level::new(of.clone(), algorithm);
    let levels: Vec<Level> = groups
        .iter()
        .zip(algorithms.iter().cycle())
        .map(level)
        .collect();
    Template::Hierarchical(Arc::new(Hierarchical::new(levels).unwrap()))
}

const WITHIN: [Algorithm; 3] = [
    Algorithm::MeshOneShot,
    Algorithm::Ring,
    Algorithm::HalvingDoubling,
];

/// The group of each of so many units, in groups of these sizes.
fn sized(sizes: &[u32]) -> Vec<u32> {
    let group = |(group, &size): (u32, &u32)| vec![group; size as usize];
    (0..).zip(sizes).flat_map(group).collect()
}

#[test]
fn groups_of_any_sizes() {
    let shapes: [&[&[u32]]; 12] = [
        &[&[2, 3]],
        &[&[8, 4]],
        &[&[1, 3]],
        &[&[2, 2, 3]],
        &[&[4, 4]],
        &[&[2, 2, 2, 2]],
        &[&[5, 1, 2]],
        &[&[1, 1, 1]],
        &[&[2, 2, 2, 2], &[2, 2]],
        &[&[2, 2, 1, 1, 3, 3], &[2, 3, 1]],
        &[&[2, 2, 2, 2, 2, 2], &[2, 2, 2], &[1, 1, 1]],
        &[&[2, 3, 2, 3], &[2, 2]],
    ];
    let mut plans = 0;
    for shape in shapes {
        let mut groups: Vec<Vec<u32>> = shape.iter().map(|sizes| sized(sizes)).collect();
        let top = groups.last().unwrap().iter().max().unwrap() + 1;
        groups.push(vec![0; top as usize]);
        let ranks = groups[0].len() as u32;
        for first in WITHIN {
            for second in WITHIN {
                let algorithms = [first, second];
                plans += verify(&levels(&groups, &algorithms), ranks);
            }
        }
    }
    println!("{plans} plans");
    assert_eq!(plans, shapes.len() * 9 * (3 + 3 * 2));
}

#[test]
fn interleaved_ranks_and_random_groups() {
    let mut numbers = Numbers(3);
    let mut plans = 0;
    for _ in 0..40 {
        let ranks = 2 + numbers.below(15);
        let groups = 1 + numbers.below(ranks);
        // Each group has somebody, the others are anywhere.
        let mut group_of: Vec<u32> = (0..groups).collect();
        group_of.extend((groups..ranks).map(|_| numbers.below(groups)));
        let order = numbers.shuffled(ranks);
        let group_of = order.iter().map(|&at| group_of[at as usize]).collect();
        let algorithms = [
            WITHIN[numbers.below(3) as usize],
            WITHIN[numbers.below(3) as usize],
        ];
        let template = levels(&[group_of, vec![0; groups as usize]], &algorithms);
        plans += verify(&template, ranks);
    }
    println!("{plans} plans");
    assert!(plans >= 40 * 7, "{plans}");
}

#[test]
fn groups_that_are_none_are_refused() {
    let refuse = |levels: Vec<(Vec<u32>, Algorithm)>| {
        let level = |(of, algorithm): (Vec<u32>, Algorithm)| Level::new(of, algorithm);
        let levels: Vec<Level> = levels.into_iter().map(level).collect();
        Hierarchical::new(levels).unwrap_err().to_string()
    };
    let mesh = Algorithm::MeshOneShot;
    assert!(refuse(vec![]).contains("at least one level"));
    let two = refuse(vec![(vec![0, 1, 1], mesh)]);
    assert!(two.contains("is the last one, but has 2 groups"), "{two}");
    let gap = refuse(vec![(vec![0, 2, 2], mesh)]);
    assert!(gap.contains("nobody in group 1"), "{gap}");
    let many = refuse(vec![(vec![0, 0, 1], mesh), (vec![0, 0, 0], mesh)]);
    assert!(many.contains("groups 3 units, but there are 2"), "{many}");
    let bruck = refuse(vec![(vec![0, 0], Algorithm::Bruck)]);
    assert!(bruck.contains("can't run bruck"), "{bruck}");
    let far = refuse(vec![(vec![0, u32::MAX], mesh)]);
    assert!(far.contains("groups of 2 units"), "{far}");
    let weighted = |weights: &[u32]| {
        let level = Level {
            weights: weights.into(),
            ..Level::new([0, 0, 0], mesh)
        };
        Hierarchical::new([level]).unwrap_err().to_string()
    };
    let few = weighted(&[1, 2]);
    assert!(few.contains("2 weights for 3 units"), "{few}");
    let nothing = weighted(&[1, 0, 2]);
    assert!(nothing.contains("leaves nothing to unit 1"), "{nothing}");
}

#[test]
fn groups_with_any_weights() {
    let mut numbers = Numbers(6);
    let (mut plans, mut weighted) = (0, 0);
    for _ in 0..60 {
        let ranks = 3 + numbers.below(9);
        let groups = 2 + numbers.below(ranks - 2);
        let mut group_of: Vec<u32> = (0..groups).collect();
        group_of.extend((groups..ranks).map(|_| numbers.below(groups)));
        let order = numbers.shuffled(ranks);
        let group_of: Vec<u32> = order.iter().map(|&at| group_of[at as usize]).collect();
        let mut level = |group_of: Vec<u32>| {
            let algorithm = WITHIN[numbers.below(3) as usize];
            Level {
                weights: group_of.iter().map(|_| 1 + numbers.below(6)).collect(),
                ..Level::new(group_of, algorithm)
            }
        };
        let both = [level(group_of), level(vec![0; groups as usize])];
        let template = Template::Hierarchical(Arc::new(Hierarchical::new(both).unwrap()));
        weighted += u32::from(template.label().ends_with(":by_rate"));
        plans += verify(&template, ranks);
    }
    println!("{plans} plans, {weighted} templates with unequal shares");
    assert_eq!(plans, 60 * 9);
    assert!(weighted > 50, "{weighted}");
}

#[test]
fn equal_weights_are_none() {
    let group_of = [0, 0, 1, 1, 1];
    let low = |weights: &[u32]| Level {
        weights: weights.into(),
        ..Level::new(group_of, Algorithm::MeshOneShot)
    };
    let top = Level::new([0, 0], Algorithm::MeshOneShot);
    let program = |weights: &[u32]| {
        let levels = Hierarchical::new([low(weights), top.clone()]).unwrap();
        let template = Template::Hierarchical(Arc::new(levels));
        assert_eq!(template.label(), "hierarchical:mesh_one_shot");
        template.programs(Op::AllReduce, 5, false).unwrap()
    };
    assert_eq!(program(&[7, 7, 3, 3, 3]), program(&[]));
}

/// A random spanning tree over all ranks.
fn random_tree(numbers: &mut Numbers, ranks: u32, root: u32) -> Tree {
    let mut order = numbers.shuffled(ranks);
    let at = order.iter().position(|&rank| rank == root).unwrap();
    order.swap(0, at);
    let mut parents = vec![root; ranks as usize];
    for at in 1..ranks {
        // Sometimes deep, sometimes wide.
        let above = match numbers.below(2) {
            0 => at - 1,
            _ => numbers.below(at),
        };
        parents[order[at as usize] as usize] = order[above as usize];
    }
    Tree::new(root, u64::from(numbers.below(9) + 1), parents)
}

#[test]
fn packings_of_any_trees() {
    let mut numbers = Numbers(4);
    let mut plans = 0;
    for ranks in (2..=9).chain([12, 16, 17]) {
        for each in 1..=2 {
            let trees = |numbers: &mut Numbers| -> Vec<Tree> {
                let of = |root| (0..each).map(move |_| root);
                (0..ranks)
                    .flat_map(of)
                    .map(|root| random_tree(numbers, ranks, root))
                    .collect()
            };
            let (out_trees, in_trees) = (trees(&mut numbers), trees(&mut numbers));
            let all = Trees::new(ranks, out_trees, in_trees).unwrap();
            plans += verify(&Template::Trees(Arc::new(all)), ranks);
            // For all_reduce, the same weights for each root, cut in other places.
            let mut out_trees = Vec::new();
            let mut in_trees = Vec::new();
            for root in numbers.shuffled(ranks).into_iter().take(3) {
                let first = random_tree(&mut numbers, ranks, root);
                let second = random_tree(&mut numbers, ranks, root);
                let sum = first.weight() + second.weight();
                in_trees.extend([first, second]);
                let all = random_tree(&mut numbers, ranks, root);
                out_trees.push(Tree::new(root, sum, all.parents().clone()));
            }
            let pairs = Trees::new(ranks, out_trees, in_trees).unwrap();
            let pairs = Template::Trees(Arc::new(pairs));
            assert!(pairs.supports(Op::AllReduce, ranks, false).is_ok());
            plans += verify(&pairs, ranks);
        }
    }
    println!("{plans} plans");
    assert!(plans > 11 * 2 * 8, "{plans}");
}

#[test]
fn trees_that_are_none_are_refused() {
    let refuse = |tree: Tree| Trees::new(3, vec![tree], vec![]).unwrap_err().to_string();
    let circle = refuse(Tree::new(0, 1, vec![0, 2, 1]));
    assert!(circle.contains("go round in a circle"), "{circle}");
    let rootless = refuse(Tree::new(0, 1, vec![1, 0, 0]));
    assert!(rootless.contains("go round in a circle"), "{rootless}");
    let nothing = refuse(Tree::new(0, 0, vec![0, 0, 0]));
    assert!(nothing.contains("has no weight"), "{nothing}");
    let astray = refuse(Tree::new(0, 1, vec![0, 3, 0]));
    assert!(astray.contains("names rank 3"), "{astray}");
    let short = refuse(Tree::new(0, 1, vec![0, 0]));
    assert!(short.contains("rank 2 twice, or not at all"), "{short}");
}

/// One or two random routes between any two ranks, through up to three others.
fn random_routes(numbers: &mut Numbers, ranks: u32) -> Vec<Route> {
    let mut routes = Vec::new();
    for from in 0..ranks {
        for to in (0..ranks).filter(|&to| to != from) {
            for _ in 0..=numbers.below(2) {
                let others = numbers.shuffled(ranks).into_iter();
                let between = numbers.below(4.min(ranks - 1)) as usize;
                let inside = others
                    .filter(|&rank| rank != from && rank != to)
                    .take(between);
                let path: Vec<u32> = [from].into_iter().chain(inside).chain([to]).collect();
                routes.push(Route {
                    weight: u64::from(numbers.below(4) + 1),
                    path: path.into(),
                });
            }
        }
    }
    routes
}

#[test]
fn messages_on_any_routes() {
    let mut numbers = Numbers(5);
    let mut plans = 0;
    for ranks in (2..=8).chain([12]) {
        let routes = Routes::new(ranks, random_routes(&mut numbers, ranks)).unwrap();
        plans += verify(&Template::Routes(Arc::new(routes)), ranks);
    }
    println!("{plans} plans");
    assert_eq!(plans, 8 * (1 + 2 * 3));
}

#[test]
fn routes_that_are_none_are_refused() {
    let route = |weight: u64, path: &[u32]| Route {
        weight,
        path: path.into(),
    };
    let refuse = |routes: Vec<Route>| Routes::new(3, routes).unwrap_err().to_string();
    let twice = refuse(vec![route(1, &[0, 1, 0])]);
    assert!(twice.contains("rank 0 twice"), "{twice}");
    let astray = refuse(vec![route(1, &[0, 4])]);
    assert!(astray.contains("names rank 4"), "{astray}");
    assert!(refuse(vec![route(1, &[0])]).contains("hop"));
    assert!(refuse(vec![route(0, &[0, 1])]).contains("has no weight"));
    let few = Routes::new(3, vec![route(1, &[0, 1])]).unwrap();
    let few = Template::Routes(Arc::new(few));
    let why = few
        .supports(Op::AllToAll, 3, false)
        .unwrap_err()
        .to_string();
    assert!(why.contains("no route between some ranks"), "{why}");
}
