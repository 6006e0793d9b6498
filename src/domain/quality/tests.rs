use proptest::prelude::*;

use super::*;

const PROFILES: [Profile; 3] = [Profile::Text, Profile::Binary, Profile::Definition];

fn with(names: &[&str]) -> Rules {
    Rules { signals: Signals::from_names(names).unwrap(), ..Rules::default() }
}

fn assert_scored(rules: &Rules, content: &str, heading: &str, expected: f32) {
    let score = rules.score(content, Some(heading), Profile::Text);
    assert!((score - expected).abs() < 1e-5, "{heading:?} {content:?}: {score}");
}

fn assert_score(content: &str, profile: Profile, expected: f32) {
    let score = Rules::default().score(content, Some("Heading"), profile);
    assert!((score - expected).abs() < 1e-5, "{content:?} as {profile:?}: {score}");
}

// QUA-01 QUA-03 QUA-04 QUA-05 QUA-08
#[test]
fn the_penalties_add_up_as_the_table_says() {
    let short = "x".repeat(29);
    assert_score(&"x".repeat(80), Profile::Text, 1.0);
    assert_score(&format!("{}\n{}", "x".repeat(14), "x".repeat(15)), Profile::Text, 1.0);
    assert_score(&"x".repeat(30), Profile::Text, 0.7);
    assert_score(&"x".repeat(79), Profile::Text, 0.7);
    assert_score("two\nlines", Profile::Text, 0.4);
    assert_score(&short, Profile::Text, 0.1);
    assert_score("", Profile::Text, 0.1);
    assert_score("TODO", Profile::Text, 0.0);
    for profile in [Profile::Binary, Profile::Definition] {
        assert_score("TODO", profile, 0.5);
        for content in ["", "MAXYEAR = 9999", short.as_str()] {
            assert_score(content, profile, 1.0);
        }
    }
}

// QUA-02
#[test]
fn length_counts_characters_between_the_white_space_around_them() {
    assert_score(&"字".repeat(29), Profile::Text, 0.1);
    assert_score(&"字".repeat(30), Profile::Text, 0.7);
    assert_score(&format!("\n\n {} \n", "x".repeat(29)), Profile::Text, 0.1);
}

// QUA-06 QUA-07
#[test]
fn the_profile_follows_from_the_format_and_the_definition() {
    assert_eq!(Profile::of(Class::Text, None), Profile::Text);
    assert_eq!(Profile::of(Class::Code, None), Profile::Text);
    assert_eq!(Profile::of(Class::Code, Some("constant")), Profile::Definition);
    assert_eq!(Profile::of(Class::Binary, None), Profile::Binary);
}

// QUA-B02 QUA-22
#[test]
fn the_profile_of_a_row_follows_from_its_extension_whatever_is_switched_on() {
    for extension in ["pdf", "PDF", "docx", "xlsx", "Pptx"] {
        assert_eq!(Profile::of_extension(extension, None), Profile::Binary);
    }
    for extension in ["md", "txt", "rs", "", "unheard-of"] {
        assert_eq!(Profile::of_extension(extension, None), Profile::Text);
    }
    assert_eq!(Profile::of_extension("py", Some("constant")), Profile::Definition);
    for format in SUPPORTED {
        let kind = (format.class == Class::Code).then_some("function");
        assert_eq!(Profile::of_extension(format.extension, kind), Profile::of(format.class, kind));
    }
}

// QUA-15
#[test]
fn what_no_signal_lowers_scores_exactly_one() {
    let text = "A paragraph that is long enough to be worth finding, and that goes on a little beyond that.";
    for rules in [Rules::default(), with(&Signals::NAMES)] {
        for (content, profile) in
            [(text, Profile::Text), ("MAXYEAR = 9999", Profile::Definition), ("", Profile::Binary)]
        {
            let score = rules.score(content, None, profile);
            assert_eq!(score.to_bits(), 1.0_f32.to_bits(), "{content:?}");
        }
    }
}

// QUA-B04
#[test]
fn with_cjk_width_a_wide_character_counts_as_two() {
    let rules = with(&["cjk_width"]);
    assert_scored(&rules, &"字".repeat(14), "", 0.1);
    assert_scored(&rules, &"字".repeat(15), "", 0.7);
    assert_scored(&rules, &"字".repeat(39), "", 0.7);
    assert_scored(&rules, &"字".repeat(40), "", 1.0);
    assert_scored(&rules, &format!("{}x", "字".repeat(14)), "", 0.1);
    assert_scored(&rules, &"x".repeat(29), "", 0.1);
}

// QUA-B05
#[test]
fn with_heading_a_heading_is_a_line_above_the_content() {
    let rules = with(&["heading"]);
    assert_scored(&rules, "3100", "Port", 0.4);
    assert_scored(&rules, "3100", "The port that the service listens on", 1.0);
    assert_scored(&rules, "3100", "  ", 0.1);
    assert_scored(&rules, "TODO", "The port that the service listens on", 0.0);
    assert_scored(&rules, "", "The port that the service listens on", 0.1);
    assert!((rules.score("3100", None, Profile::Text) - 0.1).abs() < 1e-5);
}

// QUA-B08
#[test]
fn with_mojibake_text_that_was_not_decoded_is_penalised_in_every_profile() {
    let rules = with(&["mojibake"]);
    let broken = format!("{}\n{}", "x".repeat(90), "\u{FFFD}".repeat(10));
    for profile in PROFILES {
        assert!((rules.score(&broken, None, profile) - 0.2).abs() < 1e-5);
        assert!((Rules::default().score(&broken, None, profile) - 1.0).abs() < 1e-5);
        let sound = "x".repeat(100);
        assert!((rules.score(&sound, None, profile) - 1.0).abs() < 1e-5);
    }
}

// QUA-B06
#[test]
fn every_penalty_can_be_told() {
    let rules = with(&["mojibake"]);
    let told = |content| rules.explain(content, None, Profile::Text);
    assert_eq!(told("TBD"), [Penalty::Boilerplate, Penalty::Length, Penalty::Structure]);
    assert_eq!(told("\u{FFFD}"), [Penalty::Length, Penalty::Structure, Penalty::Mojibake]);
    assert_eq!(told("two\nlines"), [Penalty::Length]);
    assert_eq!(rules.explain("TBD", None, Profile::Binary), [Penalty::Boilerplate]);
}

// QUA-23
#[test]
fn the_generation_changes_exactly_with_what_scores_go_by() {
    let phrases = |phrases: &[&str]| Rules {
        extra_boilerplate: phrases.iter().map(|&phrase| phrase.to_owned()).collect(),
        ..Rules::default()
    };
    let same = phrases(&["b", "A"]).generation();
    assert_eq!(phrases(&["a!", "**B**", "a", "..."]).generation(), same);
    assert_eq!(phrases(&["..."]).generation(), Rules::default().generation());
    // Stored indexes hold this text: where it changes, every score is computed again.
    assert_eq!(Rules::default().generation(), "2-cbf29ce484222325");
    let mut all = vec![
        Rules::default().generation(),
        same,
        phrases(&["ab"]).generation(),
        phrases(&["heading"]).generation(),
        with(&Signals::NAMES).generation(),
    ];
    all.extend(Signals::NAMES.map(|name| with(&[name]).generation()));
    let count = all.len();
    all.sort_unstable();
    all.dedup();
    assert_eq!(all.len(), count);
}

proptest! {
    // QUA-01 QUA-02
    #[test]
    fn a_score_stays_in_its_range_and_ignores_white_space_around(
        content in ".{0,100}",
        heading in proptest::option::of(".{0,40}"),
        signals in proptest::sample::subsequence(Signals::NAMES.to_vec(), 0..=3),
    ) {
        let rules = with(&signals);
        let heading = heading.as_deref();
        for profile in PROFILES {
            let plain = rules.score(&content, heading, profile);
            prop_assert!((0.0..=1.0).contains(&plain));
            let padded = rules.score(&format!("\n {content}\t\n"), heading, profile);
            prop_assert_eq!(plain.to_bits(), padded.to_bits());
            prop_assert_eq!(rules.explain(&content, heading, profile).is_empty(), plain >= 1.0);
        }
    }

    // QUA-02
    #[test]
    fn without_its_signal_a_heading_plays_no_part(content in ".{0,100}", heading in ".{0,100}") {
        let rules = with(&["cjk_width", "mojibake"]);
        for profile in PROFILES {
            let bare = rules.score(&content, None, profile);
            prop_assert_eq!(bare.to_bits(), rules.score(&content, Some(&heading), profile).to_bits());
        }
    }
}
