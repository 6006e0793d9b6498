//! Adapters of the source port.
