//! The methods that the standard policy denies, and those that change nothing.

/// Denied unless a policy has an empty list in its place: the extension answers with what it stores, its token included.
pub(super) const DENIED_METHODS: [&str; 1] = ["get_debug_storage"];

/// Denied unless somebody allows it: cookies are credentials, files are not the browser's, and targets are tabs, other
/// connections' tabs among them.
pub(super) const DENIED_CDP: [&str; 27] = [
    "Network.getCookies",
    "Network.getAllCookies",
    "Network.setCookie",
    "Network.setCookies",
    "Network.deleteCookies",
    "Network.clearBrowserCookies",
    "Storage.getCookies",
    "Storage.setCookies",
    "Storage.clearCookies",
    // They clear cookies too, if they are asked to.
    "Storage.clearDataForOrigin",
    "Storage.clearDataForStorageKey",
    "DOM.setFileInputFiles",
    // It can drop any file of the machine on a page.
    "Input.dispatchDragEvent",
    "Browser.close",
    "Browser.crash",
    "Browser.setDownloadBehavior",
    "Page.setDownloadBehavior",
    "Target.attachToBrowserTarget",
    "Target.autoAttachRelated",
    "Target.attachToTarget",
    "Target.activateTarget",
    "Target.closeTarget",
    "Target.createTarget",
    "Target.createBrowserContext",
    "Target.exposeDevToolsProtocol",
    "Target.sendMessageToTarget",
    "Target.setAutoAttach",
];

/// The URL of a command, and the members in which commands carry a CDP method, its parameters, or other commands. The last ones
/// are what Chrome calls the arguments of `debugger.sendCommand`, `tabs.create`, `tabs.update` and `windows.create`.
pub(super) const CHECKED_MEMBERS: [&str; 13] = [
    "url",
    "method",
    "command",
    "cdpMethod",
    "params",
    "args",
    "commands",
    "actions",
    "options",
    "commandParams",
    "createProperties",
    "updateProperties",
    "createData",
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
