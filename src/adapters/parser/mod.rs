//! Adapters of the parser port.
