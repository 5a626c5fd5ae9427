//! Strangers at the ports of a job that runs: garbage, silence, port scans, wrong secrets. The job
//! finishes with right results, counts what it refused, and holds no more for it.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use unisono::bootstrap::{Bootstrap, Options, RootSpec, Secret, SecretSource, Wait};
use unisono::{Communicator, ReduceOp};
use unisono_tests::{
    Collective, Count, Held, Job, Rank, Rng, Try, free_address, resident_bytes, watchdog,
};

const LIMIT: Duration = Duration::from_secs(400);
const RANKS: u32 = 4;
/// Connections to a job that runs, half of them at its control ports and half at its links'; and to
/// the port at which one comes together.
const RUNNING: Count = Count::new(300, 20_000);
const JOINING: Count = Count::new(100, 10_000);

/// What a stranger does.
const KINDS: [&str; 7] = [
    "silence",
    "closing at once",
    "garbage",
    "another protocol",
    "half a greeting",
    "another job's greeting",
    "another job's link",
];

/// Strangers that keep their connections open.
struct Strangers {
    rng: Rng,
    open: Vec<TcpStream>,
    made: u64,
    unheard: u64,
}

impl Strangers {
    fn new() -> Self {
        Self {
            rng: Rng::new(Rng::seed()),
            open: Vec::new(),
            made: 0,
            unheard: 0,
        }
    }

    /// One more, at this address.
    fn come(&mut self, address: SocketAddr) {
        let kind = KINDS[self.made as usize % KINDS.len()];
        self.made += 1;
        // A full backlog is the system's way to refuse.
        let Ok(mut stream) = TcpStream::connect_timeout(&address, Duration::from_millis(200))
        else {
            self.unheard += 1;
            return;
        };
        let mut noise = vec![0; 64 + self.rng.below(4000) as usize];
        noise.fill_with(|| self.rng.next_u64() as u8);
        let hello = |magic: &[u8], length: usize| [magic, &noise[..length]].concat();
        let _ = stream.set_write_timeout(Some(Duration::from_millis(200)));
        let _ = match kind {
            "garbage" => stream.write_all(&noise),
            "another protocol" => stream.write_all(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"),
            "half a greeting" => stream.write_all(b"unisono\x01\x01"),
            "another job's greeting" => stream.write_all(&hello(b"unisono\x01\x01\0\x01", 56)),
            "another job's link" => stream.write_all(&hello(b"UNISOTCP\x01\0", 64)),
            _ => Ok(()),
        };
        match kind {
            "closing at once" => {}
            // Some listen to what is said to them.
            "another job's greeting" => {
                let _ = stream.set_read_timeout(Some(Duration::from_millis(1)));
                let _ = stream.read(&mut [0; 256]);
            }
            _ => self.open.push(stream),
        }
        if self.open.len() > 500 {
            self.open.remove(0);
        }
    }
}

/// A rank of another job that was given this one's root by mistake.
fn lost(root: &str) {
    let mut lost = Options::new(1, 2, RootSpec::Address(root.to_owned()));
    lost.secret = SecretSource::Given(Secret::random().expect("a secret"));
    lost.wait = Wait::at_most(Duration::from_millis(100));
    assert!(Bootstrap::join(lost).is_err(), "a stranger was let in");
}

/// Where this process listens: its sockets, looked up in the system's table.
fn listening() -> Vec<SocketAddr> {
    let fds = std::fs::read_dir("/proc/self/fd")
        .into_iter()
        .flatten()
        .flatten();
    let links = fds.filter_map(|fd| std::fs::read_link(fd.path()).ok());
    let own: Vec<String> = links
        .filter_map(|link| {
            Some(
                link.to_str()?
                    .strip_prefix("socket:[")?
                    .strip_suffix(']')?
                    .to_owned(),
            )
        })
        .collect();
    let mut ports = Vec::new();
    for table in ["/proc/self/net/tcp", "/proc/self/net/tcp6"] {
        let table = std::fs::read_to_string(table).unwrap_or_default();
        for line in table.lines().skip(1) {
            let fields: Vec<&str> = line.split_ascii_whitespace().collect();
            // Local address, …, state (0A listens), …, inode.
            let (Some(local), Some(&"0A"), Some(inode)) =
                (fields.get(1), fields.get(3), fields.get(9))
            else {
                continue;
            };
            let port = local
                .rsplit(':')
                .next()
                .and_then(|hex| u16::from_str_radix(hex, 16).ok());
            if own.iter().any(|fd| fd == inode) {
                ports.extend(port);
            }
        }
    }
    ports.sort_unstable();
    ports.dedup();
    ports
        .into_iter()
        .map(|port| SocketAddr::from(([127, 0, 0, 1], port)))
        .collect()
}

fn round(world: &Communicator, salt: u64) {
    for (collective, count) in [
        (Collective::AllReduce, 50_000),
        (Collective::AllGather, 3),
        (Collective::AllReduce, 1),
    ] {
        let attempt = Try {
            collective,
            count,
            op: ReduceOp::Sum.into(),
            in_place: true,
            salt,
        };
        let right = attempt
            .run::<i32>(world)
            .unwrap_or_else(|error| panic!("round {salt}: {error}"));
        right.unwrap_or_else(|wrong| panic!("round {salt}: {wrong}"));
    }
}

/// One rank: collectives until rank 0 is told that it is enough.
fn work(rank: &Rank) {
    let told = rank.told();
    let options = |options: &mut unisono::InitOptions| {
        options.without_links = vec!["shm".to_owned()];
        options.timeouts.init = Duration::from_secs(120);
    };
    if rank.rank == RANKS - 1 {
        // Comes when the strangers have been at the root.
        assert_eq!(told.recv().as_deref(), Ok("come"));
    }
    let world = rank.init(options);
    let met = world.bootstrap_report().strays.total();
    round(&world, 0);
    let addresses: Vec<_> = listening().iter().map(ToString::to_string).collect();
    rank.say(&format!("listens {}", addresses.join(" ")));
    let (mut most, before) = (Held::now(), Held::now());
    let resident = resident_bytes();
    for salt in 1.. {
        round(&world, salt);
        let mut enough = [u8::from(rank.rank == 0 && told.try_recv().is_ok())];
        world.broadcast(&mut enough, 0).expect("broadcast");
        let now = Held::now();
        most.fds = most.fds.max(now.fds);
        if enough == [1] {
            rank.say(&format!("rounds {salt}"));
            break;
        }
    }
    // New links are made while strangers still hold theirs.
    let copy = world.duplicate().expect("duplicate");
    round(&copy, 7);
    let grown = resident_bytes().saturating_sub(resident);
    assert!(grown < 64 << 20, "{grown} bytes more");
    // Both doors keep a bounded number of strangers.
    assert!(most.fds < before.fds + 600, "{before:?} became {most:?}");
    drop(copy);
    rank.say(&format!("refused {} {}", met, world.strays().total()));
    rank.say(&format!("most {} {}", most.fds - before.fds, grown >> 10));
    world.finalize().expect("finalize");
}

#[test]
fn strangers_cost_a_running_job_nothing() {
    let _limit = watchdog("strangers_cost_a_running_job_nothing", LIMIT);
    let root = free_address();
    let mut job = Job::new("strangers_cost_a_running_job_nothing", RANKS)
        .limit(LIMIT)
        .root(
            &root.to_string(),
            "this job's secret, thirty-two bytes or more",
        )
        .start(|rank| work(&rank));

    let mut at_root = Strangers::new();
    let end = Instant::now() + Duration::from_secs(20);
    while TcpStream::connect(root).is_err() && Instant::now() < end {
        std::thread::sleep(Duration::from_millis(5));
    }
    for _ in 0..JOINING.get() {
        at_root.come(root);
        if at_root.made.is_multiple_of(50) {
            lost(&root.to_string());
        }
    }
    job.tell(RANKS - 1, "come");

    let addresses: Vec<SocketAddr> = (0..RANKS)
        .flat_map(|rank| {
            let line = job
                .wait_for(rank, "listens")
                .unwrap_or_else(|| panic!("rank {rank} does not listen"));
            line.split(' ')
                .skip(1)
                .map(|a| a.parse().expect("an address"))
                .collect::<Vec<_>>()
        })
        .collect();
    // Each rank's control port and its links' port.
    assert!(addresses.len() >= 2 * RANKS as usize, "{addresses:?}");
    let mut running = Strangers::new();
    for at in 0..RUNNING.get() as usize {
        running.come(addresses[at % addresses.len()]);
    }
    job.tell(0, "enough");

    let (mut met, mut refused, mut fds, mut rounds) = (0, 0, 0, 0);
    for exit in job.succeed() {
        let numbers = |key| {
            exit.answer(key)
                .split(' ')
                .map(|n| n.parse::<u64>().expect("a number"))
                .collect::<Vec<_>>()
        };
        met += numbers("refused")[0];
        refused += numbers("refused")[1];
        fds = fds.max(numbers("most")[0]);
        rounds = numbers("rounds")[0];
    }
    println!(
        "soak: {} strangers at the root and {} at {} ports of a running job of {RANKS} over tcp ({} unheard): \
         {rounds} rounds of right results; {met} refused while it met, {refused} at control ports; at most {fds} \
         descriptors more",
        at_root.made,
        running.made,
        addresses.len(),
        running.unheard
    );
    assert!(
        met > at_root.made / 2,
        "{met} of {} were counted",
        at_root.made
    );
    assert!(
        refused > running.made / 8,
        "{refused} of {} were counted",
        running.made
    );
}
