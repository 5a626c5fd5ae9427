use unisono_network::*;
fn main() {
    let text = std::fs::read_to_string("/work/shared/fixtures/known_answers.json").unwrap();
    let v: serde_json::Value = serde_json::from_str(&text).unwrap();
    let only = std::env::args().nth(1).unwrap();
    for g in v["graphs"].as_array().unwrap() {
        if !g["name"].as_str().unwrap().contains(&only) {
            continue;
        }
        let n = Network::from_json(&g["graph"].to_string()).unwrap();
        let p = unisono_pack::broadcast(&n, 0).unwrap();
        println!(
            "unit {:?} {} trees depth {}",
            p.unit,
            p.trees.len(),
            p.depth()
        );
        for t in &p.trees {
            println!(
                "w {} depth {:?} parents {:?}",
                t.weight,
                t.depth(),
                t.parents
            );
            println!("   paths {:?}", t.paths);
        }
        for (i, e) in n.edges().iter().enumerate() {
            println!(
                "e{i} {}->{} {}",
                e.from,
                e.to,
                e.bytes_per_second / 1000000000
            );
        }
    }
}
