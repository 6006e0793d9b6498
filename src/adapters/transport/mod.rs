//! Adapters of the transport port.
