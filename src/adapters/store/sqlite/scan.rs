//! A scan through vectors in memory that is exact.
//!
//! It runs over rounded vectors. How far a rounded product may lie from the true
//! cosine is known, so the rows that could be among the best are known as well,
//! and only those are computed exactly. All queries of a call pass over a block
//! of rows while it lies in the processor's cache.

use std::ops::Range;
use std::panic::resume_unwind;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use grooveseek_kernels::{Scored, Shortlist};

use crate::adapters::store::cosine::TOGETHER;
use crate::adapters::store::ranking::Best;
use crate::adapters::store::sqlite::matrix::{Matrix, Query};
use crate::domain::chunk::ChunkId;
use crate::ports::chunk_store::Candidate;

/// Rows that a thread takes at once; a multiple of 64.
const PIECE: usize = if cfg!(test) { 64 } else { 4096 };

/// Bytes of rows times queries that are worth another thread, whose start takes
/// about a tenth as long.
const WORTH_A_THREAD: usize = 8 << 20;

/// Rows that may be found.
pub(super) struct Part<'a> {
    /// The number of each row.
    pub(super) ids: &'a [i64],
    /// The rows.
    pub(super) matrix: &'a Matrix,
    /// One bit for each row, from the lowest of the first word on.
    pub(super) admitted: &'a [u64],
}

/// The rows nearest to each query, best first: what a scan of all exact cosines
/// would return, and the same whatever the number of threads.
///
/// - `queries`: of the dimension of the rows.
pub(super) fn nearest(queries: &[&[f32]], depth: usize, parts: &[Part<'_>]) -> Vec<Vec<Candidate>> {
    let bytes: usize = parts.iter().map(|part| part.matrix.len() * part.matrix.row_bytes()).sum();
    let crew = Crew::of(bytes.saturating_mul(queries.len()) / WORTH_A_THREAD);
    nearest_on(crew.size, queries, depth, parts)
}

fn nearest_on(
    threads: usize,
    queries: &[&[f32]],
    depth: usize,
    parts: &[Part<'_>],
) -> Vec<Vec<Candidate>> {
    if depth == 0 {
        return vec![Vec::new(); queries.len()];
    }
    let queries: Vec<Query> = queries.iter().map(|values| Query::new(values)).collect();
    let tolerance =
        |query: &Query| parts.iter().map(|part| query.tolerance(part.matrix)).fold(0.0, f32::max);
    let tolerances: Vec<f32> = queries.iter().map(tolerance).collect();
    let lists = queries.iter().zip(&tolerances).map(|(query, tolerance)| {
        // The least of the best so far may be off, and so may what could beat it.
        let margin = if query.scale > 0.0 { 2.0 * tolerance / query.scale } else { 1.0 };
        Shortlist::new(depth, margin)
    });
    let field = Field::new(&queries, parts);
    let found = field.scan(threads, &lists.collect::<Vec<_>>());
    found
        .into_iter()
        .zip(queries.iter().zip(tolerances))
        .map(|(list, (query, tolerance))| field.exact(query, tolerance, depth, &list.into_sorted()))
        .collect()
}

/// What a scan passes over, with its rows numbered through.
struct Field<'a> {
    /// The small integers of all queries.
    queries: Vec<i8>,
    parts: &'a [Part<'a>],
    /// The number of each part's first row.
    firsts: Vec<usize>,
    /// Rows of one part each.
    pieces: Vec<(usize, Range<usize>)>,
}

impl<'a> Field<'a> {
    fn new(queries: &[Query], parts: &'a [Part<'a>]) -> Self {
        let queries = queries.iter().flat_map(|query| &query.small).copied().collect();
        let (mut firsts, mut pieces, mut first) = (Vec::new(), Vec::new(), 0);
        for (index, part) in parts.iter().enumerate() {
            let rows = part.matrix.len();
            firsts.push(first);
            first += rows;
            let starts = (0..rows).step_by(PIECE);
            pieces.extend(starts.map(|start| (index, start..rows.min(start + PIECE))));
        }
        Self { queries, parts, firsts, pieces }
    }

    /// Lets threads, one of them the caller's, take piece after piece.
    ///
    /// - `empty`: a shortlist for each query.
    fn scan(&self, threads: usize, empty: &[Shortlist]) -> Vec<Shortlist> {
        let next = AtomicUsize::new(0);
        let work = || {
            let mut found = empty.to_vec();
            while let Some((index, rows)) = self.pieces.get(next.fetch_add(1, Ordering::Relaxed)) {
                let Part { matrix, admitted, .. } = &self.parts[*index];
                let first = self.firsts[*index] + rows.start;
                matrix.scan(&self.queries, rows.clone(), admitted, first, &mut found);
            }
            found
        };
        if threads <= 1 || self.pieces.len() <= 1 {
            return work();
        }
        thread::scope(|scope| {
            // A thread that cannot be had leaves its pieces to the others.
            let helper = |_| thread::Builder::new().spawn_scoped(scope, work).ok();
            let helpers: Vec<_> = (1..threads).filter_map(helper).collect();
            let mut found = work();
            for helper in helpers {
                let theirs = helper.join().unwrap_or_else(|panic| resume_unwind(panic));
                found.iter_mut().zip(theirs).for_each(|(ours, theirs)| ours.merge(theirs));
            }
            found
        })
    }

    /// Computes exactly what may be among the best.
    ///
    /// - `rough`: rows by their rounded products, best first.
    fn exact(
        &self,
        query: &Query,
        tolerance: f32,
        depth: usize,
        rough: &[Scored],
    ) -> Vec<Candidate> {
        let mut best = Best::new(depth);
        for group in rough.chunks(TOGETHER) {
            let most = group[0].score * query.scale + tolerance;
            if best.least().is_some_and(|least| most < least) {
                break;
            }
            // A last group that is smaller is filled up with its first row.
            let places: [(&Part<'_>, usize); TOGETHER] =
                std::array::from_fn(|place| self.place(group.get(place).unwrap_or(&group[0]).row));
            let rows = places.map(|(part, place)| part.matrix.row(place));
            let squares = places.map(|(part, place)| part.matrix.square(place));
            let cosines = query.exact.cosines(rows, squares);
            for ((part, place), cosine) in places.into_iter().zip(cosines).take(group.len()) {
                best.show(ChunkId(part.ids[place]), cosine);
            }
        }
        best.into_ranking()
    }

    /// Where the row of a number is.
    fn place(&self, row: usize) -> (&Part<'_>, usize) {
        let index = self.firsts.partition_point(|&first| first <= row) - 1;
        (&self.parts[index], row - self.firsts[index])
    }
}

/// Threads that scan now, in this process.
static AT_WORK: AtomicUsize = AtomicUsize::new(0);

/// As many threads as a scan has use for and the processor has free, at least
/// one, for as long as it lives.
struct Crew {
    size: usize,
}

impl Crew {
    fn of(useful: usize) -> Self {
        static CORES: OnceLock<usize> = OnceLock::new();
        let cores = *CORES.get_or_init(|| thread::available_parallelism().map_or(1, usize::from));
        let size = |at_work: usize| useful.min(cores.saturating_sub(at_work)).max(1);
        let before = AT_WORK
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, |at_work| {
                Some(at_work + size(at_work))
            })
            .unwrap_or_default();
        Self { size: size(before) }
    }
}

impl Drop for Crew {
    fn drop(&mut self) {
        AT_WORK.fetch_sub(self.size, Ordering::AcqRel);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{any, prop, prop_assert_eq, proptest};

    use super::*;
    use crate::adapters::store::cosine;

    /// Every exact cosine, sorted.
    fn plain(query: &[f32], depth: usize, parts: &[Part<'_>]) -> Vec<Candidate> {
        let query = cosine::Query::new(query);
        let mut best = Best::new(depth);
        for part in parts {
            for (place, &id) in part.ids.iter().enumerate() {
                if part.admitted[place / 64] >> (place % 64) & 1 == 1 {
                    best.show(ChunkId(id), query.cosine(part.matrix.row(place)));
                }
            }
        }
        best.into_ranking()
    }

    proptest! {
        // SRCH-74 SRCH-89 SRCH-190 SRCH-B08
        #[test]
        fn the_answer_is_that_of_the_exact_scan_whatever_the_number_of_threads(
            dimension in 1_usize..24,
            numbers in prop::collection::vec(-8_i8..8, 0..1500),
            queries in prop::collection::vec(prop::collection::vec(-8_i8..8, 24), 0..7),
            coarse in any::<bool>(),
            length in 0.1_f32..3.0,
            bits in prop::collection::vec(any::<u64>(), 32),
            depth in 0_usize..40,
        ) {
            // Coarse numbers tie often, fine ones lie close together.
            #[expect(clippy::cast_precision_loss, reason = "there are at most 1,500 numbers")]
            let step = |(place, &number): (usize, &i8)| {
                let fine = if coarse { 0.0 } else { (place as f32 * 0.37).sin() * 0.05 };
                (f32::from(number) + fine) * length
            };
            let mut values: Vec<f32> = numbers.iter().enumerate().map(step).collect();
            values.truncate(values.len() / dimension * dimension);
            let cut = values.len() / dimension / 3 * dimension;
            let tail = values.split_off(cut);
            let matrices = [Matrix::new(values, dimension), Matrix::new(tail, dimension)];
            let ids: Vec<i64> = (0..1500).rev().collect();
            let (head_ids, tail_ids) = ids.split_at(matrices[0].len());
            let queries: Vec<Vec<f32>> = queries
                .iter()
                .map(|query| query[..dimension].iter().map(|&x| f32::from(x)).collect())
                .collect();
            let queries: Vec<&[f32]> = queries.iter().map(Vec::as_slice).collect();
            let admitted = matrices.each_ref().map(|matrix| {
                (0..matrix.len().div_ceil(64))
                    .map(|word| {
                        let left = matrix.len() - word * 64;
                        bits[word % 32] & if left < 64 { (1 << left) - 1 } else { u64::MAX }
                    })
                    .collect::<Vec<u64>>()
            });
            let parts: Vec<Part<'_>> = [head_ids, tail_ids]
                .iter()
                .zip(&matrices)
                .zip(&admitted)
                .map(|((ids, matrix), admitted)| Part {
                    ids: &ids[..matrix.len()],
                    matrix,
                    admitted,
                })
                .collect();
            let expected: Vec<Vec<Candidate>> =
                queries.iter().map(|query| plain(query, depth, &parts)).collect();
            for threads in 1..4 {
                prop_assert_eq!(&nearest_on(threads, &queries, depth, &parts), &expected);
            }
            prop_assert_eq!(&nearest(&queries, depth, &parts), &expected);
        }
    }

    #[test]
    fn threads_are_shared_and_given_back() {
        let whole = Crew::of(usize::MAX);
        assert!(whole.size >= 1);
        assert_eq!(Crew::of(0).size, 1);
        let again = Crew::of(usize::MAX);
        assert!(again.size >= 1);
        drop((whole, again));
    }
}
