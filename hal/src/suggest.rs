//! "Did you mean": the nearest of some names.

/// The name nearest to `word`, if one is near enough to be meant.
pub(crate) fn closest<'a>(word: &str, names: &[&'a str]) -> Option<&'a str> {
    let most = word.chars().count().max(3) / 3;
    let distances = names.iter().map(|name| (distance(word, name), *name));
    let near = distances.filter(|(d, _)| *d <= most).min()?;
    Some(near.1)
}

/// Letters to insert, delete or replace to make one word of the other.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, from) in a.chars().enumerate() {
        let mut corner = i;
        row[0] = i + 1;
        for (j, to) in b.iter().enumerate() {
            let replaced = corner + usize::from(from != *to);
            corner = row[j + 1];
            row[j + 1] = replaced.min(corner + 1).min(row[j] + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_words_only() {
        let names = ["connections", "port_range", "buffer"];
        assert_eq!(closest("conections", &names), Some("connections"));
        assert_eq!(closest("port-range", &names), Some("port_range"));
        assert_eq!(closest("bufer", &names), Some("buffer"));
        assert_eq!(closest("zebra", &names), None);
        assert_eq!(closest("", &[]), None);
    }
}
