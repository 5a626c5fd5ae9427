//! Rules that force a plan.

use super::*;

fn force(algorithm: Algorithm, windowed: Option<bool>) -> Overrides {
    Overrides {
        rules: vec![Override {
            op: Some(OpKind::AllReduce),
            bytes: 0..=MIB,
            algorithm: algorithm.into(),
            windowed,
            put_bytes: None,
        }],
    }
}

#[test]
fn an_override_wins_within_its_bounds() {
    let fabric = classical(4);
    let rules = force(Algorithm::Ring, None);
    let choose = |op, bytes| select(&request(op, bytes), &fabric, &rules).unwrap();
    let forced = choose(Op::AllReduce, 8);
    assert!(forced.forced && forced.winner().plan == Plan::Flat(Algorithm::Ring));
    assert!(forced.to_string().contains("an override forces it"));
    assert!(!choose(Op::AllReduce, MIB + 1).forced);
    assert!(!choose(Op::AllGather, 8).forced);
}

#[test]
fn an_override_that_cannot_run_is_an_error_that_says_why() {
    let fabric = classical(4);
    let fail = |rules: &Overrides, ask: Request| -> SelectError {
        select(&ask, &fabric, rules).unwrap_err()
    };
    let ask = request(Op::AllReduce, 8);
    let error = fail(&force(Algorithm::Dissemination, None), ask);
    assert!(
        error.to_string().contains("doesn't have this operation"),
        "{error}"
    );
    let error = fail(&force(Algorithm::Ring, Some(true)), ask);
    assert!(
        error.to_string().contains("no plan over windows"),
        "{error}"
    );
    let error = fail(&force(Algorithm::MeshTwoShot, Some(true)), ask);
    assert!(
        error.to_string().contains("not windows of every peer"),
        "{error}"
    );
    let strict = Request {
        deterministic: true,
        ..ask
    };
    let error = fail(&force(Algorithm::Ring, None), strict);
    assert!(matches!(
        error,
        SelectError::Forced {
            algorithm: Family::Algorithm(Algorithm::Ring),
            ..
        }
    ));
    assert!(
        error.to_string().contains("left fold in rank order"),
        "{error}"
    );
}

#[test]
fn an_override_may_say_how_large_puts_are() {
    let rule = Override {
        op: Some(OpKind::AllReduce),
        bytes: 0..=u64::MAX,
        algorithm: Algorithm::Ring.into(),
        windowed: None,
        put_bytes: Some(8192),
    };
    let overrides = Overrides { rules: vec![rule] };
    let chosen = select(&request(Op::AllReduce, 1 << 20), &classical(4), &overrides).unwrap();
    assert_eq!(chosen.winner().put_bytes, 8192);
    assert_eq!(chosen.winner().pieces, (1 << 20) / 4 / 8192);
}

/// Else the two ends would cut a message differently, and call that a mismatch of theirs.
#[test]
fn a_rule_for_a_send_is_one_for_its_receive() {
    for kind in [OpKind::Send, OpKind::Recv] {
        let rules = Overrides {
            rules: vec![Override {
                op: Some(kind),
                bytes: 0..=MIB,
                algorithm: Algorithm::Direct.into(),
                windowed: None,
                put_bytes: Some(4096),
            }],
        };
        for op in [Op::Send { to: 1 }, Op::Recv { from: 0 }] {
            assert!(rules.find(op, 100).is_some(), "{kind} for {op}");
        }
        assert!(rules.find(Op::Barrier, 0).is_none());
    }
}
