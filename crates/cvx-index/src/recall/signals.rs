//! Columns that say how well candidates fit: by meaning, by words, by their sessions.

use super::scores::stretched;

const K1: f64 = 1.2;
const B: f64 = 0.75;
/// Neighbours on either side of the narrower window.
const NARROW: usize = 1;

/// Columns that compare vectors, in order.
pub const DENSE: [&str; 5] = [
    "dense",
    "dense_window",
    "dense_wide",
    "dense_pair",
    "dense_neighbour",
];
/// Columns that compare words, in order.
pub const WORDS: [&str; 8] = [
    "coverage_store",
    "bm25",
    "bm25_window",
    "bm25_wide",
    "coverage",
    "coverage_window",
    "coverage_pair",
    "asked_before",
];
/// Columns that say how good the session of a candidate is, in order.
pub const SESSION: [&str; 3] = ["session_best", "session_mean", "session_coverage"];

const COVERAGE: usize = 4;

/// What speaks for each candidate.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Signals {
    /// One column after the other.
    pub columns: Vec<f64>,
    /// How good each is by itself, in [0, 1]: its similarity among the others' and its coverage.
    pub content: Vec<f64>,
}

/// The candidates with their neighbours in time, each once.
#[derive(Clone, Debug)]
pub struct Neighbourhood {
    /// All of them, ascending.
    pub near: Vec<i64>,
    /// A candidate after the other: where in `near` its neighbours and itself, in the middle, stand;
    /// the place behind the last one for none.
    pub places: Vec<i64>,
    width: usize,
}

impl Neighbourhood {
    /// Joins windows of `width` rows, -1 for none.
    pub fn of(windows: &[i64], width: usize) -> Self {
        let mut order: Vec<(i64, u32)> = windows.iter().copied().zip(0..).collect();
        order.sort_unstable();
        let mut places = vec![0; windows.len()];
        let mut near: Vec<i64> = Vec::with_capacity(windows.len());
        for (row, at) in order.into_iter().filter(|&(row, _)| row >= 0) {
            if near.last() != Some(&row) {
                near.push(row);
            }
            places[at as usize] = near.len() as i64 - 1;
        }
        for (place, &row) in places.iter_mut().zip(windows) {
            if row < 0 {
                *place = near.len() as i64;
            }
        }
        Neighbourhood {
            near,
            places,
            width,
        }
    }

    /// What [`of`](Self::of) made, out of its parts.
    pub fn from_parts(near: Vec<i64>, places: Vec<i64>, width: usize) -> Self {
        Neighbourhood {
            near,
            places,
            width,
        }
    }

    /// Which of these rows are in lists that are sorted: list by list, 1 or 0.
    pub fn holds(&self, holders: &[&[i64]]) -> Vec<f64> {
        let mut out = vec![0.0; holders.len() * self.near.len()];
        for (held, rows) in out.chunks_exact_mut(self.near.len().max(1)).zip(holders) {
            let mut rest = rows.iter().peekable();
            for (one, row) in held.iter_mut().zip(&self.near) {
                while rest.next_if(|&&other| other < *row).is_some() {}
                if rest.peek() == Some(&row) {
                    *one = 1.0;
                }
            }
        }
        out
    }

    /// All columns: those of [`DENSE`], of [`WORDS`] and of [`SESSION`].
    ///
    /// `holders` are the rows of each word of the question, ascending, and `idf` what it says;
    /// `asks`, `lengths` and `sessions` are by row. A session is as good as what its candidates say
    /// themselves, in equal parts of meaning and of words.
    ///
    /// # Panics
    /// Not one similarity for each near row or one idf for each word, or a row that there is not.
    pub fn signals(
        &self,
        similarity: &[f64],
        holders: &[&[i64]],
        idf: &[f64],
        asks: &[bool],
        lengths: &[i64],
        sessions: &[i64],
    ) -> Signals {
        let (n, size) = (self.len(), self.near.len());
        let mut columns = self.dense(similarity, asks);
        let (held, known): (_, Vec<bool>) = (
            self.holds(holders),
            holders.iter().map(|rows| !rows.is_empty()).collect(),
        );
        let words = self.words(&held, idf, &known, asks, lengths);
        let coverage = &words[COVERAGE * n..][..n];
        let content: Vec<f64> = (stretched(&[&columns[..n]]).iter().zip(coverage))
            .map(|(dense, coverage)| (dense + coverage) / 2.0)
            .collect();
        let own: Vec<usize> = self
            .windows()
            .map(|window| window[self.width / 2] as usize)
            .collect();
        let of: Vec<i64> = own
            .iter()
            .map(|&place| sessions[self.near[place] as usize])
            .collect();
        let held: Vec<f64> = (0..idf.len())
            .flat_map(|word| own.iter().map(move |&place| word * size + place))
            .map(|at| held[at])
            .collect();
        columns.extend(words);
        columns.extend(self::sessions(&of, &content, &held, idf));
        Signals { columns, content }
    }

    /// Compares vectors: the columns of [`DENSE`].
    ///
    /// `similarity` is that of each near row, NaN where it has none, which counts as 0; `asks` is by
    /// row.
    ///
    /// # Panics
    /// Not one similarity for each near row, or a row that there is not.
    fn dense(&self, similarity: &[f64], asks: &[bool]) -> Vec<f64> {
        let n = self.len();
        let mut out = vec![0.0; DENSE.len() * n];
        let value = |place: i64| match similarity.get(place as usize) {
            Some(&value) if !value.is_nan() => value,
            _ => 0.0,
        };
        let asking =
            |place: i64| (self.near.get(place as usize)).is_some_and(|&row| asks[row as usize]);
        for (at, window) in self.windows().enumerate() {
            let middle = self.width / 2;
            let [before, own, after] = [middle - 1, middle, middle + 1].map(|step| window[step]);
            let partner = if asking(before) {
                before
            } else if asking(own) && self.is_row(after) {
                after
            } else {
                own
            };
            let mean = |some: &[i64]| {
                let there = some.iter().filter(|&&place| self.is_row(place)).count();
                some.iter().map(|&place| value(place)).sum::<f64>() / there as f64
            };
            let columns = [
                value(own),
                mean(&window[middle - NARROW..=middle + NARROW]),
                mean(window),
                (value(own) + value(partner)) / 2.0,
                value(before).max(value(after)),
            ];
            put(&mut out, n, at, &columns);
        }
        out
    }

    /// Compares words: the columns of [`WORDS`].
    ///
    /// `holds` is what [`holds`](Self::holds) says of the lists of the words, `known` which words any
    /// row holds at all, `asks` and `lengths` are by row.
    ///
    /// # Panics
    /// Not one idf for each word, or a row that there is not.
    fn words(
        &self,
        holds: &[f64],
        idf: &[f64],
        known: &[bool],
        asks: &[bool],
        lengths: &[i64],
    ) -> Vec<f64> {
        let (n, size) = (self.len(), self.near.len());
        let mut out = vec![0.0; WORDS.len() * n];
        let total: f64 = idf.iter().sum();
        if total == 0.0 {
            return out;
        }
        let length = |place: i64| {
            self.near
                .get(place as usize)
                .map_or(0.0, |&row| lengths[row as usize] as f64)
        };
        let whole: f64 = (0..size as i64).map(length).sum();
        let usual = whole / size.max(1) as f64;
        let damp =
            |length: f64, events: f64| K1 * (1.0 - B + B * length / (usual * events).max(1.0));
        let store: f64 = idf
            .iter()
            .zip(known)
            .filter(|one| *one.1)
            .map(|one| one.0)
            .sum();
        let middle = self.width / 2;
        for (at, window) in self.windows().enumerate() {
            let three = &window[middle - NARROW..=middle + NARROW];
            let asked =
                (self.near.get(window[middle - 1] as usize)).is_some_and(|&row| asks[row as usize]);
            let sum = |some: &[i64]| some.iter().map(|&place| length(place)).sum::<f64>();
            let damps = [
                damp(length(window[middle]), 1.0),
                damp(sum(three), 3.0),
                damp(sum(window), 5.0),
            ];
            let mut columns = [0.0; WORDS.len()];
            columns[0] = store;
            for (word, &idf) in idf.iter().enumerate() {
                let held = |place: i64| match place as usize {
                    place if place < size => holds[word * size + place],
                    _ => 0.0,
                };
                let count = |some: &[i64]| some.iter().map(|&place| held(place)).sum::<f64>();
                let counts = [held(window[middle]), count(three), count(window)];
                for ((column, &count), &damp) in columns[1..4].iter_mut().zip(&counts).zip(&damps) {
                    *column += idf * (count / (count + damp));
                }
                let before = if asked { held(window[middle - 1]) } else { 0.0 };
                let shares = [counts[0], counts[1], counts[0] + before, before];
                for (column, &share) in columns[4..].iter_mut().zip(&shares) {
                    if share > 0.0 {
                        *column += idf;
                    }
                }
            }
            put(&mut out, n, at, &columns.map(|column| column / total));
        }
        out
    }

    fn is_row(&self, place: i64) -> bool {
        (place as usize) < self.near.len()
    }

    fn windows(&self) -> impl Iterator<Item = &[i64]> {
        self.places.chunks_exact(self.width)
    }

    fn len(&self) -> usize {
        self.places.len() / self.width
    }
}

fn put(out: &mut [f64], n: usize, at: usize, columns: &[f64]) {
    for (column, &value) in columns.iter().enumerate() {
        out[column * n + at] = value;
    }
}

/// Says how good the session of each candidate is, by the candidates: the columns of [`SESSION`].
///
/// The best and the mean of the three best of their scores, and the share of the idf that they hold
/// together; `holds` is candidate by candidate within each word.
///
/// # Panics
/// Columns of several lengths.
fn sessions(sessions: &[i64], score: &[f64], holds: &[f64], idf: &[f64]) -> Vec<f64> {
    let n = sessions.len();
    let mut out = vec![0.0; SESSION.len() * n];
    let total: f64 = idf.iter().sum();
    let mut order: Vec<usize> = (0..n).collect();
    order.sort_unstable_by(|&a, &b| {
        let best_first = score[b].total_cmp(&score[a]);
        sessions[a].cmp(&sessions[b]).then(best_first)
    });
    for group in order.chunk_by(|&a, &b| sessions[a] == sessions[b]) {
        let three = &group[..group.len().min(3)];
        let mean = three.iter().map(|&at| score[at]).sum::<f64>() / three.len() as f64;
        let held = idf.iter().enumerate().filter(|(word, _)| {
            let held = &holds[word * n..][..n];
            group.iter().any(|&at| held[at] > 0.0)
        });
        let covered: f64 = held.map(|(_, idf)| idf).sum();
        let covered = if total == 0.0 { 0.0 } else { covered / total };
        for &at in group {
            put(&mut out, n, at, &[score[group[0]], mean, covered]);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_stands_once_and_what_is_not_there_behind_the_last() {
        let joined = Neighbourhood::of(&[-1, 5, 7, 5, 7, -1], 3);
        assert_eq!(joined.near, [5, 7]);
        assert_eq!(joined.places, [2, 0, 1, 0, 1, 2]);
        assert_eq!(joined.holds(&[&[1, 7, 9], &[]]), [0.0, 1.0, 0.0, 0.0]);
        assert!(Neighbourhood::of(&[], 3).near.is_empty());
    }

    #[test]
    fn a_session_is_as_good_as_its_best() {
        let out = sessions(&[1, 2, 1], &[0.2, 0.5, 0.4], &[1.0, 0.0, 0.0], &[2.0]);
        assert_eq!(out[..3], [0.4, 0.5, 0.4]);
        assert_eq!(out[6..], [1.0, 0.0, 1.0]);
    }
}
