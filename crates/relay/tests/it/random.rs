//! Random sequences of events against a model: nobody crashes the relay, no answer reaches another than the one who asked, no
//! command reaches another connection's tab, and nothing stays open. Also with preserved ids, with several connections of a
//! client, with extensions that attach to one tab for all clients, and in direct mode.

mod world;

use mcp_proxy_relay::{CommandIdMode, IdSource, RelayAccess, RelaySettings, UserRelay};
use proptest::prelude::*;

use self::world::World;

const CLIENTS: usize = 3;
const EXTENSIONS: usize = 2;

#[derive(Clone, Debug)]
enum Event {
    ClientJoins(usize),
    ClientLeaves(usize),
    ClientSays(usize, Request),
    ExtensionJoins(usize),
    ExtensionLeaves(usize),
    /// The extension answers the oldest or newest thing that it was asked.
    ExtensionAnswers(usize, bool, Answer),
    ExtensionBabbles(usize, u8),
    /// An extension answers what another extension was asked.
    ExtensionForges(usize, Forgery),
    /// A client answers what an extension was asked.
    ClientForges(usize, Forgery),
    Wait(u8),
}

#[derive(Clone, Debug)]
enum Request {
    Connect(usize),
    Disconnect,
    List,
    CreateTab,
    GetTabs,
    /// A command on the tab with this number, modulo those that exist.
    OnTab(u8),
    OnCurrentTab,
    SelectIndex(u8),
    /// The id of the last request once more.
    Repeat,
    Nonsense,
}

/// An answer to what somebody else was asked.
#[derive(Clone, Copy, Debug)]
struct Forgery {
    /// Which of all open questions, modulo their number.
    which: u8,
    kind: ForgedAnswer,
}

#[derive(Clone, Copy, Debug)]
enum ForgedAnswer {
    Result,
    Error,
}

#[derive(Clone, Debug)]
enum Answer {
    Result,
    Error,
    Empty,
}

fn event() -> impl Strategy<Value = Event> {
    let request = prop_oneof![
        3 => (0..EXTENSIONS).prop_map(Request::Connect),
        1 => Just(Request::Disconnect),
        1 => Just(Request::List),
        4 => Just(Request::CreateTab),
        2 => Just(Request::GetTabs),
        4 => any::<u8>().prop_map(Request::OnTab),
        4 => Just(Request::OnCurrentTab),
        2 => (0u8..4).prop_map(Request::SelectIndex),
        1 => Just(Request::Repeat),
        1 => Just(Request::Nonsense),
    ];
    let answer = prop_oneof![
        9 => Just(Answer::Result),
        1 => Just(Answer::Error),
        1 => Just(Answer::Empty),
    ];
    let kind = prop_oneof![Just(ForgedAnswer::Result), Just(ForgedAnswer::Error),];
    let forgery = (any::<u8>(), kind).prop_map(|(which, kind)| Forgery { which, kind });
    prop_oneof![
        2 => (0..CLIENTS).prop_map(Event::ClientJoins),
        1 => (0..CLIENTS).prop_map(Event::ClientLeaves),
        12 => ((0..CLIENTS), request).prop_map(|(client, request)| Event::ClientSays(client, request)),
        2 => (0..EXTENSIONS).prop_map(Event::ExtensionJoins),
        1 => (0..EXTENSIONS).prop_map(Event::ExtensionLeaves),
        10 => ((0..EXTENSIONS), any::<bool>(), answer)
            .prop_map(|(extension, newest, answer)| Event::ExtensionAnswers(extension, newest, answer)),
        1 => ((0..EXTENSIONS), any::<u8>()).prop_map(|(extension, what)| Event::ExtensionBabbles(extension, what)),
        2 => ((0..EXTENSIONS), forgery.clone())
            .prop_map(|(extension, forgery)| Event::ExtensionForges(extension, forgery)),
        1 => ((0..CLIENTS), forgery)
            .prop_map(|(client, forgery)| Event::ClientForges(client, forgery)),
        1 => (0u8..40).prop_map(Event::Wait),
    ]
}

/// Two clients of one extension, each with a tab: chance alone seldom comes so far.
fn two_clients_with_tabs() -> Vec<Event> {
    let mut events = vec![Event::ExtensionJoins(0)];
    for client in 0..2 {
        events.extend([
            Event::ClientJoins(client),
            Event::ClientSays(client, Request::Connect(0)),
            Event::ClientSays(client, Request::CreateTab),
            Event::ExtensionAnswers(0, false, Answer::Result),
        ]);
    }
    events
}

fn play_all(
    settings: RelaySettings,
    events: impl IntoIterator<Item = Event>,
) -> Result<(), TestCaseError> {
    let mut world = World::new(&settings);
    let mut relay = UserRelay::new("ada", settings, IdSource::Counting(0));
    for event in events {
        world.play(&mut relay, event);
    }
    // Nothing waits for longer than a command may take.
    for _ in 0..4 {
        world.play(&mut relay, Event::Wait(31));
    }
    for end in world.clients.values().filter(|end| !end.is_closed) {
        prop_assert!(end.open.is_empty(), "still open: {:?}", end.open);
    }
    for client in 0..CLIENTS {
        world.play(&mut relay, Event::ClientLeaves(client));
    }
    for extension in 0..EXTENSIONS {
        world.play(&mut relay, Event::ExtensionLeaves(extension));
    }
    world.play(&mut relay, Event::Wait(31));
    world.play(&mut relay, Event::Wait(31));
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 10_000, ..ProptestConfig::default() })]

    #[test]
    fn whatever_happens_everybody_gets_their_own_answers(
        events in proptest::collection::vec(event(), 1..40),
        (preserves_ids, multi_connection, shared_debugger) in any::<(bool, bool, bool)>(),
        is_prepared in any::<bool>(),
    ) {
        let settings = RelaySettings {
            id_mode: match preserves_ids {
                true => CommandIdMode::Preserve,
                false => CommandIdMode::Map,
            },
            multi_connection,
            shared_debugger,
            ..RelaySettings::default()
        };
        let prepared = is_prepared.then(two_clients_with_tabs).into_iter().flatten();
        play_all(settings, prepared.chain(events))?;
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, ..ProptestConfig::default() })]

    #[test]
    fn in_direct_mode_too(
        events in proptest::collection::vec(event(), 1..40),
        is_prepared in any::<bool>(),
    ) {
        let settings = RelaySettings {
            access: RelayAccess::Direct,
            ..RelaySettings::default()
        };
        let prepared = is_prepared.then(two_clients_with_tabs).into_iter().flatten();
        play_all(settings, prepared.chain(events))?;
    }
}
