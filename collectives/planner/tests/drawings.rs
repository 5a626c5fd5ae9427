//! Drawings of plans: whole, complete where they say nothing else, and bounded.

mod graphs;

use unisono_graph::LinkGraph;
use unisono_network::Network;
use unisono_plan::Op;
use unisono_planner::names::Names;
use unisono_planner::schedule::Kind;
use unisono_planner::{Plan, Request, plan, svg};

fn drawn(text: &str, op: Op, bytes: u64, algorithm: Option<&str>) -> (Plan, Vec<String>, String) {
    let graph = LinkGraph::from_json(text).unwrap();
    let network = Network::from_graph(&graph).unwrap();
    let request = Request {
        algorithm: algorithm.map(str::to_owned),
        ..Request::new(op, bytes)
    };
    let plan = plan(&network, &request).unwrap();
    let names = Names::new(&graph, &network);
    let used = (0u32..).zip(&plan.timeline.edge_bytes);
    let used: Vec<String> = used
        .filter(|(_, bytes)| **bytes > 0)
        .map(|(edge, _)| names.text(edge).replace('>', "&gt;"))
        .collect();
    let svg = svg::svg(&plan, &network, &names);
    (plan, used, svg)
}

fn well_formed(svg: &str) {
    let document = roxmltree::Document::parse(svg).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(document.root_element().tag_name().name(), "svg");
    assert!(
        !svg.contains("NaN") && !svg.contains("inf"),
        "numbers are numbers"
    );
}

#[test]
fn every_message_and_every_link_of_a_small_plan_is_drawn() {
    for (ranks, text) in graphs::all() {
        for op in [
            Op::AllReduce,
            Op::AllGather,
            Op::Broadcast { root: ranks / 2 },
            Op::AllToAll,
        ] {
            let (plan, links, svg) = drawn(&text, op, 200_000, None);
            well_formed(&svg);
            let puts = plan
                .schedule
                .steps
                .iter()
                .filter(|step| step.kind == Kind::Put);
            assert_eq!(svg.matches("class=\"message\"").count(), puts.count());
            for link in &links {
                assert!(
                    svg.contains(&format!(">{link}</text>")),
                    "{link} is missing"
                );
            }
            assert_eq!(svg.matches("class=\"use\"").count(), links.len());
            for rank in 0..ranks {
                assert!(svg.contains(&format!(">rank {rank}</text>")));
            }
            assert!(!svg.contains("Not drawn"));
        }
    }
}

#[test]
fn a_barrier_moves_nothing_and_has_a_drawing() {
    let (_, text) = graphs::ring(4, 1.0);
    let (_, links, svg) = drawn(&text, Op::Barrier, 0, None);
    well_formed(&svg);
    assert!(links.is_empty() && !svg.contains("class=\"use\""));
}

#[test]
fn of_many_ranks_a_part_is_drawn_and_the_rest_is_counted() {
    let (_, text) = graphs::star(200, 1.0);
    let (plan, _, svg) = drawn(&text, Op::AllGather, 200 * 8192, Some("bruck"));
    well_formed(&svg);
    assert!(svg.len() < 600_000, "{} bytes", svg.len());
    assert!(svg.contains("Not drawn: 136 ranks;"), "it says so");
    let drawn = svg.matches("class=\"message\"").count();
    let puts = plan
        .schedule
        .steps
        .iter()
        .filter(|step| step.kind == Kind::Put);
    let left_out = puts.count() - drawn;
    assert!(drawn > 0 && svg.contains(&format!("{left_out} messages")));
    assert!(svg.contains("272 links"), "200 up, 200 down, 128 drawn");
}

#[test]
fn what_was_only_counted_shows_the_mean_use_of_links() {
    let (_, text) = graphs::star(300, 0.0);
    let (plan, _, svg) = drawn(&text, Op::AllReduce, 1 << 30, Some("mesh_two_shot"));
    well_formed(&svg);
    assert!(
        plan.schedule.steps.is_empty(),
        "so many are not spelled out"
    );
    assert!(svg.contains("mean use") && svg.contains("class=\"use\""));
    assert!(svg.len() < 200_000, "{} bytes", svg.len());
}
