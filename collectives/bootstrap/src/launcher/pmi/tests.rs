//! Against launchers that are threads of the test.

use std::io::{BufRead, BufReader, Write};
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Barrier, Mutex};
use std::time::{Duration, Instant};

use proptest::prelude::*;

use super::*;
use crate::launcher::exchange;
use crate::options::{Options, RootSpec};
use crate::wait::AbortFlag;

fn wait() -> Wait {
    Wait::at_most(Duration::from_secs(20))
}

/// Serves one rank as hydra does: the store and the barrier are all ranks'.
fn serve(socket: UnixStream, store: &Mutex<Vec<(String, String)>>, barrier: &Barrier) {
    let mut lines = BufReader::new(socket.try_clone().unwrap()).lines();
    let mut out = socket;
    while let Some(Ok(line)) = lines.next() {
        let part = |key| {
            find(&line, key)
                .unwrap_or_else(|| panic!("{line} has no {key}"))
                .to_owned()
        };
        let answer = match part("cmd").as_str() {
            "init" => "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0".to_owned(),
            "get_maxes" => "cmd=maxes kvsname_max=256 keylen_max=64 vallen_max=1024".to_owned(),
            "get_my_kvsname" => "cmd=my_kvsname kvsname=kvs_7_0".to_owned(),
            "put" => {
                assert_eq!(part("kvsname"), "kvs_7_0");
                store.lock().unwrap().push((part("key"), part("value")));
                "cmd=put_result rc=0 msg=success".to_owned()
            }
            "barrier_in" => {
                barrier.wait();
                "cmd=barrier_out".to_owned()
            }
            "get" => {
                let (store, key) = (store.lock().unwrap(), part("key"));
                match store.iter().find(|(known, _)| *known == key) {
                    Some((_, value)) => format!("cmd=get_result rc=0 msg=success value={value}"),
                    None => format!("cmd=get_result rc=-1 msg=key_{key}_not_found value=unknown"),
                }
            }
            other => panic!("nobody asked for {other}"),
        };
        // In two parts, as a network may deliver it.
        let (first, second) = answer.split_at(answer.len() / 2);
        for part in [first, second, "\n"] {
            if out.write_all(part.as_bytes()).is_err() {
                return;
            }
        }
    }
}

/// A client whose launcher answers each line by the next of these texts; the line after them it reads, and
/// hangs up after a while.
fn scripted(answers: &'static [&'static str], end: Duration) -> UnixStream {
    let (ours, theirs) = UnixStream::pair().unwrap();
    std::thread::spawn(move || {
        let mut lines = BufReader::new(theirs.try_clone().unwrap()).lines();
        for answer in answers {
            if lines.next().is_none() || (&theirs).write_all(answer.as_bytes()).is_err() {
                return;
            }
        }
        let _ = lines.next();
        std::thread::sleep(end);
    });
    ours
}

fn error(answers: &'static [&'static str], end: Duration, wait: &Wait) -> String {
    let socket = scripted(answers, end);
    match Pmi::connect(socket.as_raw_fd(), wait) {
        Ok(_) => panic!("{answers:?} were believed"),
        Err(error) => error.to_string(),
    }
}

#[test]
fn every_rank_gets_the_id_of_rank_0() {
    const RANKS: u32 = 4;
    let (store, barrier) = (Arc::default(), Arc::new(Barrier::new(RANKS as usize)));
    let ranks: Vec<_> = (0..RANKS)
        .map(|rank| {
            let (ours, theirs) = UnixStream::pair().unwrap();
            let (store, barrier) = (Arc::clone(&store), Arc::clone(&barrier));
            std::thread::spawn(move || serve(theirs, &store, &barrier));
            std::thread::spawn(move || {
                let mut options = Options::new(rank, RANKS, RootSpec::Node);
                options.wait = wait();
                options.interfaces = crate::InterfaceFilter::loopback();
                let mut pmi = Pmi::connect(ours.as_raw_fd(), &options.wait).unwrap();
                let ids = ["one", "two"].map(|key| exchange(&mut pmi, key, &options).unwrap());
                if rank == 0 {
                    ids.iter().for_each(crate::UniqueId::discard);
                }
                assert!(pmi.get("three", &options.wait).is_err(), "nobody put it");
                ids
            })
        })
        .collect();
    let ids: Vec<_> = ranks.into_iter().map(|rank| rank.join().unwrap()).collect();
    assert!(ids.iter().all(|theirs| *theirs == ids[0]));
    assert_ne!(ids[0][0], ids[0][1], "each meeting has its own");
}

#[test]
fn what_is_no_answer_is_an_error_with_what_was_said() {
    let now = Duration::ZERO;
    for (answers, says) in [
        (&[], "closed the connection"),
        (&["cmd=response_to_init pmi_version=2 rc=-1\n"], "rc=-1"),
        (&["hello\n"], "was answered by `hello`"),
        (
            &["cmd=response_to_init rc=0\n", "cmd=maxes\n"],
            "without `vallen_max`",
        ),
        (
            &["cmd=response_to_init rc=0\n", "cmd=maxes vallen_max=many\n"],
            "`vallen_max=many` is no number",
        ),
        (
            &[
                "cmd=response_to_init rc=0\n",
                "cmd=maxes vallen_max=9\n",
                "cmd=my_kvsname\n",
            ],
            "without `kvsname`",
        ),
    ] as [(&'static [&'static str], &str); 6]
    {
        let text = error(answers, now, &wait());
        assert!(text.contains(says), "{answers:?}: {text}");
        assert!(text.contains("UNISONO_SECRET_FILE"), "what to do: {text}");
    }
}

#[test]
fn a_line_without_an_end_is_bounded() {
    static LONG: std::sync::LazyLock<String> = std::sync::LazyLock::new(|| "x".repeat(3 * LINE));
    static ANSWERS: std::sync::LazyLock<[&str; 1]> = std::sync::LazyLock::new(|| [LONG.as_str()]);
    let text = error(&*ANSWERS, Duration::from_secs(5), &wait());
    assert!(text.contains("a line of more than 8192 bytes"), "{text}");
}

#[test]
fn silence_ends_at_the_deadline_and_at_an_abort() {
    let since = Instant::now();
    let silent = Duration::from_secs(30);
    let text = error(&[], silent, &Wait::at_most(Duration::from_millis(100)));
    assert!(text.contains("no answer in time"), "{text}");
    let abort = AbortFlag::new();
    abort.raise();
    let text = error(
        &[],
        silent,
        &Wait::with_abort(Duration::from_secs(60), &abort),
    );
    assert!(text.contains("PMI"), "{text}");
    assert!(since.elapsed() < Duration::from_secs(10));
}

#[test]
fn a_value_that_does_not_fit_is_not_put_and_not_shown() {
    let socket = scripted(
        &[
            "cmd=response_to_init rc=0\n",
            "cmd=maxes vallen_max=9\n",
            "cmd=my_kvsname kvsname=a\n",
            "cmd=put_result rc=-1 msg=full\n",
        ],
        Duration::from_secs(5),
    );
    let mut pmi = Pmi::connect(socket.as_raw_fd(), &wait()).unwrap();
    let long = pmi
        .put("key", "secret-secret", &wait())
        .unwrap_err()
        .to_string();
    assert!(long.contains("less than 9 bytes"), "{long}");
    let refused = pmi.put("key", "secret", &wait()).unwrap_err().to_string();
    assert!(
        !refused.contains("key=secret") && !refused.contains("value="),
        "{refused}"
    );
}

#[test]
fn pairs_are_found_by_their_whole_key() {
    let line = "cmd=maxes kvsname_max=256 keylen_max=64 vallen_max=1024";
    assert_eq!(find(line, "cmd"), Some("maxes"));
    assert_eq!(find(line, "vallen"), None);
    let variables =
        |text: &'static str| move |name: &str| (name == "PMI_FD").then(|| text.to_owned());
    assert_eq!(descriptor(&variables(" 7 ")), Some(7));
    assert_eq!(descriptor(&variables("-1")), None);
    assert_eq!(descriptor(&variables("seven")), None);
}

/// What a launcher answers if all goes well: to `init`, to the two questions after it, to `put`, to the barrier and
/// to `get`.
const ANSWERS: &str = "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0\n\
                       cmd=maxes kvsname_max=256 keylen_max=64 vallen_max=1024\n\
                       cmd=my_kvsname kvsname=kvs_7_0\n\
                       cmd=put_result rc=0 msg=success\n\
                       cmd=barrier_out\n\
                       cmd=get_result rc=0 msg=success value=text\n";

/// All calls of a rank, against a launcher that has said these bytes and hung up.
fn calls(said: &[u8]) -> Result<String> {
    let (ours, theirs) = UnixStream::pair().unwrap();
    (&theirs).write_all(said).unwrap();
    theirs.shutdown(std::net::Shutdown::Write).unwrap();
    let wait = wait();
    let mut pmi = Pmi::connect(ours.as_raw_fd(), &wait)?;
    pmi.put("key", "text", &wait)?;
    pmi.fence(&wait)?;
    pmi.get("key", &wait)
}

#[test]
fn the_answers_that_are_broken_below_are_right_when_whole() {
    assert_eq!(calls(ANSWERS.as_bytes()).unwrap(), "text");
}

proptest! {
    #[test]
    fn no_answer_breaks_it(cut: prop::sample::Index, drop in 0..40usize, put in prop::collection::vec(any::<u8>(), 0..40)) {
        let at = cut.index(ANSWERS.len());
        let rest = &ANSWERS.as_bytes()[(at + drop).min(ANSWERS.len())..];
        let said = [&ANSWERS.as_bytes()[..at], &put, rest].concat();
        if let Err(error) = calls(&said) {
            prop_assert!(error.to_string().contains("PMI"), "{}", error);
        }
    }

    #[test]
    fn no_launcher_breaks_it(said in prop::collection::vec(any::<u8>(), 0..2000)) {
        prop_assert!(calls(&said).is_err());
    }
}
