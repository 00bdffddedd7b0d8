//! What is told of responses, as JSON.

use serde::{Deserialize, Serialize};

/// Response times under one policy and under the reference policy, over all replicas.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Responses {
    /// Whether they could be judged.
    pub judged: bool,
    /// Why not; null where they were.
    pub why_not: Option<String>,
    /// Whether they are slower than the limit of time allows, and that is no chance. False proves no equality.
    pub slower: bool,
    /// The largest ratio to the reference policy's of a figure that counts; at least 1.
    pub excess: f64,
    /// Shorter responses are not noticed.
    pub floor_s: f64,
    /// Noticed waiting a replica: the sum of the longest responses, as many as exceed the floor under either policy.
    pub waiting_s: f64,
    /// The same under the reference policy.
    pub reference_waiting_s: f64,
    /// Share of the replicas in which work is left unfinished that the reference policy finishes.
    pub unfinished_share: f64,
    /// The kinds of response that count, the one with the most extra waiting first.
    pub kinds: Vec<KindResponses>,
}

/// Responses of one kind: those of tasks of one name and one class of size.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct KindResponses {
    /// The tasks' name.
    pub kind: String,
    /// Class of size: 0 below 1 Mcycle under the reference policy, each further one up to four times as many.
    #[serde(default)]
    pub size_class: u8,
    /// Whether tasks of several names are joined, since each has few episodes.
    #[serde(default)]
    pub joined: bool,
    /// Episodes a replica.
    pub episodes: f64,
    /// Half of the responses take no longer; null below 1 ms.
    pub p50_s: Option<f64>,
    /// 95 of 100 take no longer; null below 1 ms.
    pub p95_s: Option<f64>,
    /// As `p50_s`, under the reference policy.
    pub reference_p50_s: Option<f64>,
    /// As `p95_s`, under the reference policy.
    pub reference_p95_s: Option<f64>,
    /// Noticed waiting a replica.
    pub waiting_s: f64,
    /// The same under the reference policy.
    pub reference_waiting_s: f64,
    /// Ratio of the mean noticed response to the reference policy's; null where too few are noticed.
    pub mean_ratio: Option<f64>,
    /// Ratio of the 95th percentile of the noticed responses; null where too few are noticed.
    pub p95_ratio: Option<f64>,
    /// Whether this kind is slower than the limit of time allows.
    pub slower: bool,
}

impl KindResponses {
    /// The same kind among others' kinds. Joined kinds bear the name of the task that waits longest, which may be another there.
    pub fn like<'k>(&self, kinds: &'k [KindResponses]) -> Option<&'k KindResponses> {
        kinds.iter().find(|k| {
            k.size_class == self.size_class && k.joined == self.joined && (k.joined || k.kind == self.kind)
        })
    }
}
