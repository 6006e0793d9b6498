//! Search through vectors of small integers.

use std::cmp::Ordering;

use crate::isa::{Isa, Kernel};
use crate::simd::Simd;

/// The most numbers that a vector may have: their products add up in 32 bits.
const MOST_DIMENSION: usize = 1 << 16;

/// A row that a scan found.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scored {
    /// Which row of the matrix.
    pub row: usize,
    /// The row's product with the query, times the row's scale. Times the
    /// query's scale it is the similarity, but for rounding.
    pub score: f32,
}

impl Eq for Scored {}

impl PartialOrd for Scored {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// Best first: a higher score comes before a lower, and the earlier of two
/// rows with the same score before the later.
impl Ord for Scored {
    fn cmp(&self, other: &Self) -> Ordering {
        other.score.total_cmp(&self.score).then(self.row.cmp(&other.row))
    }
}

/// The best rows for one query, from any number of scans in any order.
///
/// It keeps the `keep` best rows that it is shown, and every other one whose
/// score is at most `margin` below the least of those. The room for them grows
/// as they come. Which rows those are does not depend on the order in which
/// they come.
#[derive(Clone, Debug)]
pub struct Shortlist {
    keep: usize,
    margin: f32,
    /// What a row must score to be of interest.
    floor: f32,
    rows: Vec<Scored>,
    /// The number of rows at which those of no interest are thrown out.
    limit: usize,
}

impl Shortlist {
    /// Begins with no row.
    ///
    /// - `margin`: at least 0.
    pub fn new(keep: usize, margin: f32) -> Self {
        let floor = if keep == 0 { f32::INFINITY } else { f32::NEG_INFINITY };
        let limit = keep.saturating_mul(2).max(LEAST_LIMIT);
        Self { keep, margin, floor, rows: Vec::new(), limit }
    }

    /// Shows it a row. One whose score is no number is passed over.
    #[inline(always)]
    fn show(&mut self, row: usize, score: f32) {
        if score >= self.floor && self.keep > 0 {
            self.take(Scored { row, score });
        }
    }

    #[cold]
    #[inline(never)]
    fn take(&mut self, scored: Scored) {
        self.rows.push(scored);
        if self.rows.len() >= self.limit {
            self.thin();
        }
    }

    /// Throws out what is of no interest any more.
    fn thin(&mut self) {
        if self.keep == 0 || self.rows.len() <= self.keep {
            return;
        }
        let (_, least, _) = self.rows.select_nth_unstable(self.keep - 1);
        let least = *least;
        self.floor = least.score - self.margin;
        let floor = self.floor;
        if self.margin > 0.0 {
            self.rows.retain(|scored| scored.score >= floor);
        } else {
            self.rows.truncate(self.keep);
        }
        self.limit = self.rows.len().saturating_mul(2).max(LEAST_LIMIT);
    }

    /// Adds what another one has found for the same query among other rows.
    pub fn merge(&mut self, other: Self) {
        self.rows.extend(other.rows);
        self.thin();
    }

    /// What it kept, best first, equal scores by row.
    pub fn into_sorted(mut self) -> Vec<Scored> {
        self.thin();
        self.rows.sort_unstable();
        self.rows
    }
}

/// Fewer rows than this are not worth thinning out.
const LEAST_LIMIT: usize = 128;

/// Shows the products of rows with queries to the queries' shortlists.
///
/// - `queries`: q × `dimension` integers, as [`quantise`](crate::quantise())
///   makes them.
/// - `matrix`: n × `dimension` integers; `scales`: n.
/// - `admit`: one bit for each row, from the lowest bit of the first word on,
///   set if the row may be found; without it all may.
/// - `first`: the number that the first row is known by.
/// - `found`: q shortlists. A score is the row's product with the query, times
///   the row's scale; it is the same on every instruction set.
///
/// Takes time linear in admitted rows × queries: for one query as fast as memory
/// delivers the rows, for many as fast as the processor multiplies, since rows
/// are taken in blocks that stay in its cache while all queries pass over them.
///
/// # Panics
///
/// If the dimension is zero or more than 65,536, or the lengths do not fit
/// together.
pub fn scan_i8(
    queries: &[i8],
    dimension: usize,
    matrix: &[i8],
    scales: &[f32],
    admit: Option<&[u64]>,
    first: usize,
    found: &mut [Shortlist],
) {
    scan_i8_on(Isa::best(), Scan { queries, dimension, matrix, scales, admit, first, found });
}

fn scan_i8_on(isa: Isa, scan: Scan<'_>) {
    let (dimension, rows) = (scan.dimension, scan.scales.len());
    assert!((1..=MOST_DIMENSION).contains(&dimension), "a query has a sensible dimension");
    assert_eq!(Some(scan.matrix.len()), rows.checked_mul(dimension), "rows are whole");
    assert_eq!(
        Some(scan.queries.len()),
        scan.found.len().checked_mul(dimension),
        "a shortlist for each query"
    );
    if let Some(admit) = scan.admit {
        assert!(admit.len() >= rows.div_ceil(64), "a bit for each row");
    }
    isa.run(scan);
}

struct Scan<'a> {
    queries: &'a [i8],
    dimension: usize,
    matrix: &'a [i8],
    scales: &'a [f32],
    admit: Option<&'a [u64]>,
    first: usize,
    found: &'a mut [Shortlist],
}

/// Queries that share the reading of a row.
const TOGETHER: usize = 4;

impl Kernel for Scan<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let Scan { dimension, matrix, scales, first, found, .. } = self;
        let queries: Vec<Query<'_>> =
            self.queries.chunks_exact(dimension).map(Query::new::<S>).collect();
        let rows = scales.len();
        for block in (0..rows).step_by(64) {
            let mut admitted = self.admit.map_or(u64::MAX, |admit| admit[block / 64]);
            if rows - block < 64 {
                admitted &= (1 << (rows - block)) - 1;
            }
            let (fours, rest) = queries.as_chunks::<TOGETHER>();
            let (lists, rest_lists) = found.split_at_mut(fours.len() * TOGETHER);
            for (four, lists) in fours.iter().zip(lists.chunks_exact_mut(TOGETHER)) {
                let mut bits = admitted;
                while bits != 0 {
                    let row = block + bits.trailing_zeros() as usize;
                    bits &= bits - 1;
                    let integers = &matrix[row * dimension..][..dimension];
                    let dots = Query::dot_each(four, simd, integers);
                    for (list, dot) in lists.iter_mut().zip(dots) {
                        // Adding zero turns −0 into 0, which is ordered apart.
                        list.show(first + row, dot as f32 * scales[row] + 0.0);
                    }
                }
            }
            for (query, list) in rest.iter().zip(rest_lists) {
                let mut bits = admitted;
                while bits != 0 {
                    let row = block + bits.trailing_zeros() as usize;
                    bits &= bits - 1;
                    let dot = query.dot(simd, &matrix[row * dimension..][..dimension]);
                    list.show(first + row, dot as f32 * scales[row] + 0.0);
                }
            }
        }
    }
}

/// A query, widened to pairs of 16 bits as far as whole vectors reach.
struct Query<'a> {
    pairs: Vec<i32>,
    rest: &'a [i8],
}

impl<'a> Query<'a> {
    #[inline(always)]
    fn new<S: Simd>(query: &'a [i8]) -> Self {
        let (whole, rest) = query.split_at(query.len() - query.len() % (2 * S::LANES));
        let (pairs, _) = whole.as_chunks();
        let widen = |&[low, high]: &[i8; 2]| (i32::from(low) & 0xffff) | (i32::from(high) << 16);
        Self { pairs: pairs.iter().map(widen).collect(), rest }
    }

    #[inline(always)]
    fn dot<S: Simd>(&self, simd: S, row: &[i8]) -> i32 {
        let (whole, rest) = row.split_at(2 * self.pairs.len());
        let (lanes, from) = (S::LANES, whole.as_ptr());
        let vectors = self.pairs.len() / lanes;
        let mut sums = [simd.splat_integer(0); 4];
        let mut vector = 0;
        // SAFETY: `whole` has two bytes, and `pairs` one value, for each of the
        // `vectors × LANES` places that are read.
        unsafe {
            while vector + 4 <= vectors {
                for (offset, sum) in sums.iter_mut().enumerate() {
                    let place = (vector + offset) * lanes;
                    let row = simd.load_widened(from.add(2 * place));
                    *sum = simd.dot_words(
                        *sum,
                        row,
                        simd.load_integers(self.pairs.as_ptr().add(place)),
                    );
                }
                vector += 4;
            }
            while vector < vectors {
                let place = vector * lanes;
                let row = simd.load_widened(from.add(2 * place));
                sums[0] = simd.dot_words(
                    sums[0],
                    row,
                    simd.load_integers(self.pairs.as_ptr().add(place)),
                );
                vector += 1;
            }
        }
        let sum: i32 = sums.iter().map(|&sum| simd.sum_integers(sum)).sum();
        let rest = self.rest.iter().zip(rest).map(|(&a, &b)| i32::from(a) * i32::from(b));
        sum + rest.sum::<i32>()
    }

    /// The products of one row with several queries, for which it is read and
    /// widened once.
    #[inline(always)]
    fn dot_each<S: Simd>(queries: &[Self; TOGETHER], simd: S, row: &[i8]) -> [i32; TOGETHER] {
        let pairs = queries[0].pairs.len();
        let (whole, rest) = row.split_at(2 * pairs);
        let (lanes, from) = (S::LANES, whole.as_ptr());
        let vectors = pairs / lanes;
        let mut sums = [[simd.splat_integer(0); 2]; TOGETHER];
        // SAFETY: `whole` has two bytes, and the `pairs` of each query, which are
        // of one dimension, one value, for each of the `vectors × LANES` places
        // that are read.
        unsafe {
            let mut vector = 0;
            while vector + 2 <= vectors {
                let (one, two) = (vector * lanes, (vector + 1) * lanes);
                let first = simd.load_widened(from.add(2 * one));
                let second = simd.load_widened(from.add(2 * two));
                for (query, sum) in queries.iter().zip(&mut sums) {
                    let values = query.pairs.as_ptr();
                    sum[0] = simd.dot_words(sum[0], first, simd.load_integers(values.add(one)));
                    sum[1] = simd.dot_words(sum[1], second, simd.load_integers(values.add(two)));
                }
                vector += 2;
            }
            if vector < vectors {
                let place = vector * lanes;
                let value = simd.load_widened(from.add(2 * place));
                for (query, sum) in queries.iter().zip(&mut sums) {
                    let values = query.pairs.as_ptr();
                    sum[0] = simd.dot_words(sum[0], value, simd.load_integers(values.add(place)));
                }
            }
        }
        let mut dots = [0; TOGETHER];
        for ((dot, query), sums) in dots.iter_mut().zip(queries).zip(sums) {
            let products = query.rest.iter().zip(rest);
            let rest: i32 = products.map(|(&a, &b)| i32::from(a) * i32::from(b)).sum();
            *dot = simd.sum_integers(sums[0]) + simd.sum_integers(sums[1]) + rest;
        }
        dots
    }
}

/// The product of two vectors.
///
/// # Panics
///
/// If one has more numbers than the other.
pub fn dot_f32(a: &[f32], b: &[f32]) -> f32 {
    assert_eq!(a.len(), b.len(), "vectors of one dimension");
    Isa::best().run(Dot { a, b })
}

struct Dot<'a> {
    a: &'a [f32],
    b: &'a [f32],
}

impl Kernel for Dot<'_> {
    type Output = f32;

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) -> f32 {
        let (a, b) = (self.a.chunks_exact(4 * S::LANES), self.b.chunks_exact(4 * S::LANES));
        let rest = a.remainder().iter().zip(b.remainder()).map(|(a, b)| a * b).sum::<f32>();
        let mut sums = [simd.splat(0.0); 4];
        for (a, b) in a.zip(b) {
            for (part, sum) in sums.iter_mut().enumerate() {
                // SAFETY: each chunk has four times as many values as a vector.
                unsafe {
                    let a = simd.load(a.as_ptr().add(part * S::LANES));
                    let b = simd.load(b.as_ptr().add(part * S::LANES));
                    *sum = simd.multiply_add(a, b, *sum);
                }
            }
        }
        let sum = simd.add(simd.add(sums[0], sums[1]), simd.add(sums[2], sums[3]));
        simd.sum(sum) + rest
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::quantise::quantise;
    use crate::testing::noise;

    /// The scores of all admitted rows, best first.
    fn naive(query: &[i8], matrix: &[i8], scales: &[f32], admit: Option<&[u64]>) -> Vec<Scored> {
        let mut all: Vec<Scored> = matrix
            .chunks_exact(query.len())
            .zip(scales)
            .enumerate()
            .filter(|(row, _)| admit.is_none_or(|admit| admit[row / 64] >> (row % 64) & 1 == 1))
            .map(|(row, (integers, scale))| {
                let products = query.iter().zip(integers);
                let dot: i32 = products.map(|(&a, &b)| i32::from(a) * i32::from(b)).sum();
                Scored { row, score: dot as f32 * scale + 0.0 }
            })
            .collect();
        all.sort();
        all
    }

    fn scan_on(
        isa: Isa,
        queries: &[i8],
        dimension: usize,
        matrix: &[i8],
        scales: &[f32],
        admit: Option<&[u64]>,
        mut found: Vec<Shortlist>,
    ) -> Vec<Vec<Scored>> {
        // In two parts, the last first.
        let cut = scales.len() / 64 / 2 * 64;
        let (head, tail) = matrix.split_at(cut * dimension);
        for (matrix, scales, first) in [(tail, &scales[cut..], cut), (head, &scales[..cut], 0)] {
            let admit = admit.map(|admit| &admit[first / 64..]);
            let found = &mut found[..];
            scan_i8_on(isa, Scan { queries, dimension, matrix, scales, admit, first, found });
        }
        found.into_iter().map(Shortlist::into_sorted).collect()
    }

    proptest! {
        #[test]
        fn a_scan_finds_what_a_full_sort_finds(
            dimension in 1_usize..200,
            rows in 0_usize..400,
            count in 0_usize..10,
            keep in 0_usize..20,
            wide in any::<bool>(),
            // Few distinct values, so that scores tie.
            seed in 0_u64..1000,
            some in any::<bool>(),
            bits in proptest::collection::vec(any::<u64>(), 7),
        ) {
            let coarse = |numbers: Vec<f32>| -> Vec<i8> {
                numbers.into_iter().map(|number| (number * 1.5) as i8).collect()
            };
            let queries = coarse(noise(dimension * count, seed));
            let matrix = coarse(noise(dimension * rows, seed + 1));
            let scales: Vec<f32> = noise(rows, seed + 2).iter().map(|x| x.round().abs()).collect();
            let admit = some.then_some(&bits[..]);
            let margin = if wide { 3.0 } else { 0.0 };
            let expected: Vec<Vec<Scored>> = queries
                .chunks_exact(dimension)
                .map(|query| {
                    let mut all = naive(query, &matrix, &scales, admit);
                    if let Some(least) = keep.checked_sub(1).and_then(|last| all.get(last).copied()) {
                        let mut place = 0;
                        all.retain(|scored| {
                            place += 1;
                            place <= keep || wide && scored.score >= least.score - margin
                        });
                    }
                    all.truncate(if keep == 0 { 0 } else { all.len() });
                    all
                })
                .collect();
            for isa in Isa::all() {
                let lists = vec![Shortlist::new(keep, margin); count];
                let found = scan_on(isa, &queries, dimension, &matrix, &scales, admit, lists);
                prop_assert_eq!(&found, &expected, "{}", isa.name());
            }
        }

        #[test]
        fn shortlists_of_parts_make_that_of_the_whole(
            scores in proptest::collection::vec(0_u8..50, 0..600),
            keep in 0_usize..40,
            margin in 0_u8..3,
            split in 1_usize..5,
        ) {
            let margin = f32::from(margin);
            let mut whole = Shortlist::new(keep, margin);
            let mut parts = vec![Shortlist::new(keep, margin); split];
            for (row, &score) in scores.iter().enumerate() {
                whole.show(row, f32::from(score));
                parts[row * 7 % split].show(row, f32::from(score));
            }
            let mut merged = Shortlist::new(keep, margin);
            for part in parts {
                merged.merge(part);
            }
            prop_assert_eq!(merged.into_sorted(), whole.into_sorted());
        }

        #[test]
        fn a_product_of_numbers_is_exact(dimension in 0_usize..200, seed in 0_u64..1000) {
            let (a, b) = (noise(dimension, seed), noise(dimension, seed + 1));
            let exact: f64 = a.iter().zip(&b).map(|(&a, &b)| f64::from(a) * f64::from(b)).sum();
            for isa in Isa::all() {
                let dot = isa.run(Dot { a: &a, b: &b });
                prop_assert!((f64::from(dot) - exact).abs() < 1e-5);
            }
            prop_assert!((f64::from(dot_f32(&a, &b)) - exact).abs() < 1e-5);
        }
    }

    #[test]
    fn the_greatest_products_do_not_overflow() {
        let (query, matrix) = ([127].repeat(65_536), vec![-128; 65_536]);
        for isa in Isa::all() {
            // Alone, and with others.
            for count in [1, 4] {
                let (queries, lists) = (query.repeat(count), vec![Shortlist::new(1, 0.0); count]);
                let found = scan_on(isa, &queries, 65_536, &matrix, &[1.0], None, lists);
                let expected = [Scored { row: 0, score: -127.0 * 128.0 * 65_536.0 }];
                assert!(found.iter().all(|found| found == &expected));
            }
        }
    }

    #[test]
    fn a_scan_of_quantised_vectors_finds_the_nearest() {
        let vectors = noise(500 * 384, 3);
        let (matrix, scales) = quantise(&vectors, 384);
        let (query, _) = quantise(&vectors[123 * 384..][..384], 384);
        let mut found = [Shortlist::new(1, 0.0)];
        scan_i8(&query, 384, &matrix, &scales, None, 1000, &mut found);
        let [found] = found;
        assert_eq!(found.into_sorted()[0].row, 1123);
    }

    #[test]
    fn a_score_that_is_no_number_is_never_found() {
        let mut found = [Shortlist::new(5, 1.0)];
        scan_i8(&[1, 1], 2, &[1, 1, 2, 2], &[f32::NAN, 1.0], None, 0, &mut found);
        let [found] = found;
        assert_eq!(found.into_sorted(), [Scored { row: 1, score: 4.0 }]);
    }

    // SRCH-191
    #[test]
    fn a_huge_shortlist_takes_no_room_before_rows_come() {
        let mut list = Shortlist::new(usize::MAX, 0.0);
        assert_eq!(list.rows.capacity(), 0);
        list.show(1, 1.0);
        assert_eq!(list.into_sorted().len(), 1);
    }

    #[test]
    #[should_panic(expected = "a bit for each row")]
    fn too_short_an_admission_is_a_panic() {
        scan_i8(&[1], 1, &[1; 65], &[1.0; 65], Some(&[0]), 0, &mut [Shortlist::new(1, 0.0)]);
    }
}
