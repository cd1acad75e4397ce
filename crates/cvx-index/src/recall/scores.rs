//! From columns to scores: scaling, the weighted sum, and the order of what it is of.

/// What a sum of weighted columns is made of.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Weighed {
    /// What each column contributed to each row, column by column; 0 where it is not known.
    pub shares: Vec<f64>,
    /// What all shares of a row are multiplied by.
    pub by: Vec<f64>,
    /// The scores.
    pub total: Vec<f64>,
}

/// Columns of one length scaled to [0, 1] by their least and greatest finite value, one after the
/// other; 0 for what is not finite, and where all values are equal.
pub fn stretched(columns: &[&[f64]]) -> Vec<f64> {
    let mut out = Vec::with_capacity(columns.iter().map(|column| column.len()).sum());
    for column in columns {
        let finite = column.iter().copied().filter(|value| value.is_finite());
        let (low, high) = finite.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| {
            (low.min(value), high.max(value))
        });
        let reach = high - low;
        out.extend(column.iter().map(|&value| match value.is_finite() {
            true if reach > 0.0 => (value - low) / reach,
            _ => 0.0,
        }));
    }
    out
}

/// Adds columns up by their weights, in their order.
///
/// Trust multiplies a sum that is not below 0 and its shares, and 2 - trust one below.
///
/// # Panics
/// Columns of several lengths, or not one weight for each.
pub fn weighed(columns: &[&[f64]], weights: &[f64], trust: Option<&[f64]>) -> Weighed {
    let n = columns.first().map_or(0, |column| column.len());
    let (mut shares, mut total) = (Vec::with_capacity(columns.len() * n), vec![0.0; n]);
    assert_eq!(columns.len(), weights.len(), "one weight for each column");
    for (column, &weight) in columns.iter().zip(weights) {
        assert_eq!(column.len(), n, "columns of one length");
        for (&value, sum) in column.iter().zip(&mut total) {
            let share = value * weight;
            shares.push(if share.is_nan() { 0.0 } else { share });
            *sum += shares[shares.len() - 1];
        }
    }
    let mut by = vec![1.0; n];
    if let Some(trust) = trust {
        for ((by, sum), &trust) in by.iter_mut().zip(&mut total).zip(trust) {
            *by = if *sum >= 0.0 { trust } else { 2.0 - trust };
            *sum *= *by;
        }
    }
    Weighed { shares, by, total }
}

/// Columns that decide between equal scores, the more telling first.
#[derive(Clone, Copy, Debug)]
pub struct Ties<'a> {
    /// How much each row matters, NaN for not known, which is 0.
    pub salience: &'a [f64],
    /// When it happened.
    pub time: &'a [f64],
    /// What the sources say of it together.
    pub votes: &'a [f64],
    /// The number of its event; the lower comes first.
    pub events: &'a [i64],
}

/// Some places of a table by their scores, highest first; such as differ only behind `decimals`
/// places are equal, and the columns of `ties` decide.
///
/// # Panics
/// A place that there is not.
pub fn best(scores: &[f64], places: &[i64], ties: Ties<'_>, decimals: i32) -> Vec<i64> {
    let unit = 10f64.powi(decimals);
    // With 0 added, -0 and 0 are one.
    let higher = |a: f64, b: f64| (b + 0.0).total_cmp(&(a + 0.0));
    let rounded = |score: f64| (score * unit).round_ties_even() / unit;
    let mut order: Vec<(f64, usize)> = places
        .iter()
        .map(|&place| (rounded(scores[place as usize]), place as usize))
        .collect();
    let matters = |at: usize| match ties.salience[at] {
        known if known.is_nan() => 0.0,
        known => known,
    };
    order.sort_by(|&(one, a), &(other, b)| {
        higher(one, other)
            .then_with(|| higher(matters(a), matters(b)))
            .then_with(|| higher(ties.time[a], ties.time[b]))
            .then_with(|| higher(ties.votes[a], ties.votes[b]))
            .then_with(|| ties.events[a].cmp(&ties.events[b]))
    });
    order.into_iter().map(|(_, place)| place as i64).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_column_reaches_from_0_to_1_and_what_is_not_known_is_0() {
        let columns: [&[f64]; 3] = [&[2.0, 4.0, 3.0], &[5.0, 5.0, 5.0], &[1.0, f64::NAN, 3.0]];
        let out = stretched(&columns);
        assert_eq!(out, [0.0, 1.0, 0.5, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0]);
    }

    #[test]
    fn shares_add_up_and_trust_never_raises_a_score() {
        let columns: [&[f64]; 2] = [&[1.0, f64::NAN, -4.0], &[2.0, 3.0, 0.0]];
        let found = weighed(&columns, &[1.0, 0.5], Some(&[0.5, 1.0, 0.5]));
        assert_eq!(found.shares, [1.0, 0.0, -4.0, 1.0, 1.5, 0.0]);
        assert_eq!(found.by, [0.5, 1.0, 1.5]);
        assert_eq!(found.total, [1.0, 1.5, -6.0]);
        assert_eq!(weighed(&[], &[], None), Weighed::default());
    }

    #[test]
    fn equal_scores_are_ordered_by_what_matters_then_the_newer_the_voted_for_and_the_older_event() {
        let ties = Ties {
            salience: &[f64::NAN, 0.0, 0.5, f64::NAN, 0.0],
            time: &[1.0, 2.0, 0.0, 2.0, 2.0],
            votes: &[0.0, 0.1, 0.0, 0.2, 0.1],
            events: &[1, 7, 3, 4, 5],
        };
        let scores = [0.5, 0.5, 0.5 + 1e-12, 0.5, 0.5];
        assert_eq!(best(&scores, &[0, 1, 2, 3, 4], ties, 9), [2, 3, 4, 1, 0]);
        assert_eq!(
            best(&[-1e-12, 0.0, 1.0, -0.0, 0.0], &[0, 1, 3], ties, 9),
            [3, 1, 0]
        );
    }
}
