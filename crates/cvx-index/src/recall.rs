//! What a recall computes over its candidates: plain functions over columns, which know no index.
//!
//! A row is a place in those columns, of one event each; the rows of a recall are few, the columns as
//! long as there are events. [`Neighbourhood`] joins the candidates with their neighbours in time, and
//! what the signals need of all of them is looked up once.

mod candidates;
mod scores;
mod signals;

pub use candidates::{Ranked, best_by_idf, joined, votes, with_neighbours};
pub use scores::{Ties, Weighed, best, stretched, weighed};
pub use signals::{DENSE, Neighbourhood, SESSION, Signals, WORDS};

/// Who stands before and after each row in its session, and which rows may be known of.
#[derive(Clone, Copy, Debug)]
pub struct Timeline<'a> {
    /// The row before, below 0 for none.
    pub before: &'a [i64],
    /// The row after, below 0 for none.
    pub after: &'a [i64],
    /// Whether a row may be known of; as many as there are of the others.
    pub readable: &'a [bool],
}

impl Timeline<'_> {
    /// Rows with `reach` neighbours on either side, in order of time, row by row; -1 for what is not
    /// there, or not readable. A row itself stays, whether it is readable or not.
    ///
    /// # Errors
    /// The row that there is not, among `rows` or beside one of them.
    pub fn window(self, rows: &[i64], reach: usize) -> Result<Vec<i64>, i64> {
        let width = 2 * reach + 1;
        let mut out = vec![-1; rows.len() * width];
        for (window, &row) in out.chunks_exact_mut(width).zip(rows) {
            window[reach] = row;
            let (left, right) = window.split_at_mut(reach);
            self.walk(row, self.before, left.iter_mut().rev())?;
            self.walk(row, self.after, right[1..].iter_mut())?;
        }
        Ok(out)
    }

    fn walk<'b>(
        self,
        row: i64,
        next: &[i64],
        out: impl Iterator<Item = &'b mut i64>,
    ) -> Result<(), i64> {
        let mut at = row;
        for place in out {
            at = *next.get(at as usize).ok_or(at)?;
            if at < 0 {
                break;
            }
            if *self.readable.get(at as usize).ok_or(at)? {
                *place = at;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_goes_on_behind_what_may_not_be_read_and_ends_with_the_session() {
        let timeline = Timeline {
            before: &[-1, 0, 1, -1],
            after: &[1, 2, -1, -1],
            readable: &[true, false, true, true],
        };
        assert_eq!(
            timeline.window(&[0, 2], 2).unwrap(),
            [-1, -1, 0, -1, 2, 0, -1, 2, -1, -1]
        );
        assert_eq!(timeline.window(&[1, 3], 1).unwrap(), [0, 1, 2, -1, 3, -1]);
        assert_eq!(timeline.window(&[4], 1), Err(4));
        let astray = Timeline {
            after: &[9, 2, -1, -1],
            ..timeline
        };
        assert_eq!(astray.window(&[0], 1), Err(9));
    }
}
