//! The list of cases: what is loaded, who takes part, and what mcp-proxy must reach.

use crate::canned::{AnswerSize, BenchEra};
use crate::contender::{ContenderKind, TransportPair, ViewerHabit};

/// One load, measured for several contenders in turn.
pub struct BenchCase {
    pub name: &'static str,
    pub shape: TransportPair,
    pub era: BenchEra,
    pub size: AnswerSize,
    pub in_flight: usize,
    pub who: &'static [ContenderKind],
    pub goals: &'static [Goal],
}

/// A figure of mcp-proxy and its bound.
#[derive(Clone, Copy, Debug)]
pub enum Goal {
    /// Throughput, at least this share of nginx's.
    RateOfNginx(f64),
    /// CPU a request, at most this much of nginx's.
    CpuOfNginx(f64),
    /// Added median latency, at most this much of nginx's.
    AddedOfNginx(f64),
    /// Throughput, at least this share of no proxy at all.
    RateOfDirect(f64),
    /// Added median latency in microseconds, at most.
    AddedMicroseconds(f64),
    /// Peak memory, at most idle and this many times the bytes in flight.
    PeakOverFlight(f64),
    /// Throughput with the record on, at least this share of our own without.
    RateOfOwnUnrecorded(f64),
    /// Throughput with the record on and a viewer attached, at least this share of our own with the record on.
    RateOfOwnUnviewed(ViewerHabit, f64),
    /// Throughput with the record on and 1,000 rules for other messages, at least this share of our own with the record on.
    RateOfOwnUnruled(f64),
    /// Throughput of 2026-07-28 requests, at least this share of our own for 2025.
    RateOfOwnLegacy(f64),
}

/// Goals of the case `start`, which has no load: milliseconds to the first answered `initialize`.
pub const START_MS: f64 = 8.0;
/// Resident memory of an idle proxy.
pub const IDLE_MB: f64 = 12.0;
/// Private memory of one guard: what each further server adds to the pages that the proxy has mapped already.
pub const GUARD_MB: f64 = 1.0;
/// The name of the case that starts instead of loading.
pub const START: &str = "start";
/// Who is started in it.
pub const STARTERS: &[ContenderKind] = &[
    ContenderKind::Direct,
    ContenderKind::Nginx,
    ContenderKind::Floor,
    ContenderKind::Proxy,
    ContenderKind::Before,
    ContenderKind::Npm,
    ContenderKind::Pypi,
];

use ContenderKind::{
    Direct, Floor, FloorModern, Modern, Nginx, Npm, Proxy, Pypi, Recording, Ruled, Viewed,
};

pub const CASES: &[BenchCase] = &[
    BenchCase {
        name: "hh-small-c16",
        shape: TransportPair::HttpToHttp,
        era: BenchEra::Legacy,
        size: AnswerSize::Small,
        in_flight: 16,
        who: &[
            Direct,
            Nginx,
            Floor,
            Proxy,
            Recording,
            Viewed(ViewerHabit::Reads),
            Viewed(ViewerHabit::Stops),
            Ruled,
            Modern,
            FloorModern,
        ],
        goals: &[
            Goal::RateOfNginx(0.85),
            Goal::CpuOfNginx(1.25),
            Goal::RateOfOwnUnrecorded(0.80),
            Goal::RateOfOwnUnviewed(ViewerHabit::Reads, 0.90),
            Goal::RateOfOwnUnviewed(ViewerHabit::Stops, 0.90),
            Goal::RateOfOwnUnruled(0.90),
            Goal::RateOfOwnLegacy(0.90),
        ],
    },
    BenchCase {
        name: "hh-small-c1",
        shape: TransportPair::HttpToHttp,
        era: BenchEra::Legacy,
        size: AnswerSize::Small,
        in_flight: 1,
        who: &[Direct, Nginx, Floor, Proxy],
        goals: &[Goal::AddedOfNginx(1.5)],
    },
    BenchCase {
        name: "hh-1mb-c4",
        shape: TransportPair::HttpToHttp,
        era: BenchEra::Legacy,
        size: AnswerSize::OneMegabyte,
        in_flight: 4,
        who: &[Direct, Nginx, Floor, Proxy, Recording],
        goals: &[
            Goal::RateOfNginx(0.95),
            Goal::PeakOverFlight(3.0),
            Goal::RateOfOwnUnrecorded(0.4),
        ],
    },
    BenchCase {
        name: "hh-10mb-c2",
        shape: TransportPair::HttpToHttp,
        era: BenchEra::Legacy,
        size: AnswerSize::TenMegabytes,
        in_flight: 2,
        who: &[Direct, Nginx, Floor, Proxy],
        goals: &[Goal::RateOfNginx(0.95), Goal::PeakOverFlight(3.0)],
    },
    BenchCase {
        name: "hs-small-16",
        shape: TransportPair::HttpToStdio,
        era: BenchEra::Legacy,
        size: AnswerSize::Small,
        in_flight: 16,
        who: &[Direct, Floor, Proxy, Recording, Npm, Pypi],
        goals: &[Goal::RateOfDirect(0.33), Goal::RateOfOwnUnrecorded(0.80)],
    },
    BenchCase {
        name: "hs-small-16-modern",
        shape: TransportPair::HttpToStdio,
        era: BenchEra::Modern,
        size: AnswerSize::Small,
        in_flight: 16,
        who: &[Direct, Floor, Proxy, Recording, Npm],
        goals: &[Goal::RateOfDirect(0.50), Goal::RateOfOwnUnrecorded(0.80)],
    },
    BenchCase {
        name: "sh-small-32",
        shape: TransportPair::StdioToHttp,
        era: BenchEra::Legacy,
        size: AnswerSize::Small,
        in_flight: 32,
        who: &[Direct, Floor, Proxy, Recording, Modern, FloorModern, Pypi],
        goals: &[
            Goal::RateOfDirect(0.17),
            Goal::RateOfOwnUnrecorded(0.80),
            Goal::RateOfOwnLegacy(0.90),
        ],
    },
    BenchCase {
        name: "sh-small-1",
        shape: TransportPair::StdioToHttp,
        era: BenchEra::Legacy,
        size: AnswerSize::Small,
        in_flight: 1,
        who: &[Direct, Floor, Proxy, Pypi],
        goals: &[Goal::AddedMicroseconds(85.0)],
    },
    BenchCase {
        name: "ss-small-32",
        shape: TransportPair::StdioToStdio,
        era: BenchEra::Legacy,
        size: AnswerSize::Small,
        in_flight: 32,
        who: &[
            Direct,
            Floor,
            Proxy,
            Recording,
            Viewed(ViewerHabit::Reads),
            Viewed(ViewerHabit::Stops),
            Ruled,
            Modern,
            FloorModern,
        ],
        goals: &[
            Goal::RateOfDirect(0.55),
            Goal::RateOfOwnUnrecorded(0.60),
            Goal::RateOfOwnUnviewed(ViewerHabit::Reads, 0.90),
            Goal::RateOfOwnUnviewed(ViewerHabit::Stops, 0.90),
            Goal::RateOfOwnUnruled(0.90),
            Goal::RateOfOwnLegacy(0.90),
        ],
    },
    BenchCase {
        name: "ss-small-1",
        shape: TransportPair::StdioToStdio,
        era: BenchEra::Legacy,
        size: AnswerSize::Small,
        in_flight: 1,
        who: &[Direct, Floor, Proxy],
        goals: &[Goal::AddedMicroseconds(25.0)],
    },
    BenchCase {
        name: "ss-1mb",
        shape: TransportPair::StdioToStdio,
        era: BenchEra::Legacy,
        size: AnswerSize::OneMegabyte,
        in_flight: 4,
        who: &[Direct, Floor, Proxy, Recording],
        goals: &[
            Goal::RateOfDirect(1.0),
            Goal::PeakOverFlight(3.0),
            Goal::RateOfOwnUnrecorded(0.4),
        ],
    },
];
