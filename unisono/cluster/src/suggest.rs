//! "Did you mean": the name that was likely meant.

/// The candidate closest to `given`, if it is close enough to be a slip.
pub(crate) fn closest<'a>(
    given: &str,
    candidates: impl IntoIterator<Item = &'a str>,
) -> Option<&'a str> {
    let lower = given.to_lowercase();
    let allowed = (given.chars().count() / 3).clamp(1, 4);
    candidates
        .into_iter()
        .map(|candidate| {
            let distance = strsim::damerau_levenshtein(&lower, &candidate.to_lowercase());
            (distance, candidate)
        })
        .filter(|(distance, _)| *distance <= allowed)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// A help text: the likely one if there is one, else all of them.
pub(crate) fn help(given: &str, candidates: &[&str], what: &str) -> String {
    match closest(given, candidates.iter().copied()) {
        Some(candidate) => format!("did you mean `{candidate}`?"),
        None if candidates.is_empty() => format!("there are no {what} here: remove it"),
        None => format!("{what}: {}", candidates.join(", ")),
    }
}
