//! To be filled.

/// The damping of reciprocal rank fusion.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RankConstant(f32);

impl Default for RankConstant {
    fn default() -> Self {
        Self(60.0)
    }
}
