//! The methods that the standard policy denies, and those that change nothing.

/// Denied unless a policy has an empty list in its place: the extension answers with what it stores, its token included.
pub(super) const DENIED_METHODS: [&str; 1] = ["get_debug_storage"];

/// Denied unless somebody allows it: cookies are credentials, files are not the browser's, and targets are tabs, other
/// connections' tabs among them.
pub(super) const DENIED_CDP: &[&str] = &[
    "Network.getCookies",
    "Network.getAllCookies",
    "Network.setCookie",
    "Network.setCookies",
    "Network.deleteCookies",
    "Network.clearBrowserCookies",
    // Older names of the same.
    "Page.deleteCookie",
    "Page.getCookies",
    "Storage.getCookies",
    "Storage.setCookies",
    "Storage.clearCookies",
    // They clear cookies too, if they are asked to.
    "Storage.clearDataForOrigin",
    "Storage.clearDataForStorageKey",
    "DOM.setFileInputFiles",
    // It can drop any file of the machine on a page.
    "Input.dispatchDragEvent",
    // It reads any address with the cookies of the page.
    "Network.loadNetworkResource",
    "Browser.close",
    "Browser.crash",
    "Browser.executeBrowserCommand",
    "Browser.grantPermissions",
    "Browser.resetPermissions",
    "Browser.setDownloadBehavior",
    "Browser.setPermission",
    "Extensions.*",
    "Page.setDownloadBehavior",
    "Security.handleCertificateError",
    "Security.setIgnoreCertificateErrors",
    "Security.setOverrideCertificateErrors",
    "Target.attachToBrowserTarget",
    "Target.autoAttachRelated",
    "Target.attachToTarget",
    "Target.activateTarget",
    "Target.closeTarget",
    "Target.createTarget",
    "Target.createBrowserContext",
    "Target.detachFromTarget",
    "Target.disposeBrowserContext",
    "Target.exposeDevToolsProtocol",
    "Target.getBrowserContexts",
    "Target.getTargets",
    "Target.openDevTools",
    "Target.sendMessageToTarget",
    "Target.setAutoAttach",
    "Target.setDiscoverTargets",
    "Target.setRemoteLocations",
];

/// The members with the URL of a command, or several, as [`loose_name`](crate::messages::loose_name) has them.
pub(super) const URL_MEMBERS: [&str; 6] = ["url", "urls", "uri", "uris", "href", "hrefs"];

/// Those in which commands carry a CDP method, its parameters, or other commands. The last ones are what Chrome calls the arguments
/// of `debugger.sendCommand`, `tabs.create`, `tabs.update` and `windows.create`.
pub(super) const CARRYING_MEMBERS: [&str; 12] = [
    "method",
    "command",
    "cdpmethod",
    "params",
    "args",
    "commands",
    "actions",
    "options",
    "commandparams",
    "createproperties",
    "updateproperties",
    "createdata",
];

/// What a policy that is `read_only` leaves of the relay's own methods.
pub(super) const READ_ONLY_METHODS: [&str; 10] = [
    super::FORWARD_CDP,
    "getTabs",
    "selectTab",
    "listExtensions",
    "get_build_info",
    "getConsoleMessages",
    "getNetworkRequests",
    "getResponseBody",
    "getRequestPostData",
    "screenshot",
];

/// And of the Chrome DevTools Protocol. Scripts are not among it: they can change a page.
pub(super) const READ_ONLY_CDP: [&str; 27] = [
    "Accessibility.disable",
    "Accessibility.enable",
    "Accessibility.get*",
    "Accessibility.query*",
    "Browser.getVersion",
    "CSS.disable",
    "CSS.enable",
    "CSS.get*",
    "DOM.describeNode",
    "DOM.disable",
    "DOM.enable",
    "DOM.get*",
    "DOM.querySelector*",
    "DOMSnapshot.captureSnapshot",
    "Log.enable",
    "Network.disable",
    "Network.enable",
    "Network.getRequestPostData",
    "Network.getResponseBody",
    "Page.captureScreenshot",
    "Page.enable",
    "Page.getFrameTree",
    "Page.getLayoutMetrics",
    "Page.getNavigationHistory",
    "Page.printToPDF",
    "Performance.*",
    "Target.getTargetInfo",
];
