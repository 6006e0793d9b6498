//! The encoding of protocol buffers, read in place.

use std::ops::Range;

/// A message as a range of a file's bytes; its fields come one after another.
///
/// Nothing is copied and nothing is looked at twice: a field that nobody wants
/// costs the few bytes in front of it. Messages inside are ranges again, which
/// the reader may open; the reader decides how deep that goes.
pub(super) struct Fields<'a> {
    file: &'a [u8],
    /// What is left of the message.
    rest: Range<usize>,
}

/// A field of a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Field {
    pub(super) number: u64,
    pub(super) value: Value,
}

/// What a field holds, before its type is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Value {
    /// A whole number.
    Number(u64),
    /// Eight or four bytes, as a number has them.
    Fixed,
    /// Text, bytes, a message, or a list of numbers: where it lies.
    Bytes(Range<usize>),
}

/// What is wrong with a file, and where.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{what} at byte {at}")]
pub(super) struct Damage {
    pub(super) what: &'static str,
    pub(super) at: usize,
}

impl<'a> Fields<'a> {
    /// The fields of the message in a range, which is cut to the file.
    pub(super) fn of(file: &'a [u8], message: Range<usize>) -> Self {
        let end = message.end.min(file.len());
        Self { file, rest: message.start.min(end)..end }
    }

    /// Reads a whole number of at most ten bytes, the lowest seven bits first.
    pub(super) fn number(&mut self) -> Result<u64, Damage> {
        let at = self.rest.start;
        let damage = |what| Damage { what, at };
        let mut number = 0_u64;
        for shift in (0..70).step_by(7) {
            let byte = self.file.get(self.rest.start).copied().filter(|_| !self.rest.is_empty());
            let byte = byte.ok_or(damage("a number that breaks off"))?;
            self.rest.start += 1;
            if shift == 63 && byte > 1 {
                return Err(damage("a number of more than 64 bits"));
            }
            number |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok(number);
            }
        }
        Err(damage("a number of more than 64 bits"))
    }

    /// Whether nothing is left.
    pub(super) fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    fn take(&mut self, length: u64) -> Result<Range<usize>, Damage> {
        let at = self.rest.start;
        let end = usize::try_from(length)
            .ok()
            .and_then(|length| at.checked_add(length))
            .filter(|end| *end <= self.rest.end)
            .ok_or(Damage { what: "a field that reaches beyond its message", at })?;
        self.rest.start = end;
        Ok(at..end)
    }

    fn read(&mut self) -> Result<Field, Damage> {
        let at = self.rest.start;
        let key = self.number()?;
        let value = match key & 7 {
            0 => Value::Number(self.number()?),
            1 => self.take(8).map(|_| Value::Fixed)?,
            2 => {
                let length = self.number()?;
                Value::Bytes(self.take(length)?)
            }
            5 => self.take(4).map(|_| Value::Fixed)?,
            _ => return Err(Damage { what: "a field of no known kind", at }),
        };
        if key >> 3 == 0 {
            return Err(Damage { what: "a field without a number", at });
        }
        Ok(Field { number: key >> 3, value })
    }
}

impl Iterator for Fields<'_> {
    type Item = Result<Field, Damage>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        let field = self.read();
        if field.is_err() {
            self.rest.start = self.rest.end;
        }
        Some(field)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn fields(bytes: &[u8]) -> Result<Vec<Field>, Damage> {
        Fields::of(bytes, 0..bytes.len()).collect()
    }

    #[test]
    fn fields_are_read_as_the_encoding_defines_them() {
        let bytes =
            [0x08, 0x96, 0x01, 0x12, 2, b'a', b'b', 0x1d, 1, 2, 3, 4, 0x21, 0, 0, 0, 0, 0, 0, 0, 0];
        let expected = [
            (1, Value::Number(150)),
            (2, Value::Bytes(5..7)),
            (3, Value::Fixed),
            (4, Value::Fixed),
        ];
        let expected = expected.map(|(number, value)| Field { number, value });
        assert_eq!(fields(&bytes).unwrap(), expected);
    }

    #[test]
    fn what_breaks_off_or_claims_too_much_is_damage() {
        let most = [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01];
        assert_eq!(
            fields(&[&[0x08], &most[..]].concat()).unwrap()[0].value,
            Value::Number(u64::MAX)
        );
        for bytes in [
            &[0x08][..],
            &[0x08, 0x80],
            &[0x0a, 5, 1],
            &[&[0x0a], &most[..]].concat(),
            &[&[0x08], &[0x80; 10][..], &[1]].concat(),
            &[0x08, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x02],
            &[0x0b, 0x0c],
            &[0x0e, 1],
            &[0x02, 0],
            &[0x09, 1, 2],
        ] {
            assert!(fields(bytes).is_err(), "{bytes:x?}");
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_fields_or_damage(bytes: Vec<u8>, from in 0_usize..40, to in 0_usize..400) {
            for field in Fields::of(&bytes, from..to).flatten() {
                if let Value::Bytes(place) = field.value {
                    prop_assert!(place.start <= place.end && place.end <= bytes.len());
                }
            }
        }
    }
}
