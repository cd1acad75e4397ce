//! Which rows are candidates: by words, by the votes of the sources, and their neighbours.

use super::Timeline;

/// Rows with their scores, best first.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Ranked {
    /// Each once.
    pub rows: Vec<i64>,
    /// Higher is better.
    pub scores: Vec<f64>,
}

/// Adds up what each row is worth by the lists that it is in: the rows, ascending, and their sums.
fn added_up(mut worth: Vec<(i64, f64)>) -> Ranked {
    // Stable: what is added up is added in the order of the lists.
    worth.sort_by_key(|&(row, _)| row);
    let mut found = Ranked::default();
    for (row, one) in worth {
        if found.rows.last() == Some(&row) {
            *found.scores.last_mut().unwrap_or(&mut 0.0) += one;
        } else {
            found.rows.push(row);
            found.scores.push(one);
        }
    }
    found
}

/// The `most` visible rows that hold most of what some words say: by the share of the words' idf, the
/// shorter first, of equal ones the newer.
///
/// # Panics
/// A row that there is not.
pub fn best_by_idf(
    holders: &[&[i64]],
    idf: &[f64],
    visible: &[bool],
    lengths: &[i64],
    most: usize,
) -> Ranked {
    let total: f64 = idf.iter().sum();
    let mut worth = Vec::with_capacity(holders.iter().map(|rows| rows.len()).sum());
    for (rows, &idf) in holders.iter().zip(idf) {
        worth.extend(
            rows.iter()
                .filter(|&&row| visible[row as usize])
                .map(|&row| (row, idf)),
        );
    }
    let found = added_up(worth);
    let mut order: Vec<(f64, i64, i64)> = found
        .rows
        .iter()
        .zip(&found.scores)
        .map(|(&row, &sum)| (sum / total, lengths[row as usize], row))
        .collect();
    let better = |a: &(f64, i64, i64), b: &(f64, i64, i64)| {
        b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)).then(b.2.cmp(&a.2))
    };
    if order.len() > most {
        order.select_nth_unstable_by(most, better);
        order.truncate(most);
    }
    order.sort_unstable_by(better);
    Ranked {
        rows: order.iter().map(|one| one.2).collect(),
        scores: order.iter().map(|one| one.0).collect(),
    }
}

/// Joins rankings by reciprocal rank, 1 / (`constant` + place): best first, of equal ones the older.
pub fn votes(rankings: &[&[i64]], constant: f64) -> Ranked {
    let mut worth = Vec::with_capacity(rankings.iter().map(|rows| rows.len()).sum());
    for rows in rankings {
        let places = (1..).map(|place| 1.0 / (constant + f64::from(place)));
        worth.extend(rows.iter().copied().zip(places));
    }
    let found = added_up(worth);
    let mut order: Vec<(i64, f64)> = found.rows.into_iter().zip(found.scores).collect();
    order.sort_by(|a, b| b.1.total_cmp(&a.1));
    Ranked {
        rows: order.iter().map(|one| one.0).collect(),
        scores: order.iter().map(|one| one.1).collect(),
    }
}

/// The visible ones of some rows, of the neighbours of the first `most` of them, and of others, -1
/// for none: ascending, each once.
///
/// # Errors
/// The row beside one of them that there is not.
///
/// # Panics
/// Another row that there is not.
pub fn with_neighbours(
    best: &[i64],
    most: usize,
    reach: usize,
    others: &[i64],
    timeline: Timeline<'_>,
    visible: &[bool],
) -> Result<Vec<i64>, i64> {
    let mut rows = timeline.window(&best[..most.min(best.len())], reach)?;
    rows.extend_from_slice(best);
    rows.extend_from_slice(others);
    rows.retain(|&row| row >= 0 && visible[row as usize]);
    rows.sort_unstable();
    rows.dedup();
    Ok(rows)
}

/// Columns over ascending rows of what rankings say of them: of each the place, from 1, and the score,
/// NaN where it does not hold a row; behind these the votes, 0 where there are none.
pub fn joined(rows: &[i64], rankings: &[(&[i64], &[f64])], votes: &Ranked) -> Vec<f64> {
    let n = rows.len();
    let mut out = vec![f64::NAN; (2 * rankings.len() + 1) * n];
    let (columns, last) = out.split_at_mut(2 * rankings.len() * n);
    last.fill(0.0);
    for (pair, &(found, scores)) in columns.chunks_exact_mut((2 * n).max(1)).zip(rankings) {
        let (places, own) = pair.split_at_mut(n);
        for (place, at) in places_of(found, rows) {
            places[at] = place as f64 + 1.0;
            own[at] = scores[place];
        }
    }
    for (place, at) in places_of(&votes.rows, rows) {
        last[at] = votes.scores[place];
    }
    out
}

/// Where in a ranking, and where among ascending rows, those stand that are in both.
fn places_of(ranking: &[i64], rows: &[i64]) -> impl Iterator<Item = (usize, usize)> {
    let found = ranking.iter().enumerate();
    found.filter_map(|(place, row)| Some((place, rows.binary_search(row).ok()?)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_equal_shares_the_shorter_comes_first_and_then_the_newer() {
        let holders: [&[i64]; 2] = [&[0, 1, 2, 3], &[1, 4]];
        let found = best_by_idf(&holders, &[1.0, 3.0], &[true; 5], &[9, 9, 5, 5, 1], 4);
        assert_eq!(found.rows, [1, 4, 3, 2]);
        assert_eq!(found.scores, [1.0, 0.75, 0.25, 0.25]);
        let hidden = [true, false, true, true, true];
        let found = best_by_idf(&holders, &[1.0, 3.0], &hidden, &[9, 9, 5, 5, 1], 9);
        assert_eq!(found.rows, [4, 3, 2, 0]);
    }

    #[test]
    fn votes_add_up_over_the_rankings_and_equal_ones_come_in_the_order_of_the_rows() {
        let found = votes(&[&[7, 8], &[8, 7], &[3]], 60.0);
        assert_eq!(found.rows, [7, 8, 3]);
        assert_eq!(found.scores[0], 1.0 / 61.0 + 1.0 / 62.0);
        assert_eq!(found.scores[2], 1.0 / 61.0);
    }

    #[test]
    fn what_no_ranking_holds_has_no_place() {
        let by_votes = votes(&[&[4, 2]], 60.0);
        let out = joined(&[2, 3], &[(&[4, 2], &[0.9, 0.5])], &by_votes);
        assert_eq!(out[0], 2.0);
        assert_eq!(out[2], 0.5);
        assert!(out[1].is_nan() && out[3].is_nan());
        assert_eq!(out[4..], [1.0 / 62.0, 0.0]);
        assert!(joined(&[], &[(&[4], &[0.9])], &by_votes).is_empty());
    }
}
