//! Packed weights that start on a cache line.

/// One cache line of values of four bytes.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(64))]
pub(crate) struct Line<T>([T; LINE]);

/// Values to a cache line.
const LINE: usize = 16;

/// A vector of values of four bytes, of which each sixteenth starts a cache line.
#[derive(Clone, Debug)]
pub(crate) struct Aligned<T>(Vec<Line<T>>);

impl<T: Copy + Default> Aligned<T> {
    /// As many default values as asked for, rounded up to whole lines.
    pub(crate) fn new(count: usize) -> Self {
        const { assert!(size_of::<T>() == 4, "a line is sixteen values of four bytes") };
        Self(vec![Line([T::default(); LINE]); count.div_ceil(LINE)])
    }

    /// The values.
    pub(crate) fn as_slice(&self) -> &[T] {
        // SAFETY: a line is exactly its sixteen values, without padding, and the
        // lines lie side by side.
        unsafe { std::slice::from_raw_parts(self.0.as_ptr().cast(), self.0.len() * LINE) }
    }

    /// The values, to be written.
    pub(crate) fn as_mut_slice(&mut self) -> &mut [T] {
        // SAFETY: as in `as_slice`, and the borrow is exclusive.
        unsafe { std::slice::from_raw_parts_mut(self.0.as_mut_ptr().cast(), self.0.len() * LINE) }
    }

    /// Makes room for at least so many values. What they hold afterwards is left open.
    pub(crate) fn resize(&mut self, count: usize) {
        self.0.resize(count.div_ceil(LINE), Line([T::default(); LINE]));
    }
}

impl<T: Copy + Default> Default for Aligned<T> {
    fn default() -> Self {
        Self::new(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_start_on_a_cache_line_and_are_rounded_up() {
        let mut values = Aligned::<f32>::new(17);
        assert_eq!(values.as_slice().len(), 32);
        assert_eq!(values.as_slice().as_ptr().addr() % 64, 0);
        values.as_mut_slice()[31] = 1.0;
        assert_eq!(values.as_slice().iter().sum::<f32>().to_bits(), 1.0_f32.to_bits());
        values.resize(0);
        assert!(values.as_slice().is_empty());
    }
}
