//! What the presets find in text that is no JSON.

use super::{captured_with, left, preset};
use mcp_proxy_session::Redaction;
use mcp_proxy_session::redact::RedactionPreset;
use mcp_proxy_wire::Message;
use proptest::prelude::*;
use regex::Regex;
use serde_json::{Value, json};
use std::sync::LazyLock;

/// A text, and what is left of it.
const HIDDEN: &[(&str, &str)] = &[
    ("Authorization: Bearer abc123", "Authorization: Bearer #1"),
    ("Authorization: Bearer secret", "Authorization: Bearer #1"),
    ("authorization=Basic dXNlcjpw x", "authorization=Basic #1 x"),
    (
        "-H 'Authorization: token abc' -v",
        "-H 'Authorization: token #1' -v",
    ),
    ("Authorization: rawvalue", "Authorization: #1"),
    (
        "Authorization: Digest username=\"M\", response=\"6629\"\nHost: x",
        "Authorization: Digest #1\nHost: x",
    ),
    ("use Bearer ab1cde, please", "use Bearer #1, please"),
    ("Cookie: a=b; c=d\r\nHost: x", "Cookie: #1\r\nHost: x"),
    ("set-cookie: id=a3; Path=/; HttpOnly", "set-cookie: #1"),
    (
        "curl -H \"Cookie: a=b; c=d\" http://h/",
        "curl -H \"Cookie: #1\" http://h/",
    ),
    ("password: hunter2", "password: #1"),
    (
        "password: hunter2.\nnext: line",
        "password: #1.\nnext: line",
    ),
    ("password: \"hunter 2\"", "password: \"#1\""),
    ("PASSWORD = hunter2 # why", "PASSWORD = #1 # why"),
    ("pwd='a b' passwd : x", "pwd='#1' passwd : #2"),
    (
        "api_key = \"x\"\napi-key: y\napikey=z",
        "api_key = \"#1\"\napi-key: #2\napikey=#3",
    ),
    ("API key: abc, user: me", "API key: #1, user: me"),
    ("export GITHUB_TOKEN=abc123", "export GITHUB_TOKEN=#1"),
    (
        "{'client_secret': 'x', \"n\": 1}",
        "{'client_secret': '#1', \"n\": 1}",
    ),
    (
        "token := \"x\"; :secret => 'y'",
        "token := \"#1\"; :secret => '#2'",
    ),
    (
        "private_key: abc\naccess_key=def",
        "private_key: #1\naccess_key=#2",
    ),
    (
        "line one\nDB_PASSWORD: p@ss:w=rd",
        "line one\nDB_PASSWORD: #1",
    ),
    // Strings with a letter before them, doubled quotes, long strings.
    ("Config(token=b'x1', a=1)", "Config(token=b'#1', a=1)"),
    ("token=r\"x1\"", "token=r\"#1\""),
    ("token=f'x1'", "token=f'#1'"),
    ("token: u'x1'", "token: u'#1'"),
    ("password='it''s x1' y", "password='#1' y"),
    ("password='it'\\''s x1' y", "password='#1' y"),
    ("password = \"\"\"a\nb\"\"\"\nc", "password = \"#1\"\nc"),
    // What a parameter ends at.
    ("password=pa;ssx1", "password=#1"),
    ("password=abc,defx1 y", "password=#1 y"),
    ("password=a&bx1", "password=#1"),
    ("password=a<bx1", "password=#1"),
    ("password=it's5x", "password=#1"),
    ("password=ab\"x1\" y", "password=#1\" y"),
    ("password=(abcX)", "password=#1)"),
    ("password=[abcX]", "password=#1"),
    ("password=<abcX>", "password=#1"),
    ("password=abc=defX==", "password=#1"),
    ("password=a1&page=2", "password=#1&page=2"),
    ("token=a1&amp;page=2", "token=#1&amp;page=2"),
    (
        "Server=db;Password=x1;Encrypt=true",
        "Server=db;Password=#1;Encrypt=true",
    ),
    ("AccountKey=x1==;Endpoint=x", "AccountKey=#1;Endpoint=x"),
    ("f(user=a,token=x1,b=c)", "f(user=a,token=#1,b=c)"),
    ("<a href=x?token=x1</a>", "<a href=x?token=#1</a>"),
    // YAML.
    (
        "a:\n  secret: |\n    x1\n\n    x2\n  port: 1",
        "a:\n  secret: |\n    #1\n  port: 1",
    ),
    ("secret: >\n  x1", "secret: >\n  #1"),
    ("secret: >-\n  x1\nb: c", "secret: >-\n  #1\nb: c"),
    ("- secret: |-\n    x1\n- b", "- secret: |-\n    #1\n- b"),
    ("password:\n  x1\nb: c", "password:\n  #1\nb: c"),
    ("password:\n  SECRET", "password:\n  #1"),
    ("password:\n  'x y'", "password:\n  '#1'"),
    ("password: !vault x1", "password: !vault #1"),
    ("password: !vault |\n  x1\n  x2", "password: !vault |\n  #1"),
    // Authorization.
    (
        "Authorization: AWS4-HMAC-SHA256 Credential=A/2, Signature=x1\nHost: x",
        "Authorization: AWS4-HMAC-SHA256 #1\nHost: x",
    ),
    (
        "-H 'Authorization: AWS4-HMAC-SHA256 Credential=A/2, Signature=x1' -v",
        "-H 'Authorization: AWS4-HMAC-SHA256 #1' -v",
    ),
    ("password: 'a' 'x1', b", "password: '#1', b"),
    ("password = \"a\" + \"x1\";", "password = \"#1\";"),
    ("password=a\\ x1 y", "password=#1 y"),
    ("password=:x1", "password=#1"),
    ("token: [0, 17]", "token: #1"),
    ("password: Pass(1)", "password: #1)"),
    ("password: @X1", "password: #1"),
    ("password: # why\n  x1", "password: # why\n  #1"),
    (
        "a <Password><![CDATA[x<1]]></Password>",
        "a <Password><![CDATA[#1]]></Password>",
    ),
    (
        "use {\"passwords\":[\"x1\", \"x2\"]",
        "use {\"passwords\":#1",
    ),
    ("don't, password: 'x1'", "don't, password: '#1'"),
    ("Authorization: Custom x1 y2\nz", "Authorization: #1\nz"),
    (
        "{'Authorization': f'Bearer xyz'}",
        "{'Authorization': f'#1'}",
    ),
    (
        "('Authorization', 'Bearer xyz')",
        "('Authorization', 'Bearer #1')",
    ),
    // Command lines.
    ("curl -u admin:x1 http://h", "curl -u admin:#1 http://h"),
    ("curl --user 'a:x 1' h", "curl --user 'a:#1' h"),
    ("curl --cookie 'sid=x1' h", "curl --cookie '#1' h"),
    ("curl -b sid=x1 h", "curl -b #1 h"),
    ("run --token x1 --verbose", "run --token #1 --verbose"),
    ("run --password hunter db", "run --password #1 db"),
    ("run --api-key \"x y\" z", "run --api-key \"#1\" z"),
    // Other places.
    ("'password' => \"x1\"", "'password' => \"#1\""),
    ("refresh_token\":\"x1", "refresh_token\":\"#1"),
    ("cfg[\"token\"] = 'x1'", "cfg[\"token\"] = '#1'"),
    ("\"password\": hunter2\n", "\"password\": #1\n"),
    (
        "<password>x1</password><user>me</user>",
        "<password>#1</password><user>me</user>",
    ),
    (
        "<w:Password Type=\"t\">x1</w:Password><token value=\"x2\"/>",
        "<w:Password Type=\"t\">#1</w:Password><token value=\"#2\"/>",
    ),
    (
        "machine h login me password x1\nmachine i",
        "machine h login me password #1\nmachine i",
    ),
    ("- **Token:** x1", "- **Token:** #1"),
    ("- **token**: `x1`", "- **token**: `#1`"),
    (
        "password: str = \"x1\", b: int = 5",
        "password: str = \"#1\", b: int = 5",
    ),
    (
        "db_pass: x1 pass=x2 pass2=x3",
        "db_pass: #1 pass=#2 pass2=#3",
    ),
    (
        "user: me password: hunter role: x",
        "user: me password: #1 role: x",
    ),
    (
        "SharedAccessKey=x1 secretKey=x2",
        "SharedAccessKey=#1 secretKey=#2",
    ),
    ("password: abcdefghijklmnopq r", "password: #1 r"),
    ("password: $2b$10$abc", "password: #1"),
    ("password: 4711", "password: #1"),
    ("secret: hunter", "secret: #1"),
    ("password = \"incorrect\"", "password = \"#1\""),
    ("POSTGRES_PASSWORD=secret img", "POSTGRES_PASSWORD=#1 img"),
    // Dumps of settings, logs and requests.
    (
        "PATH=/usr/bin\nAWS_SECRET_ACCESS_KEY=wJalr7\nSTRIPE_API_KEY=sekD1\nLANG=C",
        "PATH=/usr/bin\nAWS_SECRET_ACCESS_KEY=#1\nSTRIPE_API_KEY=#2\nLANG=C",
    ),
    (
        "JWT_SECRET = secH1234\nDEBUG=true",
        "JWT_SECRET = #1\nDEBUG=true",
    ),
    (
        "curl -H \"X-Api-Key: secL1234\" https://api.x",
        "curl -H \"X-Api-Key: #1\" https://api.x",
    ),
    ("-H 'PRIVATE-TOKEN: sec1'", "-H 'PRIVATE-TOKEN: #1'"),
    (
        "GET /z?token=s1&page=2&api_key=s2#f",
        "GET /z?token=#1&page=2&api_key=#2",
    ),
    (
        "bad password {password!r} token=s1",
        "bad password {password!r} token=#1",
    ),
    (
        "body: \"{\\\"password\\\":\\\"s1\\\"}\"",
        "body: \"{\\\"password\\\":\\\"#1\"",
    ),
    (
        "{ apiKey: 's1', url: 'https://q' };",
        "{ apiKey: '#1', url: 'https://q' };",
    ),
    (
        "passphrase: s1\nclient-secret: s2",
        "passphrase: #1\nclient-secret: #2",
    ),
    ("token:secBA123", "token:#1"),
    (
        "$env:API_KEY = \"s1\"\nset SECRET=s2",
        "$env:API_KEY = \"#1\"\nset SECRET=#2",
    ),
    ("password\t=\tSECRET", "password\t=\t#1"),
    ("PASSWORD  :  SECRET", "PASSWORD  :  #1"),
    ("token=`SECRET`", "token=`#1`"),
    (
        "password=the-SECRET password: none-X",
        "password=#1 password: #2",
    ),
    ("aws_session_token = SECRET", "aws_session_token = #1"),
    ("{'Cookie': 'sid=s1; b=s2'}", "{'Cookie': '#1'}"),
];

/// Texts in which nothing is a secret.
const UNTOUCHED: &[&str] = &[
    "token: ",
    "token:\nnext",
    "password=",
    "max_tokens: 5",
    "max_tokens=5",
    "progressToken: 7, progress_token = 7",
    "nextPageToken: abc",
    "the password is needed, and no token either",
    "fn login(password: &str, token: string) -> Secret::Kind",
    "if token == other && secret != mine {",
    "Secretary: Jane",
    "Authorization: Bearer [masked]",
    "bearer authentication is needed",
    // Code.
    "token = get_token()\npassword = os.environ[\"PASSWORD\"]\nsecret = None",
    "api_key = config.api_key\nif token == expected: pass",
    "f(token=get_token(), password=self.password, secret=None)",
    "password = input('Password: ')",
    "password = getpass(\"Enter the user's password: \"); next(\"x\")",
    "def login(user: str, password: str, token: Optional[str] = None) -> bool:",
    "const { token } = req.body; const password: string = input.value;",
    "this.token = token; return token; password: userPassword,",
    "struct Login { password: String, token: &str, secret: Vec<u8>, api_key: &'a str }",
    "public String getPassword() { return password; } if (token == null) throw new Exception(\"token: missing\");",
    "token: string; password?: string",
    "secret = secrets.token_hex(16)\ntoken = tokens[0]\nlet token = &tokens[i];",
    "case token: break; if password: print(1)",
    "secret: process.env.JWT_SECRET!, password = params[:password]",
    "token:  # comment",
    "<label>Password:</label>",
    "Authorization: Bearer",
    "if not token:\n    return",
    "SELECT password FROM users WHERE token = ? AND password = $1 AND secret = :secret",
    "headers = {'Authorization': f'Bearer {token}'}",
    // Placeholders.
    "password: ${DB_PASSWORD}\ntoken: {{ secrets.TOKEN }}\napi_key: <YOUR_API_KEY>\nsecret: $SECRET",
    "password=*** token=%s password: {password} PASSWORD=$PASSWORD token=<your token>",
    "token: ${{ secrets.GITHUB_TOKEN }}",
    "password=%(password)s token=\"${TOKEN}\" secret='<secret>' password=$(cat x)",
    "Authorization: Bearer <token>\nAuthorization: Bearer $TOKEN",
    "curl -u $USER:$PASSWORD -H \"Authorization: Bearer ${TOKEN}\" h",
    // Prose.
    "password: must be 8 chars",
    "Password: Must be 8 chars",
    "password: incorrect",
    "the secret: it works",
    "secret: true, secret: false, secret: null, secret: 0",
    "Secret Santa: bring gifts",
    "Authorization: see the docs for details",
    "Please reset the password: the user forgot it. A secret: never share your API key with anyone.",
    "Error: token expired. Invalid password. Authorization: required. Cookie: missing",
    "Cookie: a small text file stored by browsers",
    "Set-Cookie: is a header",
    "WWW-Authenticate: Bearer realm=\"mcp\"",
    "Credentials: none needed",
    "api key: see settings page",
    "passwords: at least 8 characters",
    "token: undefined",
    "token: ''",
    "passwd: files systemd",
    "Unexpected token: } at line 5. Unexpected token: foo",
    "give --token and --password to log in; --token TOKEN  the token; --api-key KEY",
    "docker run -u 1000:1000 img; login with password below",
    "the tag <password> and <token> are needed",
    "tests: pass: 12, fail: 0",
    // Names.
    "--password-stdin --token-file=/run/x --token-file /run/x",
    "password_length: 12 token_count=55 secret_santa: bob tokenizer: cl100k_base token_type: bearer token_limit: 800",
    "password_file: /run/secrets/db\nsecretName: my-secret\nsecretKeyRef: x1",
    "tokenUrl: https://x/token token_endpoint: https://x/token authorization_endpoint: https://x/auth",
    "cookie_policy: strict1\nauth: basic1 compass: north1 has_password: x1 is_secret=x1",
    "max_tokens: 4096, total_tokens=512, \"max_tokens\": 1024, prompt_tokens: 7, tokens: 12",
    "key: value1, primary_key: id1, foreign_key=user_id1, sort_key=name1, public_key: abcd1",
    "secret://path/x1",
];

#[test]
fn presets_know_credentials_in_text() {
    let redaction = preset(RedactionPreset::All);
    let untouched = UNTOUCHED.iter().map(|text| (*text, *text));
    let mut wrong = Vec::new();
    for (text, shown) in HIDDEN.iter().copied().chain(untouched) {
        let raw = json!({ "text": text }).to_string();
        let left: Value = serde_json::from_str(&left(&redaction, &raw)).unwrap();
        if left["text"] != shown {
            wrong.push(format!(
                "{text:?}\n  left   {}\n  wanted {shown:?}",
                left["text"]
            ));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    // Broken JSON, where the escapes still stand.
    assert_eq!(
        left(&redaction, r#"{"text":"hi\npwd: \"hunter2\"#),
        r##"{"text":"hi\npwd: \"#1"##
    );
}

/// Values that do not end, or names without values, must not be read again and again.
#[test]
fn a_long_text_takes_no_long_time() {
    let redaction = preset(RedactionPreset::All);
    for piece in [
        "token=f(",
        "--token \"",
        "token: \"",
        "<password>",
        "token:",
        "password=${",
        "password:\n ",
        "token: none,",
        "login a password ",
        "-u a:",
        "secret: |\n ",
        "Authorization: ",
        "token='''",
        "password: {",
        "token: Vec<",
        "-b ",
        "-b \"",
        "-u \"",
        "token: a b ",
        "Cookie: ",
        "token=`",
        "token=self.",
        "token: &[",
    ] {
        let text = piece.repeat(300_000 / piece.len());
        let started = std::time::Instant::now();
        let _ = redaction.message(&Message::parse(text));
        assert!(
            started.elapsed().as_secs() < 10,
            "{piece:?} {:?}",
            started.elapsed()
        );
    }
}

#[test]
fn what_is_hidden_in_text_is_hidden_once() {
    let text = "Authorization: Bearer abc123\nCookie: a=b; c=d\npassword: x\npwd=y http://u:p@h/";
    let mut sample = captured_with(&preset(RedactionPreset::All));
    sample.client(json!({ "text": text }).to_string());
    let captured = sample.open();
    assert_eq!(captured.message(0).unwrap().redacted, 5);
    let export = captured.redacted(&preset(RedactionPreset::All));
    assert_eq!(export.message(0).unwrap().redacted, 5);
}

#[test]
fn a_flag_in_a_list_names_what_follows() {
    let redaction = preset(RedactionPreset::Keys);
    for (raw, shown) in [
        (
            r#"{"args":["-v","--token","x","y"],"b":["--token"],"c":["z"]}"#,
            r##"{"args":["-v","--token","#1","y"],"b":["--token"],"c":["z"]}"##,
        ),
        (
            r#"{"args":["--token",["x"],"--token","--z","y","--max-tokens","5"]}"#,
            r#"{"args":["--token",["x"],"--token","--z","y","--max-tokens","5"]}"#,
        ),
    ] {
        assert_eq!(left(&redaction, raw), shown);
    }
}

#[test]
fn no_value_is_hidden_twice() {
    let mut sample = captured_with(&preset(RedactionPreset::All));
    for (text, _) in HIDDEN {
        sample.client(json!({ "text": text }).to_string());
    }
    let captured = sample.open();
    let export = sample.open().redacted(&preset(RedactionPreset::All));
    for (index, (text, _)) in HIDDEN.iter().enumerate() {
        let (first, again) = (captured.message(index), export.message(index));
        let (first, again) = (first.unwrap(), again.unwrap());
        assert!(first.redacted > 0, "{text:?}");
        assert_eq!(again.redacted, first.redacted, "{text:?}");
        assert_eq!(again.raw.load().unwrap(), first.raw.load().unwrap());
    }
}

static ALL: LazyLock<Redaction> = LazyLock::new(|| preset(RedactionPreset::All));
static MARK: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"\[redacted:[0-9a-f]{16}:[0-9]+\]").unwrap());

proptest! {
    /// Whatever stands where: no panic, and what is not hidden stays in its order.
    #[test]
    fn any_text_keeps_what_is_not_hidden(pieces in prop::collection::vec(prop_oneof![
        Just("password"), Just("token"), Just("Authorization"), Just("Cookie"), Just("--token"), Just("-u"), Just("<secret>"),
        Just("</secret>"), Just(" "), Just("="), Just(":"), Just("=>"), Just("'"), Just("\""), Just("`"), Just("\\"), Just("\n"),
        Just("  "), Just("|"), Just("!v"), Just("${"), Just("}"), Just("<"), Just(">"), Just("("), Just("["), Just("x1"), Just("é"),
        Just("Bearer"), Just("Digest"), Just("b'"), Just("&"), Just(";"), Just(","), Just("login"), Just("str"), Just("**"), Just("%"),
    ], 0..24)) {
        let text = pieces.concat();
        if let Some(redacted) = ALL.message(&Message::parse(text.clone())) {
            let shown = String::from_utf8(redacted.message.into_raw().into()).unwrap();
            let mut rest = text.as_str();
            for kept in MARK.split(&shown) {
                let at = rest.find(kept);
                prop_assert!(at.is_some());
                rest = &rest[at.unwrap_or(0) + kept.len()..];
            }
        }
    }
}
