//! The contract of the parser port.
