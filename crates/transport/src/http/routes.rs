//! The path table of a listener: which handler answers at which path.

use std::future::ready;
use std::sync::Arc;

use http::Request;
use hyper::body::Incoming;
use mcp_proxy_core::BoxFuture;
use mcp_proxy_wire::ErrorCode;

use super::handler::{Handler, RequestSource};
use super::listener::{HttpResponse, error};

/// The handlers of a listener by path. The longest matching path wins; of equal routes the first one added.
#[derive(Default)]
pub struct Routes {
    handlers: Vec<Arc<dyn Handler>>,
    /// Longest path first, exact paths before prefixes.
    table: Vec<Entry>,
}

/// One path, or all paths below one.
#[derive(Clone, Debug)]
pub struct Route {
    path: String,
    reach: Reach,
    listing: Listing,
    access: Access,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Reach {
    Exact,
    Prefix,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Listing {
    Listed,
    Unlisted,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Access {
    WithToken,
    Open,
}

struct Entry {
    route: Route,
    /// Its place in [`Routes::handlers`].
    handler: usize,
}

impl Route {
    /// This path, with or without a slash at its end.
    pub fn exact(path: &str) -> Route {
        Route {
            path: path.to_owned(),
            reach: Reach::Exact,
            listing: Listing::Listed,
            access: Access::WithToken,
        }
    }

    /// This path and every path below it: `/mcp/p` matches `/mcp/p/work`, but not `/mcp/people`.
    pub fn prefix(path: &str) -> Route {
        Route {
            path: path.trim_end_matches('/').to_owned(),
            reach: Reach::Prefix,
            listing: Listing::Listed,
            access: Access::WithToken,
        }
    }

    /// The same route, but the answer to an unknown path does not name it. For paths that hold secrets, as the URLs of
    /// some servers do, and for those that nobody types.
    #[must_use]
    pub fn unlisted(mut self) -> Route {
        self.listing = Listing::Unlisted;
        self
    }

    /// The same route, served also to clients without the listener's token: for what tells nothing about anybody.
    #[must_use]
    pub fn without_token(mut self) -> Route {
        self.access = Access::Open;
        self
    }

    fn matches(&self, asked: &str) -> bool {
        match self.reach {
            Reach::Exact => {
                asked == self.path || asked.strip_suffix('/') == Some(self.path.as_str())
            }
            Reach::Prefix => asked
                .strip_prefix(self.path.as_str())
                .is_some_and(|rest| rest.is_empty() || rest.starts_with('/')),
        }
    }

    /// How people read it: `/mcp`, `/mcp/p/*`.
    fn text(&self) -> String {
        match self.reach {
            Reach::Exact => self.path.clone(),
            Reach::Prefix => format!("{}/*", self.path),
        }
    }
}

impl Routes {
    /// An empty table.
    pub fn new() -> Routes {
        Routes::default()
    }

    /// The same table with another handler at these routes.
    #[must_use]
    pub fn with(
        mut self,
        handler: Arc<dyn Handler>,
        routes: impl IntoIterator<Item = Route>,
    ) -> Routes {
        let place = self.handlers.len();
        self.handlers.push(handler);
        self.table.extend(routes.into_iter().map(|route| Entry {
            route,
            handler: place,
        }));
        // The sort is stable, so of equal routes the first one added stays first.
        self.table.sort_by_key(|entry| {
            let length = entry.route.path.len();
            (std::cmp::Reverse(length), entry.route.reach)
        });
        self
    }

    /// The handler of a path.
    pub fn find(&self, path: &str) -> Option<&Arc<dyn Handler>> {
        self.handlers.get(self.entry(path)?.handler)
    }

    /// Whether a path is served only to clients with the listener's token, if it has one.
    pub(super) fn needs_token(&self, path: &str) -> bool {
        let entry = self.entry(path);
        entry.is_none_or(|entry| entry.route.access == Access::WithToken)
    }

    fn entry(&self, path: &str) -> Option<&Entry> {
        self.table.iter().find(|entry| entry.route.matches(path))
    }

    /// Answers one request by the handler of its path.
    pub(super) fn handle(
        &self,
        source: RequestSource,
        request: Request<Incoming>,
    ) -> BoxFuture<'static, HttpResponse> {
        match self.find(request.uri().path()) {
            Some(handler) => Arc::clone(handler).handle(source, request),
            None => Box::pin(ready(self.not_found())),
        }
    }

    /// Asks every session that ends at one of the handlers to end.
    pub fn stop_all(&self) {
        self.handlers.iter().for_each(|handler| handler.stop_all());
    }

    /// How many sessions that end at the handlers are open.
    pub fn open_count(&self) -> usize {
        let counts = self.handlers.iter().map(|handler| handler.open_count());
        counts.sum()
    }

    fn not_found(&self) -> HttpResponse {
        let listed = self.table.iter().map(|entry| &entry.route);
        let listed = listed.filter(|route| route.listing == Listing::Listed);
        let mut paths: Vec<String> = listed.map(Route::text).collect();
        paths.sort();
        not_found(&paths.join(", "))
    }
}

/// The answer to a path that is not served. `paths` are those that are.
pub fn not_found(paths: &str) -> HttpResponse {
    let text = format!("nothing is served at this path; this listener serves {paths}");
    error(404, ErrorCode::BAD_REQUEST, &text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::listener::bare;
    use crate::http::outgoing_body::OutgoingBody;

    /// A handler that is known by its number of open sessions.
    struct Numbered(usize);

    impl Handler for Numbered {
        fn handle(
            self: Arc<Self>,
            _: RequestSource,
            _: Request<Incoming>,
        ) -> BoxFuture<'static, HttpResponse> {
            Box::pin(std::future::ready(bare(200)))
        }

        fn open_count(&self) -> usize {
            self.0
        }
    }

    /// A table of one handler a route, numbered from one.
    fn table(routes: impl IntoIterator<Item = Route>) -> Routes {
        let numbered = (1..).zip(routes);
        numbered.fold(Routes::new(), |table, (number, route)| {
            table.with(Arc::new(Numbered(number)), [route])
        })
    }

    fn number(table: &Routes, path: &str) -> Option<usize> {
        table.find(path).map(|handler| handler.open_count())
    }

    #[test]
    fn an_exact_path_matches_with_and_without_a_slash_at_its_end() {
        let table = table([Route::exact("/mcp")]);
        for served in ["/mcp", "/mcp/"] {
            assert_eq!(number(&table, served), Some(1), "{served}");
        }
        for other in ["/", "", "*", "/mc", "/mcp2", "/mcp//", "/mcp/x", "/MCP"] {
            assert_eq!(number(&table, other), None, "{other}");
        }
    }

    #[test]
    fn m6_only_the_route_that_answers_can_be_open() {
        let health = Route::exact("/healthz").without_token();
        let table = table([Route::exact("/mcp"), health.clone()]);
        assert!(!table.needs_token("/healthz"));
        for path in ["/mcp", "/", "/healthz/x", "/other"] {
            assert!(table.needs_token(path), "{path}");
        }
        // A server whose own path it is was added before.
        let table = self::table([Route::exact("/healthz"), health]);
        assert!(table.needs_token("/healthz"));
    }

    #[test]
    fn the_longest_matching_path_wins() {
        let table = table([
            Route::prefix("/"),
            Route::prefix("/mcp"),
            Route::prefix("/mcp/p/"),
            Route::exact("/mcp"),
            Route::exact("/mcp/p/work"),
            Route::exact("/mcp"),
        ]);
        for (path, expected) in [
            ("/", 1),
            ("/other", 1),
            ("/mcpx", 1),
            ("/mcp", 4),
            ("/mcp/", 4),
            ("/mcp/x", 2),
            ("/mcp/people", 2),
            ("/mcp/p", 3),
            ("/mcp/p/home", 3),
            ("/mcp/p/home/", 3),
            ("/mcp/p/work", 5),
            ("/mcp/p/work/", 5),
            ("/mcp/p/work/x", 3),
        ] {
            assert_eq!(number(&table, path), Some(expected), "{path}");
        }
        assert_eq!(number(&table, "*"), None);
    }

    #[test]
    fn a_handler_with_several_paths_is_counted_once() {
        let routes = [Route::exact("/mcp"), Route::exact("/v1/mcp")];
        let table = Routes::new().with(Arc::new(Numbered(1)), routes);
        assert_eq!(number(&table, "/v1/mcp"), Some(1));
        assert_eq!(table.open_count(), 1);
    }

    #[test]
    fn an_unknown_path_is_told_the_listed_ones() {
        let table = table([
            Route::exact("/s3cret/mcp").unlisted(),
            Route::exact("/mcp"),
            Route::prefix("/mcp/p"),
        ]);
        let answer = table.not_found();
        assert_eq!(answer.status(), 404);
        let OutgoingBody::Whole(Some(body)) = answer.into_body() else {
            panic!("an answer without a body");
        };
        let text = String::from_utf8(body.to_vec()).unwrap();
        assert!(text.contains("/mcp, /mcp/p/*"), "{text}");
        assert!(!text.contains("s3cret"), "{text}");
    }
}
