//! Says in the log what was refused, without letting clients fill it.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// The least time between two lines about one group.
const INTERVAL: Duration = Duration::from_mins(1);

/// The most characters of a refused value that are shown.
const VALUE_CHARS: usize = 200;

/// What is told of together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Group {
    Mcp,
    Health,
    Admin,
    Sessions,
    Calls,
    Connections,
}

impl Group {
    const ALL: [Self; 6] =
        [Self::Mcp, Self::Health, Self::Admin, Self::Sessions, Self::Calls, Self::Connections];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Mcp => "mcp",
            Self::Health => "health",
            Self::Admin => "admin",
            Self::Sessions => "sessions",
            Self::Calls => "calls",
            Self::Connections => "connections",
        }
    }
}

/// What was refused so far.
#[derive(Debug, Default)]
pub(super) struct Refusals(Mutex<[Told; Group::ALL.len()]>);

#[derive(Clone, Copy, Debug, Default)]
struct Told {
    last: Option<Instant>,
    left_out: u64,
    all: u64,
}

impl Refusals {
    /// Logs a refusal: at most one line per group and minute, with the number of
    /// those before it that had none.
    pub(super) fn tell(&self, group: Group, now: Instant, what: &str, value: &str) {
        if let Some(left_out) = self.turn(group, now) {
            let value: String =
                value.chars().take(VALUE_CHARS).flat_map(char::escape_default).collect();
            tracing::warn!(group = group.name(), value, left_out, "{what}");
        }
    }

    /// Counts a refusal; returns the number left out before it if it is to be
    /// told.
    fn turn(&self, group: Group, now: Instant) -> Option<u64> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let told = &mut all[group as usize];
        told.all += 1;
        if told.last.is_some_and(|last| now.duration_since(last) < INTERVAL) {
            told.left_out += 1;
            return None;
        }
        told.last = Some(now);
        Some(std::mem::take(&mut told.left_out))
    }

    /// How many were refused in each group.
    pub(super) fn seen(&self) -> impl Iterator<Item = (Group, u64)> + use<> {
        let all = *self.0.lock().unwrap_or_else(PoisonError::into_inner);
        Group::ALL.into_iter().map(move |group| (group, all[group as usize].all))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // HTTP-45
    #[test]
    fn a_group_has_one_line_a_minute_that_tells_how_many_had_none() {
        let refusals = Refusals::default();
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        assert_eq!(refusals.turn(Group::Mcp, at(0)), Some(0));
        for second in 1..60 {
            assert_eq!(refusals.turn(Group::Mcp, at(second)), None);
        }
        assert_eq!(refusals.turn(Group::Admin, at(30)), Some(0));
        assert_eq!(refusals.turn(Group::Mcp, at(60)), Some(59));
        assert_eq!(refusals.turn(Group::Mcp, at(61)), None);
        assert_eq!(refusals.turn(Group::Mcp, at(500)), Some(1));
        let seen: Vec<u64> = refusals.seen().map(|(_, count)| count).collect();
        assert_eq!(seen, [63, 0, 1, 0, 0, 0]);
    }
}
