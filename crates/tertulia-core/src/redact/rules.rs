//! Rules that detect secrets, in the gitleaks format.

use std::collections::BTreeSet;
use std::sync::OnceLock;

use aho_corasick::AhoCorasick;
use regex::{Captures, Match, Regex};
use serde::Deserialize;

use super::verdict::{Candidate, Check};

/// Built-in rules.
const BUILT_IN: &str = include_str!("rules.toml");

/// All rules, with an index from keywords to rules.
#[derive(Debug)]
pub(super) struct Rules {
    rules: Vec<Rule>,
    prefilter: Option<AhoCorasick>,
    /// Index of the rule for each keyword.
    owners: Vec<usize>,
    /// Indices of rules without keywords.
    always: Vec<usize>,
    /// Global allowlists.
    allowed: Vec<Allowlist>,
}

/// Reasons why a rules file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum RulesError {
    /// The file is not a rules file.
    #[error("it is not a file of rules: {0}")]
    Form(String),
    /// The regex of a rule is invalid.
    #[error("the regex of the rule '{rule}' cannot be used: {reason}")]
    Regex {
        /// Id of the rule.
        rule: String,
        /// Error message.
        reason: String,
    },
}

#[derive(Deserialize)]
struct RulesFile {
    #[serde(default)]
    rules: Vec<Rule>,
    #[serde(default)]
    allowlist: Option<Allowlist>,
    #[serde(default)]
    allowlists: Vec<Allowlist>,
}

/// One rule.
#[derive(Debug, Deserialize)]
pub(super) struct Rule {
    id: String,
    /// Kind in the placeholder; defaults to the id.
    #[serde(default)]
    pub kind: String,
    #[serde(default)]
    regex: Option<String>,
    /// Every text that the regex matches contains at least one of these; lower case.
    #[serde(default)]
    keywords: Vec<String>,
    #[serde(default, rename = "secretGroup")]
    secret_group: usize,
    /// Entropy that a secret must exceed, in bits per character.
    #[serde(default)]
    entropy: Option<f64>,
    #[serde(default)]
    check: Check,
    #[serde(default)]
    allowlist: Option<Allowlist>,
    #[serde(default)]
    allowlists: Vec<Allowlist>,
    #[serde(skip)]
    compiled: OnceLock<Option<Regex>>,
}

/// Matches of a rule that are not secrets.
#[derive(Debug, Deserialize)]
struct Allowlist {
    #[serde(default)]
    regexes: Vec<String>,
    #[serde(default, rename = "regexTarget")]
    target: Target,
    #[serde(default)]
    stopwords: Vec<String>,
    #[serde(skip)]
    compiled: OnceLock<Vec<Regex>>,
}

/// Text that the regexes of an allowlist are matched against.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Target {
    #[default]
    Secret,
    Match,
    Line,
}

impl Rules {
    /// Returns the built-in rules. A test ensures that they parse.
    pub fn built_in() -> Rules {
        Rules::of(read(BUILT_IN).into_iter().collect())
    }

    /// Returns the built-in rules followed by those of a file.
    pub fn extended(text: &str) -> Result<Rules, RulesError> {
        let own = read(text)?;
        let everywhere = own.allowlist.iter().chain(&own.allowlists);
        for regex in everywhere.flat_map(|list| &list.regexes) {
            tried("allowlist", regex)?;
        }
        for rule in &own.rules {
            if let Some(regex) = &rule.regex {
                tried(&rule.id, regex)?;
            }
            for regex in rule.lists().flat_map(|list| &list.regexes) {
                tried(&rule.id, regex)?;
            }
        }
        Ok(Rules::of(read(BUILT_IN).into_iter().chain([own]).collect()))
    }

    fn of(files: Vec<RulesFile>) -> Rules {
        let mut rules: Vec<Rule> = Vec::new();
        let mut allowed = Vec::new();
        for file in files {
            rules.extend(file.rules);
            allowed.extend(file.allowlist.into_iter().chain(file.allowlists));
        }
        for rule in &mut rules {
            if rule.kind.is_empty() {
                rule.kind.clone_from(&rule.id);
            }
        }
        let numbered = || rules.iter().enumerate();
        let keywords =
            || numbered().flat_map(|(at, rule)| rule.keywords.iter().map(move |word| (word, at)));
        Rules {
            prefilter: AhoCorasick::builder()
                .ascii_case_insensitive(true)
                .build(keywords().map(|(word, _)| word))
                .ok(),
            owners: keywords().map(|(_, at)| at).collect(),
            always: numbered()
                .filter(|(_, rule)| rule.keywords.is_empty())
                .map(|(at, _)| at)
                .collect(),
            rules,
            allowed,
        }
    }

    /// Returns all rules, from specific to general.
    pub fn iter(&self) -> impl Iterator<Item = &Rule> {
        self.rules.iter()
    }

    /// Returns the rules that may match a text, from specific to general.
    pub fn with_a_keyword_in(&self, text: &str) -> impl Iterator<Item = &Rule> {
        let numbers: BTreeSet<usize> = match &self.prefilter {
            Some(prefilter) => prefilter
                .find_overlapping_iter(text)
                .map(|hit| self.owners[hit.pattern().as_usize()])
                .chain(self.always.iter().copied())
                .collect(),
            // Without a prefilter, tries all rules: slow is better than a leak.
            None => (0..self.rules.len()).collect(),
        };
        numbers.into_iter().map(|at| &self.rules[at])
    }

    /// Returns true if a match of a rule in `text` is a secret.
    pub fn accept(
        &self,
        rule: &Rule,
        candidate: &Candidate<'_>,
        whole: Match<'_>,
        text: &str,
    ) -> bool {
        let is_random = rule
            .entropy
            .is_none_or(|least| entropy(candidate.secret) > least);
        is_random
            && rule.check.accepts(candidate)
            && !rule
                .lists()
                .chain(&self.allowed)
                .any(|list| list.has(candidate.secret, whole, text))
    }
}

impl Rule {
    /// Returns the regex, compiled at its first use.
    pub fn regex(&self) -> Option<&Regex> {
        let compile = || Regex::new(self.regex.as_deref()?).ok();
        self.compiled.get_or_init(compile).as_ref()
    }

    /// Returns the group of a match that is the secret, or `None` if the regex has no group.
    pub fn secret<'t>(&self, captures: &Captures<'t>) -> Option<Match<'t>> {
        match self.secret_group {
            0 => captures.iter().skip(1).flatten().next(),
            group => captures.get(group),
        }
    }

    #[cfg(test)]
    pub fn keywords(&self) -> &[String] {
        &self.keywords
    }

    fn lists(&self) -> impl Iterator<Item = &Allowlist> {
        self.allowlist.iter().chain(&self.allowlists)
    }
}

impl Allowlist {
    fn has(&self, secret: &str, whole: Match<'_>, text: &str) -> bool {
        let target = match self.target {
            Target::Secret => secret,
            Target::Match => whole.as_str(),
            Target::Line => {
                let start = text[..whole.start()].rfind('\n').map_or(0, |at| at + 1);
                let end = text[whole.end()..].find('\n');
                &text[start..end.map_or(text.len(), |at| whole.end() + at)]
            }
        };
        let regexes = self.compiled.get_or_init(|| {
            let compiled = self.regexes.iter().map(|regex| Regex::new(regex));
            compiled.filter_map(Result::ok).collect()
        });
        let lowercase = secret.to_ascii_lowercase();
        regexes.iter().any(|regex| regex.is_match(target))
            || self
                .stopwords
                .iter()
                .any(|word| lowercase.contains(&word.to_ascii_lowercase()))
    }
}

fn read(text: &str) -> Result<RulesFile, RulesError> {
    toml::from_str(text).map_err(|error| RulesError::Form(error.to_string()))
}

fn tried(rule: &str, regex: &str) -> Result<(), RulesError> {
    match Regex::new(regex) {
        Ok(_) => Ok(()),
        Err(error) => Err(RulesError::Regex {
            rule: rule.to_owned(),
            reason: error.to_string(),
        }),
    }
}

/// Shannon entropy, in bits per character.
fn entropy(text: &str) -> f64 {
    let mut counts = std::collections::BTreeMap::new();
    for c in text.chars() {
        *counts.entry(c).or_insert(0_u32) += 1;
    }
    let total = f64::from(counts.values().sum::<u32>());
    counts
        .values()
        .map(|count| {
            let share = f64::from(*count) / total;
            -share * share.log2()
        })
        .sum()
}
