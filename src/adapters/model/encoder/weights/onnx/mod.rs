//! The weights in an ONNX file, without anything that runs ONNX.

mod graph;
mod matching;
mod wire;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::path::Path;

use grooveseek_kernels::Stored;

use crate::adapters::model::encoder::error::LoadError;
use crate::adapters::model::encoder::sentence::is_plain_name;
use crate::adapters::model::encoder::weights::onnx::graph::{Constant, Data, External};
use crate::adapters::model::encoder::weights::onnx::matching::{Matched, Refusal};
use crate::adapters::model::encoder::weights::onnx::wire::Fields;
use crate::adapters::model::encoder::weights::part::Part;
use crate::adapters::model::encoder::weights::{Numbers, Tensor, Weights};

/// Opens the weights of a model in an ONNX file and the files beside it.
pub(super) fn open(path: &Path) -> Result<Weights, LoadError> {
    let model = Part::open(path)?;
    let mut weights = Weights::new(path);
    // The model's own part comes first; the others are opened as they are met.
    let (tensors, parts) = {
        let graph = graph::read(model.bytes()).map_err(|damage| LoadError::Unreadable {
            path: path.to_path_buf(),
            source: damage.into(),
        })?;
        let matched = matching::find(&graph).map_err(|refusal| match refusal {
            Refusal::Unsupported(reason) => LoadError::unsupported(path, reason),
            Refusal::Malformed(reason) => LoadError::malformed(path, reason),
        })?;
        let mut placing =
            Placing { path, file: model.bytes(), parts: Vec::new(), external: BTreeMap::new() };
        let mut tensors = Vec::new();
        for (name, matched) in matched {
            let tensor = placing.tensor(&name, matched)?;
            tensors.push((name, tensor));
        }
        (tensors, placing.parts)
    };
    weights.parts.push(model);
    weights.parts.extend(parts);
    for (name, tensor) in tensors {
        weights.add(name, tensor)?;
    }
    Ok(weights)
}

/// Finds the bytes of tensors.
struct Placing<'a> {
    path: &'a Path,
    file: &'a [u8],
    /// All parts but the model's own, which counts as the first.
    parts: Vec<Part>,
    /// The parts that are files beside the model's, by name.
    external: BTreeMap<&'a str, usize>,
}

impl<'a> Placing<'a> {
    fn tensor(&mut self, name: &str, matched: Matched<'a, '_>) -> Result<Tensor, LoadError> {
        let Matched { constant, layout } = matched;
        let malformed =
            |reason: &str| LoadError::malformed(self.path, format!("tensor {name} {reason}"));
        let sides = constant.sides.iter().map(|&side| usize::try_from(side));
        let shape = sides.collect::<Result<Vec<usize>, _>>();
        let shape = shape.map_err(|_| malformed("has a side that is too long"))?;
        let mut numbers = match constant.kind {
            1 => Numbers::Known(Stored::F32),
            10 => Numbers::Known(Stored::F16),
            16 => Numbers::Known(Stored::Bf16),
            kind => Numbers::Other(format!("numbers of ONNX's kind {kind}")),
        };
        let (part, place) = match &constant.data {
            Data::Raw(place) => (0, place.clone()),
            Data::Floats(place) => {
                if constant.kind != 1 {
                    numbers = Numbers::Other("numbers of two kinds".to_owned());
                }
                (0, place.clone())
            }
            Data::Integers(_) if numbers == Numbers::Known(Stored::F32) => {
                return Err(malformed("has whole numbers for its fractions"));
            }
            Data::Integers(place) => {
                let bytes = halves(self.file, place.clone(), &shape);
                let bytes = bytes.ok_or_else(|| malformed("has other numbers than its shape"))?;
                let place = 0..bytes.len();
                (self.add(Part::of_memory(self.path, bytes)), place)
            }
            Data::External(external) => self.external(name, constant, *external)?,
            Data::Nowhere if shape.contains(&0) => (0, 0..0),
            Data::Nowhere => return Err(malformed("has no numbers")),
            Data::Pieces => return Err(malformed("has its numbers in several pieces")),
        };
        let own = if constant.name.is_empty() { name } else { constant.name };
        Ok(Tensor { name: own.to_owned(), part, place, numbers, shape, layout })
    }

    fn add(&mut self, part: Part) -> usize {
        self.parts.push(part);
        self.parts.len()
    }

    fn external(
        &mut self,
        name: &str,
        constant: &Constant<'a>,
        external: External<'a>,
    ) -> Result<(usize, std::ops::Range<usize>), LoadError> {
        let malformed =
            |reason: String| LoadError::malformed(self.path, format!("tensor {name} {reason}"));
        let External { location, offset, length } = external;
        if !is_plain_name(location) {
            return Err(malformed(format!("lies in {location:?}, which is no file beside it")));
        }
        let bytes_each: u64 = if constant.kind == 1 { 4 } else { 2 };
        let needed = constant.sides.iter().try_fold(bytes_each, |all, side| all.checked_mul(*side));
        let place = length.or(needed).and_then(|length| {
            let from = usize::try_from(offset).ok()?;
            Some(from..from.checked_add(usize::try_from(length).ok()?)?)
        });
        let place = place.ok_or_else(|| malformed("is too long".to_owned()))?;
        if let Some(&part) = self.external.get(location) {
            return Ok((part, place));
        }
        let beside = self.path.parent().unwrap_or(Path::new("")).join(location);
        let part = self.add(Part::open(&beside)?);
        self.external.insert(location, part);
        Ok((part, place))
    }
}

/// Numbers of 16 bits, each of which the file has as a whole number.
///
/// - Returns nothing if they are not as many as the shape has.
fn halves(file: &[u8], place: std::ops::Range<usize>, shape: &[usize]) -> Option<Vec<u8>> {
    let count = shape.iter().try_fold(1, |all: usize, &side| all.checked_mul(side))?;
    // Each takes a byte at least, so that the count bounds what is reserved.
    if count > place.len() {
        return None;
    }
    let mut bytes = Vec::with_capacity(2 * count);
    let mut list = Fields::of(file, place);
    while !list.is_empty() {
        let bits = u16::try_from(list.number().ok()?).ok()?;
        bytes.extend(bits.to_le_bytes());
        if bytes.len() > 2 * count {
            return None;
        }
    }
    (bytes.len() == 2 * count).then_some(bytes)
}
