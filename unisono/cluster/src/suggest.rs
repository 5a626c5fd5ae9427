//! "Did you mean": the name that was likely meant.

/// Shorter beginnings of a name say too little about it.
const MIN_PREFIX: usize = 3;

/// The candidate that was likely meant: the closest one, if it is close enough to be a slip, or the
/// only one that begins so.
pub(crate) fn closest<'a>(
    given: &str,
    candidates: impl IntoIterator<Item = &'a str>,
) -> Option<&'a str> {
    let lower = given.to_lowercase();
    let allowed = (given.chars().count() / 3).clamp(1, 4);
    let candidates: Vec<&str> = candidates.into_iter().collect();
    let slip = candidates
        .iter()
        .map(|candidate| {
            let distance = strsim::damerau_levenshtein(&lower, &candidate.to_lowercase());
            (distance, *candidate)
        })
        .filter(|(distance, _)| *distance <= allowed)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate);
    slip.or_else(|| {
        let begins = |candidate: &&&str| lower.len() >= MIN_PREFIX && candidate.starts_with(&lower);
        let mut beginning = candidates.iter().filter(begins);
        let first = beginning.next()?;
        beginning.next().is_none().then_some(*first)
    })
}

/// A help text: the likely one if there is one, else all of them.
pub(crate) fn help(given: &str, candidates: &[&str], what: &str) -> String {
    match closest(given, candidates.iter().copied()) {
        Some(candidate) => format!("did you mean `{candidate}`?"),
        None if candidates.is_empty() => format!("there are no {what} here: remove it"),
        None => format!("{what}: {}", candidates.join(", ")),
    }
}
