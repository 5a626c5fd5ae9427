//! Both sides played against each other, right and wrong, and garbage from either side.

use super::*;
use proptest::prelude::*;

fn rank(rank: u32, secret: u8) -> Credentials {
    Credentials {
        secret: Secret::from_bytes([secret; 32]),
        rank,
        prover: Prover::random().unwrap(),
    }
}

/// Plays a whole handshake and returns what each side ends with.
fn play(
    client: &Credentials,
    server: &Credentials,
    purpose: Purpose,
    target: u32,
    keys: Keys<'_>,
) -> (Step, Option<Step>) {
    let (mut a, hello) = Handshake::client(client, purpose, target).unwrap();
    let mut b = Handshake::server();
    assert_eq!(hello.len(), b.wanted());
    let answer = match b.advance(&hello, server, keys).unwrap() {
        Step::Continue(answer) => answer,
        Step::Later { send } | Step::Refuse { send, .. } if !send.is_empty() => {
            return (a.advance(&send, client, keys).unwrap(), None);
        }
        other => return (other, None),
    };
    assert_eq!(answer.len(), a.wanted());
    let end = a.advance(&answer, client, keys).unwrap();
    let Step::Done { send, .. } = &end else {
        return (end, None);
    };
    assert_eq!(send.len(), b.wanted());
    let server_end = b.advance(send, server, keys).unwrap();
    (end, Some(server_end))
}

fn kind(step: &Step) -> Option<StrayKind> {
    match step {
        Step::Refuse { kind, .. } => Some(*kind),
        _ => None,
    }
}

#[test]
fn ranks_that_know_each_other_open() {
    let (a, b) = (rank(3, 1), rank(5, 1));
    let keys = |r: u32| {
        [(3, a.prover.public_key()), (5, b.prover.public_key())]
            .into_iter()
            .find(|k| k.0 == r)
            .map(|k| k.1)
    };
    let (client, server) = play(&a, &b, Purpose::Overlay, 5, &keys);
    assert!(
        matches!(
            client,
            Step::Done {
                purpose: Purpose::Overlay,
                rank: 5,
                ..
            }
        ),
        "{client:?}"
    );
    assert!(
        matches!(
            server,
            Some(Step::Done {
                purpose: Purpose::Overlay,
                rank: 3,
                ..
            })
        ),
        "{server:?}"
    );
}

#[test]
fn the_secret_alone_opens_first_contact_only() {
    let (a, root) = (rank(3, 1), rank(NO_RANK, 1));
    let (client, server) = play(&a, &root, Purpose::Meet, NO_RANK, &|_| None);
    assert!(
        matches!(client, Step::Done { rank: NO_RANK, .. })
            && matches!(server, Some(Step::Done { rank: 3, .. }))
    );
    let (client, _) = play(&a, &root, Purpose::Direct, NO_RANK, &|_| None);
    assert!(matches!(client, Step::Later { .. }), "{client:?}");
    let other = rank(5, 1);
    assert_eq!(
        kind(&play(&a, &other, Purpose::Meet, 5, &|_| None).0),
        Some(StrayKind::WrongRank)
    );
}

#[test]
fn a_wrong_secret_is_refused_by_either_side() {
    let (a, b) = (rank(3, 1), rank(NO_RANK, 2));
    assert_eq!(
        kind(&play(&a, &b, Purpose::Meet, NO_RANK, &|_| None).0),
        Some(StrayKind::WrongSecret)
    );
    // A server that repeats the job's id and does not know the secret.
    let (mut client, hello) = Handshake::client(&a, Purpose::Meet, NO_RANK).unwrap();
    let mut faked = server_head(&b, GOOD, &[7; 32]);
    faked.extend_from_slice(&b.secret.mac("server", &[&hello, &faked]));
    faked.extend_from_slice(&NO_SIGNATURE);
    assert_eq!(
        kind(&client.advance(&faked, &a, &|_| None).unwrap()),
        Some(StrayKind::WrongSecret)
    );
    // A client that saw a job's id and repeats it.
    let mut server = Handshake::server();
    assert!(matches!(
        server.advance(&hello, &a_root(), &|_| None).unwrap(),
        Step::Continue(_)
    ));
    assert_eq!(
        kind(&server.advance(&[0; PROOF], &a_root(), &|_| None).unwrap()),
        Some(StrayKind::WrongSecret)
    );
}

fn a_root() -> Credentials {
    rank(NO_RANK, 1)
}

#[test]
fn a_rank_cannot_pose_as_another() {
    let (a, b) = (rank(3, 1), rank(5, 1));
    let stranger = rank(3, 1);
    let keys = |r: u32| {
        [(3, a.prover.public_key()), (5, b.prover.public_key())]
            .into_iter()
            .find(|k| k.0 == r)
            .map(|k| k.1)
    };
    let (_, server) = play(&stranger, &b, Purpose::Direct, 5, &keys);
    assert_eq!(server.as_ref().and_then(kind), Some(StrayKind::WrongRank));
    let posing = rank(5, 1);
    assert_eq!(
        kind(&play(&a, &posing, Purpose::Direct, 5, &keys).0),
        Some(StrayKind::WrongRank)
    );
    assert_eq!(
        kind(&play(&a, &b, Purpose::Direct, 6, &keys).0),
        Some(StrayKind::WrongRank)
    );
}

#[test]
fn another_version_is_told_so() {
    let a = rank(3, 1);
    let (mut client, mut hello) = Handshake::client(&a, Purpose::Meet, NO_RANK).unwrap();
    hello[8] = 2;
    let step = Handshake::server()
        .advance(&hello, &a_root(), &|_| None)
        .unwrap();
    let Step::Refuse {
        send,
        kind: StrayKind::WrongVersion,
        why,
    } = step
    else {
        panic!("{step:?}")
    };
    assert!(why.contains("version 2"), "{why}");
    assert_eq!(
        kind(&client.advance(&send, &a, &|_| None).unwrap()),
        Some(StrayKind::WrongVersion)
    );
}

proptest! {
    #[test]
    fn garbage_never_opens(bytes in proptest::collection::vec(any::<u8>(), 0..200), with_magic: bool, server: bool) {
        let me = rank(3, 1);
        let bytes = if with_magic { [&MAGIC[..], &PROTOCOL.to_le_bytes(), &bytes].concat() } else { bytes };
        let mut side = if server { Handshake::server() } else { Handshake::client(&me, Purpose::Meet, NO_RANK).unwrap().0 };
        let step = side.advance(&bytes, &me, &|_| None).unwrap();
        let opened = matches!(step, Step::Done { .. });
        prop_assert!(!opened);
    }

    #[test]
    fn a_changed_byte_never_opens(at in 0..SERVER_HEAD + PROOF - 64, bit in 0..8u8) {
        let (a, root) = (rank(3, 1), a_root());
        let (mut client, hello) = Handshake::client(&a, Purpose::Meet, NO_RANK).unwrap();
        let Step::Continue(mut answer) = Handshake::server().advance(&hello, &root, &|_| None).unwrap() else { panic!() };
        answer[at] ^= 1 << bit;
        let step = client.advance(&answer, &a, &|_| None).unwrap();
        let opened = matches!(step, Step::Done { .. });
        prop_assert!(!opened);
    }
}
