//! Rows in segments that the copies of several generations share.

use std::sync::Arc;

use crate::adapters::store::sqlite::matrix::Matrix;

/// Rows of a full segment, which no commit copies as long as most of it lives.
pub(super) const SEGMENT: usize = if cfg!(test) { 16 } else { 16_384 };

/// What a filter has to know of a chunk.
#[derive(Clone, Copy)]
pub(super) struct Facet {
    /// Where its document is among the owners.
    pub(super) owner: u32,
    pub(super) quality: f32,
}

/// Rows on their way into segments, all with a vector or all without.
#[derive(Default)]
pub(super) struct Loose {
    rows: Vec<(i64, Facet)>,
    /// The vectors, one after the other.
    values: Vec<f32>,
}

impl Loose {
    /// Adds a row.
    ///
    /// - `vector`: empty where rows have none.
    pub(super) fn push(&mut self, id: i64, facet: Facet, vector: &[f32]) {
        self.rows.push((id, facet));
        self.values.extend_from_slice(vector);
    }

    /// How many rows there are.
    pub(super) fn len(&self) -> usize {
        self.rows.len()
    }

    /// Cuts full segments off, and at the end what is left.
    pub(super) fn into_segments(self, dimension: usize) -> Vec<Segment> {
        let rows = self.rows.chunks(SEGMENT);
        let values = |place: usize| {
            let first = place * SEGMENT * dimension;
            &self.values[first..self.values.len().min(first + SEGMENT * dimension)]
        };
        rows.enumerate().map(|(place, rows)| Segment::new(rows, values(place), dimension)).collect()
    }
}

/// Up to [`SEGMENT`] rows in ascending order of id, at least one. Rows that have
/// gone stay until there are too many of them.
#[derive(Clone)]
pub(super) struct Segment {
    block: Arc<Block>,
    /// One bit for each row.
    alive: Arc<Vec<u64>>,
    living: usize,
}

struct Block {
    ids: Vec<i64>,
    facets: Vec<Facet>,
    /// The least quality of all.
    least_quality: f32,
    /// Without numbers where rows have no vector.
    matrix: Matrix,
}

impl Segment {
    fn new(rows: &[(i64, Facet)], values: &[f32], dimension: usize) -> Self {
        let mut order: Vec<usize> = (0..rows.len()).collect();
        order.sort_by_key(|&place| rows[place].0);
        let mut sorted = Vec::with_capacity(values.len());
        for &place in &order {
            sorted.extend_from_slice(&values[place * dimension..][..dimension]);
        }
        let qualities = rows.iter().map(|(_, facet)| facet.quality);
        let block = Block {
            ids: order.iter().map(|&place| rows[place].0).collect(),
            facets: order.iter().map(|&place| rows[place].1).collect(),
            least_quality: qualities.fold(f32::INFINITY, f32::min),
            matrix: Matrix::new(sorted, dimension),
        };
        let alive = bits(rows.len(), |_| true);
        Self { block: Arc::new(block), alive: Arc::new(alive), living: rows.len() }
    }

    /// The numbers of its rows, in ascending order.
    pub(super) fn ids(&self) -> &[i64] {
        &self.block.ids
    }

    /// The vectors of its rows.
    pub(super) fn matrix(&self) -> &Matrix {
        &self.block.matrix
    }

    /// How many of its rows live.
    pub(super) fn living(&self) -> usize {
        self.living
    }

    fn is_alive(&self, place: usize) -> bool {
        is_set(&self.alive, place)
    }

    /// Where a living row is. Numbers ascend by one at least, and mostly by just
    /// that, so that the place is known at once.
    fn place(&self, id: i64) -> Option<usize> {
        let ids = &self.block.ids;
        let at_most = usize::try_from(id.checked_sub(*ids.first()?)?).ok()?.min(ids.len() - 1);
        let place =
            if ids[at_most] == id { at_most } else { ids[..at_most].binary_search(&id).ok()? };
        Some(place).filter(|&place| self.is_alive(place))
    }

    fn kill(&mut self, place: usize) {
        if self.is_alive(place) {
            Arc::make_mut(&mut self.alive)[place / 64] &= !(1 << (place % 64));
            self.living -= 1;
        }
    }

    fn pour_into(&self, loose: &mut Loose) {
        let Block { ids, facets, matrix, .. } = &*self.block;
        for (place, (&id, &facet)) in ids.iter().zip(facets).enumerate() {
            if self.is_alive(place) {
                loose.push(id, facet, matrix.row(place));
            }
        }
    }

    /// One bit for each row that lives and passes.
    ///
    /// - `documents`: by the place of the document; none if every document
    ///   passes.
    pub(super) fn admitted(
        &self,
        documents: Option<&[bool]>,
        admits_quality: impl Fn(f32) -> bool,
    ) -> Arc<Vec<u64>> {
        let Block { facets, least_quality, .. } = &*self.block;
        if documents.is_none() && admits_quality(*least_quality) {
            return Arc::clone(&self.alive);
        }
        let admits = |facet: &Facet| {
            admits_quality(facet.quality)
                && documents.is_none_or(|documents| documents[facet.owner as usize])
        };
        let mut admitted = bits(facets.len(), |place| admits(&facets[place]));
        admitted.iter_mut().zip(&*self.alive).for_each(|(word, alive)| *word &= alive);
        Arc::new(admitted)
    }
}

/// Whether a bit is set.
pub(super) fn is_set(bits: &[u64], place: usize) -> bool {
    bits[place / 64] >> (place % 64) & 1 == 1
}

/// One bit for each of the first `count` places.
fn bits(count: usize, is_set: impl Fn(usize) -> bool) -> Vec<u64> {
    let word = |first: usize| {
        (first..count.min(first + 64))
            .map(|place| u64::from(is_set(place)) << (place % 64))
            .fold(0, |word, bit| word | bit)
    };
    (0..count).step_by(64).map(word).collect()
}

/// Rows, all with a vector or all without. Cloning it copies pointers.
#[derive(Clone, Default)]
pub(super) struct Rows {
    dimension: usize,
    segments: Vec<Segment>,
    directory: Vec<Stretch>,
}

/// The numbers that a segment reaches over.
#[derive(Clone)]
struct Stretch {
    first: i64,
    /// The greatest number in this segment and those before it in the directory.
    reach: i64,
    segment: usize,
}

/// Where a row is.
#[derive(Clone, Copy)]
pub(super) struct Place {
    pub(super) segment: usize,
    pub(super) row: usize,
}

impl Rows {
    /// Rows of vectors of a dimension; 0 for rows without.
    pub(super) fn new(dimension: usize, segments: Vec<Segment>) -> Self {
        let mut rows = Self { dimension, segments, directory: Vec::new() };
        rows.write_directory();
        rows
    }

    /// How many numbers a vector has.
    pub(super) fn dimension(&self) -> usize {
        self.dimension
    }

    /// The segments.
    pub(super) fn segments(&self) -> &[Segment] {
        &self.segments
    }

    /// How many rows live.
    pub(super) fn living(&self) -> usize {
        self.segments.iter().map(Segment::living).sum()
    }

    /// The number of every living row, and where it is.
    pub(super) fn places(&self) -> impl Iterator<Item = (i64, Place)> {
        self.segments.iter().enumerate().flat_map(|(segment, rows)| {
            let living = (0..rows.ids().len()).filter(|&row| rows.is_alive(row));
            living.map(move |row| (rows.ids()[row], Place { segment, row }))
        })
    }

    /// Vectors, and the sums of their squares.
    pub(super) fn vectors<const N: usize>(&self, at: [Place; N]) -> ([&[f32]; N], [f64; N]) {
        let matrix = |place: Place| self.segments[place.segment].matrix();
        let rows = at.map(|place| matrix(place).row(place.row));
        (rows, at.map(|place| matrix(place).square(place.row)))
    }

    /// Where a living row is.
    pub(super) fn place(&self, id: i64) -> Option<Place> {
        // Segments seldom overlap, so the first that is looked at has it.
        let mut at = self.directory.partition_point(|stretch| stretch.first <= id);
        while at > 0 && self.directory[at - 1].reach >= id {
            at -= 1;
            let segment = self.directory[at].segment;
            if let Some(row) = self.segments[segment].place(id) {
                return Some(Place { segment, row });
            }
        }
        None
    }

    /// What a filter has to know of a row.
    pub(super) fn facet(&self, id: i64) -> Option<Facet> {
        let Place { segment, row } = self.place(id)?;
        Some(self.segments[segment].block.facets[row])
    }

    /// The vector of a row.
    pub(super) fn vector(&self, id: i64) -> Option<&[f32]> {
        let Place { segment, row } = self.place(id)?;
        Some(self.segments[segment].matrix().row(row))
    }

    /// Takes a row away; one that is not there is no error.
    pub(super) fn kill(&mut self, id: i64) {
        if let Some(Place { segment, row }) = self.place(id) {
            self.segments[segment].kill(row);
        }
    }

    /// Adds rows. Segments that are no larger than twice what is added become
    /// one with it, so that there are few and a row is seldom copied; so do
    /// those of which half has gone.
    pub(super) fn append(&mut self, mut fresh: Loose) {
        self.segments.retain(|segment| {
            let wasteful = segment.living * 2 < segment.ids().len();
            if wasteful {
                segment.pour_into(&mut fresh);
            }
            !wasteful
        });
        while let Some(small) = self.segments.pop_if(|last| {
            fresh.len() > 0
                && last.living <= 2 * fresh.len()
                && last.living + fresh.len() <= SEGMENT
        }) {
            small.pour_into(&mut fresh);
        }
        self.segments.extend(fresh.into_segments(self.dimension));
        self.write_directory();
    }

    fn write_directory(&mut self) {
        let stretch = |(segment, rows): (usize, &Segment)| {
            let (first, reach) = (*rows.ids().first()?, *rows.ids().last()?);
            Some(Stretch { first, reach, segment })
        };
        self.directory = self.segments.iter().enumerate().filter_map(stretch).collect();
        self.directory.sort_by_key(|stretch| stretch.first);
        let mut reach = i64::MIN;
        for stretch in &mut self.directory {
            reach = reach.max(stretch.reach);
            stretch.reach = reach;
        }
    }
}
