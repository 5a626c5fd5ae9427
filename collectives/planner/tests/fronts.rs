//! What is chosen over sizes is what is chosen at each.

#[allow(dead_code, reason = "each test takes some of the graphs")]
mod graphs;

use unisono_graph::LinkGraph;
use unisono_network::Network;
use unisono_plan::Op;
use unisono_planner::front::text;
use unisono_planner::{Planner, Request, plan};

#[test]
fn a_front_is_the_plans_of_its_sizes() {
    let (ranks, file) = graphs::islands(4, 4, 1.0);
    let network = Network::from_graph(&LinkGraph::from_json(&file).unwrap()).unwrap();
    for op in [Op::AllReduce, Op::AllGather] {
        let planner = Planner::new(&network, op).unwrap();
        let rows = planner.front(&Request::new(op, 8_000_000)).unwrap();
        assert_eq!(rows.first().map(|row| row.bytes), Some(256));
        assert_eq!(rows.last().map(|row| row.bytes), Some(8_000_000));
        for row in &rows {
            let alone = plan(&network, &Request::new(op, row.bytes)).unwrap();
            assert_eq!(row.predicted_us, alone.predicted_us(), "{row:?}");
            assert_eq!(row.chunks, alone.knob.chunks, "{row:?}");
            assert!(row.label.starts_with(&alone.algorithm), "{row:?}");
        }
        let labels: Vec<&str> = rows.iter().map(|row| &*row.label).collect();
        assert!(labels.windows(2).any(|two| two[0] != two[1]), "{labels:?}");
        assert!(
            rows.iter().any(|row| row.chunks > 1),
            "long messages are cut"
        );
        let text = text(op, ranks, &rows);
        assert_eq!(text.lines().count(), rows.len() + 2);
    }
}
