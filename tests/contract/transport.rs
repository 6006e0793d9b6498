//! The contract of the transport port.
