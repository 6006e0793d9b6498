//! Local models, whatever they do: which are known, where their files are, and
//! how those that are not here are fetched.

pub mod catalogue;

pub mod locate;

pub mod hub;

pub mod encoder;
