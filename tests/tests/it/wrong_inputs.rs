//! What the command line says of wrong inputs: over all commands, the flag or argument at fault is
//! named, and the message says what to write or what is expected there.

use super::cli::Terminal;

/// A command line, its exit code, and a part of the message.
type Row = (&'static str, i32, &'static str);

#[rustfmt::skip]
const ROWS: &[Row] = &[
    ("serve --listen nowhere", 2, "neither an address with a port"),
    ("serve --listen 0.0.0.0:7600 --data-dir d0", 2, "--listen: 0.0.0.0:7600 is reached by other \
        machines"),
    ("serve --listen [::]:7600 --data-dir d0", 2, "--allow-plain-http"),
    ("serve --listen 127.0.0.1:0 --control-listen 192.168.1.4:80 --data-dir \
      d0", 2, "--control-listen: 192.168.1.4:80"),
    ("serve --listen 127.0.0.1 --data-dir d0", 2, "neither an address with a port"),
    ("serve --audit sometimes --data-dir d0", 2, "possible values: durable, relaxed"),
    ("serve --trusted-key abc --data-dir d0", 2, "'--trusted-key <KEY>'"),
    ("serve --trusted-digest abc --data-dir d0", 2, "give `sha256:` and 64 hex digits"),
    ("serve --token short --listen 127.0.0.1:0 --data-dir d0", 2, "at least 16 are needed"),
    ("serve --config no-such.toml", 2, "--config: no-such.toml: cannot be read"),
    ("serve --config bad.toml", 2, "line 1, column 10"),
    ("serve --config unknown.toml", 2, "did you mean `plugins_dir`?"),
    ("serve --config strange.toml", 2, "unknown key `banana`"),
    ("serve --outgoing-roots unknown.toml --listen 127.0.0.1:0 --data-dir \
      d4", 2, "--outgoing-roots: the certificate authorities in"),
    ("serve --config nested.toml", 2, "line 3: `connections.mx`: unknown field `mx`, expected \
                                       one of `max`"),
    ("serve --config roots.toml --listen 127.0.0.1:0 --data-dir d5", 2, "has no certificate in PEM \
        form"),
    ("serve --otlp-endpoint 127.0.0.1:4318 --listen 127.0.0.1:0 --data-dir d0", 2, "otlp_endpoint: \
        `127.0.0.1:4318` has no scheme; write http://127.0.0.1:4318"),
    ("serve --log ifno --listen 127.0.0.1:0 --data-dir d0", 2, "did you mean `info`?"),
    ("serve --log memhost=debgu --listen 127.0.0.1:0 --data-dir d0", 2, "--log: `memhost=debgu` is \
        no filter"),
    ("serve --new-token --token 0123456789abcdef0 --data-dir d0", 2, "cannot be used with"),
    ("--log loud company list", 2, "--log: `loud` is no level"),
    ("demo --listen nowhere --once", 2, "is no address with a port"),
    ("demo --listen 0.0.0.0:7600 --once --data-dir d0", 2, "--listen: 0.0.0.0:7600 is reached by \
        other machines"),
    ("demo --listen [::]:7600 --once --data-dir d0", 2, "--allow-plain-http"),
    ("store verify --data-dir no/such/dir", 2, "--data-dir: no/such/dir does not exist"),
    ("store verify --data-dir plain", 2, "--data-dir: plain is no data directory of a host"),
    ("store verify --data-dir backup", 2, "--data-dir: backup is a backup; `memhost store verify \
        --backup backup`"),
    ("company list --data-dir backup", 2, "--data-dir: backup is a backup"),
    ("store verify", 2, "--data-dir"),
    ("store verify --backup no/such/backup", 2, "--backup: no/such/backup is no directory"),
    ("store verify --backup plain", 1, "is not a whole backup"),
    ("store compact --data-dir no/such/dir", 2, "does not exist; `memhost serve"),
    ("store compact --data-dir plain", 2, "is no data directory"),
    ("store restore no/such/backup --data-dir d1", 2, "BACKUP: no/such/backup is no directory"),
    ("store restore plain --data-dir d1", 1, "is not a whole backup"),
    ("store backup --to plain", 2, "--to:"),
    ("company list --data-dir no/such/dir", 2, "--data-dir: no/such/dir does not exist"),
    ("company list --data-dir plain", 2, "is no data directory"),
    ("note x --data-dir no/such/dir", 2, "does not exist"),
    ("doctor --data-dir no/such/dir", 2, "does not exist"),
    ("tail --data-dir no/such/dir", 2, "does not exist"),
    ("company list --limit x", 2, "'--limit <NUMBER>': invalid digit found in string"),
    ("company list --limit 0", 2, "'--limit <NUMBER>': 0 is not in 1..=1000"),
    ("company list --cursor junk", 2, "--cursor: is not a cursor of this list"),
    ("company show -c a/b", 2, "--company: holds a path separator"),
    ("company update --days many", 2, "invalid digit found in string"),
    ("company update --days -1", 2, "'--days <NUMBER>'"),
    ("company update --keep-days deliverie=3", 2, "did you mean `deliveries`?"),
    ("company update", 2, "nothing was given to change: give one or more of --days"),
    ("company update --version", 2, "unexpected argument '--version'"),
    ("company show -c acmee", 3, "did you mean `acme`? `memhost company list`"),
    ("company delete", 2, "--confirm"),
    ("company delete --confirm other", 2, "--confirm: is not acme"),
    ("company import no-such.jsonl", 2, "no-such.jsonl: No such file"),
    ("company import bad.json -c fresh", 2, "EOF while parsing"),
    ("company import unknown.toml -c fresh --scope everyone", 2, "possible values: company"),
    ("-c acme record list", 2, "tip: '-c' goes after the command: memhost record list -c …"),
    ("--url http://127.0.0.1:1 record list", 2, "tip: '--url' goes after the command: memhost \
        record list --url …"),
    ("record --project=p1 list", 2, "tip: '--project' goes after the command: memhost record list \
                                     --project …"),
    ("record list --json", 2, "tip: type '-o json'"),
    ("--nonsense record list", 2, "unexpected argument '--nonsense' found"),
    ("company export --to no/dir/file", 2, "--to: the directory no/dir is not there; make it, or \
        give another file"),
    ("note ''", 2, "TEXT: is empty; give a text"),
    ("note '   '", 2, "TEXT: is empty; give a text"),
    ("note x --metadata []", 2, "--metadata: is a JSON list; a JSON object is needed"),
    ("note x --metadata 7", 2, "--metadata: is a single JSON value"),
    ("note x --metadata null", 2, "--metadata: is null; a JSON object is needed"),
    ("note x --metadata {", 2, "--metadata: is no valid JSON (EOF while parsing"),
    (r#"note x --metadata {"a":}"#, 2, "expected value at line 1 column 6"),
    ("note x --agent a/b", 2, "--agent: holds a path separator"),
    ("note x -c a/b", 2, "--company: holds a path separator"),
    ("note x --binding none", 3, "no binding `none`"),
    ("note x --binding 'a b'", 2, "--binding: is not a key"),
    ("note", 2, "<TEXT>"),
    ("note x --metdata {}", 2, "a similar argument exists: '--metadata'"),
    ("note x --visibility person", 2, "--visibility: is `person`, and the scope names none; give \
                                       `--subject`"),
    ("note x --visibility agent", 2, "give `--agent`"),
    ("capture ''", 2, "TEXT: is empty; give a text"),
    ("capture x --source-kind letter", 2, "possible values: issue_comment"),
    ("capture x --mode keep", 2, "possible values: capture_residue"),
    ("capture x --metadata []", 2, "--metadata: is a JSON list"),
    ("capture x --comment-id a/b", 2, "--comment-id: holds a path separator"),
    ("search ''", 2, "QUERY: is empty; give a text"),
    ("search '  '", 2, "QUERY: is empty; give a text"),
    ("search x --since yesterday", 2, "'--since <TIME>': is no time"),
    ("record list --until soon", 2, "'--until <TIME>': is no time"),
    ("search x -k many", 2, "invalid digit found in string"),
    ("search x -k 0", 2, "--top-k: is 0; 1 to 1000 are allowed"),
    ("search x -k 5000", 2, "--top-k: is 5000"),
    ("search x --intent guess", 2, "possible values: agent_preamble"),
    ("search x --filter []", 2, "--filter: is a JSON list"),
    ("search x --filter {", 2, "--filter: is no valid JSON"),
    ("forget nope", 3, "no record `nope` in this scope"),
    ("forget local-markdown:nope", 3, "no record `nope` in this scope"),
    ("forget", 2, "Usage: memhost forget [OPTIONS] <IDS|--whole-scope>"),
    ("record delete", 2, "Usage: memhost record delete [OPTIONS] <IDS|--whole-scope>"),
    ("correct nope", 2, "give the corrected text"),
    ("correct nope ''", 2, "is empty; give a text"),
    ("correct nope text", 3, "no record `nope` in this scope; list records with `memhost record \
                              list`"),
    ("correct nope text --instruction more", 2, "cannot be used with"),
    ("record show nope", 3, "no record `nope`"),
    ("record list --limit 0", 2, "0 is not in 1..=1000"),
    ("record list --limit 5000", 2, "5000 is not in 1..=1000"),
    ("record list --cursor junk", 2, "--cursor: is not a cursor of this list"),
    ("record import no-such.jsonl", 2, "No such file"),
    ("record import bad.json", 2, "EOF while parsing"),
    ("record export --to unknown.toml", 2, "--to: unknown.toml exists"),
    ("tail --outcome bar", 2, "possible values: in_progress, succeeded"),
    ("tail --outcome suceeded", 2, "a similar value exists: 'succeeded'"),
    ("tail --kind querry", 2, "a similar value exists: 'query'"),
    ("tail --event nothing", 2, "possible values: operation"),
    ("operation list --outcome bar", 2, "possible values: in_progress, succeeded"),
    ("operation list --outcome timedout", 2, "a similar value exists: 'timed_out'"),
    ("operation list --kind querry", 2, "a similar value exists: 'query'"),
    ("operation list --since yesterday", 2, "is no time; write it like 2026-11-20T10:00:00Z"),
    ("operation list --since 2026-13-01T00:00:00Z", 2, "'--since <TIME>': is no time"),
    ("operation list --since 2026-11-20", 2, "'--since <TIME>': is no time"),
    ("operation list --until 5", 2, "'--until <TIME>': is no time"),
    ("operation list --source-kind letter", 2, "possible values: issue_comment"),
    ("operation list --binding nope", 3, "no binding `nope`"),
    ("operation list --issue ''", 2, "'--issue <ID>'"),
    ("job list --binding nope", 3, "no binding `nope`"),
    ("operation list --limit 0", 2, "0 is not in 1..=1000"),
    ("operation list --watch=0", 2, "a number of seconds from 0.1"),
    ("operation show nope", 2, "ID: `nope` is no id"),
    ("operation show 0199f0a0-0000-7000-8000-000000000000", 3, "no operation 0199f0a0"),
    ("activity list --cursor junk", 2, "--cursor: is not a cursor"),
    ("job list --status done", 2, "possible values: queued"),
    ("job list --until soon", 2, "is no time"),
    ("job show nope", 2, "ID: `nope` is no id"),
    ("job cancel nope", 2, "ID: `nope` is no id"),
    ("job retry 0199f0a0-0000-7000-8000-000000000000", 3, "no job"),
    ("review list --status open", 2, "possible values: pending"),
    ("review show nope", 3, "no review `nope`"),
    ("review approve nope", 2, "ID: `nope` is no id"),
    ("review update nope --text ''", 2, "ID: `nope` is no id"),
    ("hook list --status lost", 2, "possible values: pending"),
    ("hook create no-such.json", 2, "No such file"),
    ("hook create bad.json", 2, "bad.json: is no valid JSON: EOF while parsing"),
    ("hook create empty.json", 2, "hookKind: missing field `hookKind`"),
    ("hook create list.json", 2, "the request: invalid type: sequence, expected struct"),
    ("hook create wrong-time.json", 2, "triggeredAt: is no time; write it like 2026"),
    ("hook create wrong-kind.json", 2, "mode: unknown variant `keep`, expected \
                                        `capture_residue` or `capture_record`"),
    ("hook replay nope", 2, "ID: `nope` is no id"),
    ("event list --type tool_call.done", 2, "possible values: session.started"),
    ("event create no-such.json", 2, "No such file"),
    ("event create bad.json", 2, "is no valid JSON"),
    ("event create empty.json", 2, "events.0.type: missing field `type`"),
    ("event create number.json", 2, "events.0: invalid type: integer `7`, expected struct"),
    ("binding show nope", 3, "no binding `nope`"),
    ("binding create b --provider nope", 3, "--provider: no provider `nope` is loaded; `memhost \
        plugin list`"),
    ("binding create b --provider local-markdwn", 3, "did you mean `local-markdown`? `memhost \
        plugin list`"),
    ("binding create b --provider 'A B'", 2, "--provider: is not a key"),
    ("binding create 'a b'", 2, "KEY: is not a key"),
    ("binding create b --config []", 2, "--config: is a JSON list"),
    ("binding create b --config {", 2, "--config: is no valid JSON"),
    ("binding create b --config @list.json", 2, "--config: is a JSON list"),
    ("binding create b --config @no-such.json", 2, "no-such.json: No such file"),
    (r#"binding create b --config {"nothing":1}"#, 2, "--config: the provider does not accept the \
        configuration"),
    (r#"binding update m --config {"nothing":1}"#, 2, "'nothing', which the provider does not \
        know"),
    ("binding create b --config-file no-such.json", 2, "No such file"),
    ("binding create b --versions 0.1.0", 2, "write `=0.1.0` for this version only"),
    ("binding create b --versions newest", 2, "'--versions <RANGE|DIGEST>': is no range of versions"),
    ("binding create b --versions sha256:abc", 2, "64 hex digits"),
    ("binding create b --versions =99.0.0", 3, "--versions: no build of the provider"),
    (r#"binding create b --grants {"storage":1}"#, 2, "--grants (storage): unknown field \
        `storage`, expected one of `storageBytes`"),
    (r#"binding create b --grants {"storageBytes":"1GiB"}"#, 2, "--grants (storageBytes): invalid \
        type: string \"1GiB\", expected u64"),
    ("binding create b --grants []", 2, "--grants: is a JSON list"),
    (r#"binding create b --limits {"callTimeout":1}"#, 2, "--limits (callTimeout): unknown \
        field `callTimeout`, expected one of `memoryBytes`, "),
    (r#"binding create b --limits {"callTimeoutMs":"5s"}"#, 2, "--limits (callTimeoutMs): invalid \
        type: string \"5s\""),
    (r#"binding create b --limits {"callTimeoutMs":99999999999}"#, 2, "--limits (callTimeoutMs)"),
    (r#"binding create b --policy {"onBudget":"stop"}"#, 2, "--policy (onBudget): unknown variant \
        `stop`, expected `refuse` or `queue`"),
    (r#"binding create b --policy {"pii":"redcat"}"#, 2, "--policy (pii): unknown variant \
        `redcat`, expected"),
    (r#"binding create b --policy {"revew":{}}"#, 2, "--policy (revew): unknown field `revew`, \
        expected one of"),
    ("binding update nope --enabled true", 3, "no binding `nope`"),
    ("binding update m --versions =99.0.0", 3, "--versions: no build of the provider"),
    ("binding update m", 2, "nothing was given to change: give one or more of --config"),
    ("binding update m --revision 1", 2, "nothing was given to change"),
    ("binding update m --version ^0.1", 2, "a similar argument exists: '--versions'"),
    ("binding update m --enabled maybe", 2, "possible values: true, false"),
    ("binding update m --enabled true --revision 99", 2, "has revision 1 and not 99"),
    ("binding update m --versions 1.2.3", 2, "write `=1.2.3` for this version only"),
    ("binding delete nope", 3, "no binding `nope`"),
    ("binding delete m --yes --revision 99", 2, "has revision 1 and not 99"),
    ("binding grant nope --everything", 3, "no binding `nope`"),
    ("binding grant m --storage lots", 2, "is no size"),
    ("binding grant m --storage 1.5GiB", 2, "is no size"),
    ("binding grant m --storage -1", 2, "is no size"),
    ("binding grant m --http example.com", 2, "write an origin as"),
    ("binding grant m --http https://a.example --private-range 10.0.0.0", 2, "'--private-range \
        <CIDR>': is no range of addresses"),
    ("binding grant m --http https://a.example --method FETCH!", 2, "has `FETCH!`"),
    ("binding grant m --http https://a.example", 2, "asks for no address"),
    ("binding grant m --method GET", 2, "--http"),
    ("binding grant m --secret NOPE", 2, "--secret: is NOPE, and the provider `local-markdown` \
        asks for no secret; leave it out"),
    ("binding grant m --private-range 10.0.0.0/8", 2, "--private-range: belongs to an address, and \
        the provider asks for none"),
    ("binding grant m --requested", 2, "--requested: an import asked for nothing"),
    ("binding assign nope --yes", 3, "no binding `nope`"),
    ("binding assign", 2, "<KEY>"),
    ("binding reset nope", 3, "no binding `nope`"),
    ("secret create K --origin example.com --as header:x-key", 2, "--origin: `example.com` has no \
        scheme"),
    ("secret create K --origin https://a.example --as headr:x", 2, "does not say where a secret \
        goes"),
    ("secret create 'a b' --origin https://a.example --as header:x-key --value-file \
      bad.json", 2, "NAME: is not 1 to 64"),
    ("secret create K --origin https://a.example --as header:x-key --value-file no-such", 2, "No \
        such file"),
    ("secret update nope --value-file bad.json", 3, "no secret `nope`"),
    ("secret delete nope", 3, "no secret `nope`"),
    ("token create t --role admin", 2, "possible values: operator"),
    ("token create t --role auditer", 2, "a similar value exists: 'auditor'"),
    ("token create t --role agent", 2, "--agent: is missing; the role `agent` needs it"),
    ("token create t --role auditor --agent ada", 2, "--agent: belongs to the role `agent` only"),
    ("token create t --role auditor --operation qurey", 2, "a similar value exists: 'query'"),
    ("token create t --role auditor --operation capture", 2, "--operation: has `capture`, which \
        the role `auditor` may not do"),
    ("token create t --role auditor --expires-at tomorrow", 2, "'--expires-at <TIME>': is no time"),
    ("token create t --role auditor --expires-at 2020-01-01T00:00:00Z", 2, "--expires-at: is over \
        already"),
    ("token create '' --role auditor", 2, "NAME: is not 1 to 64 printable characters"),
    ("token create t --role operator", 2, "--role: is `operator`"),
    ("token create t --role monitor", 2, "--role: is `monitor`"),
    ("token rotate nope", 3, "no token `nope`"),
    ("token rotate nope --overlap 1week", 2, "is no duration"),
    ("token rotate 0199f0a0-0000-7000-8000-000000000000 --overlap 31d", 2, "'--overlap \
        <DURATION>': is too long; at most 30d"),
    ("token delete nope", 3, "no token `nope`"),
    ("token delete mh_0123456789abcdef", 2, "TOKEN: is a token's value; give its name or id"),
    ("cost show --by bindings", 2, "did you mean `binding`?"),
    ("cost show --by dya", 2, "did you mean `day`?"),
    ("cost show --since yesterday", 2, "is no day; write it like 2026-11-20"),
    ("cost show --since 2026-11-30 --until 2026-11-01", 2, "--since: is 2026-11-30, which is after \
        the last day, 2026-11-01"),
    ("charge create --kind fee --biller b --cents lots", 2, "invalid digit found in string"),
    ("charge create --kind fee --biller b --cents 1 --at noon", 2, "'--at <TIME>': is no time"),
    ("charge create --kind fee --biller b --cents 1 --cost-event \
      0199f0a0-0000-7000-8000-000000000000", 2, "--cost-event"),
    ("charge create --biller b --cents 1", 2, "--kind"),
    ("budget create --cents ten", 2, "'--cents <CENTS>': invalid float literal"),
    ("budget create --cents -5", 2, "--cents"),
    ("budget create --cents 0", 2, "A budget of 0 cents stops the company acme"),
    ("budget create --cents 0 --binding m", 2, "stops the binding m"),
    ("budget update", 2, "nothing was given to change: give one or more of --cents and --warn"),
    ("budget create --cents 10 --period week", 2, "possible values: day, month"),
    ("budget create --cents 10 --warn 7", 2, "--warn: is 7; 0 to 1 is allowed"),
    ("budget show", 3, "no budget `month`"),
    ("evaluation show --until never", 2, "is no day"),
    ("evaluation show --since 2026-12-01 --until 2026-11-01", 2, "--since: is 2026-12-01, which is \
        after the last day"),
    ("stats --days 1000", 2, "1000 is not in 1..=90"),
    ("context update", 2, "NAME: there is no context yet. If `memhost serve` is still starting, wait"),
    ("context show nope", 3, "no context `nope`"),
    ("context use nope", 3, "no context `nope`"),
    ("context create c --url ftp://x", 2, "--url: `ftp://x` is no address of a host"),
    ("context create c --control-url nowhere", 2, "--control-url: `nowhere` is no address of a \
        host"),
    ("--context nope company list", 3, "no context `nope`"),
    ("company list --url ftp://x", 2, "--url: `ftp://x` is no address of a host"),
    ("company list --url nowhere", 2, "--url: `nowhere` is no address of a host"),
    ("company list --url http://127.0.0.1:1", 5, "cannot connect to the host"),
    ("company list --token wrong", 4, "the token is not accepted"),
    ("company list -o xml", 2, "possible values: table"),
    ("companies list", 2, "'company'"),
    ("plugin show nope", 3, "no plugin `nope`"),
    ("plugin inspect no-such.wasm", 2, "No such file"),
    ("plugin inspect bad.json", 2, "is not WebAssembly"),
    ("plugin pull facts", 2, "write oci://HOST/NAME:TAG"),
    ("plugin pull oci://127.0.0.1:1/facts --yes", 5, "check the name, the network and the proxy"),
    ("plugin pull oci://127.0.0.1:1/facts --registry-ca bad.json", 2, "has no certificate"),
    ("plugin pull oci://127.0.0.1:1/facts --trusted-cosign-key bad.json", 2, "give the text of"),
    ("plugin push bad.json oci://127.0.0.1:1/facts", 2, "is not WebAssembly"),
    ("plugin install facts --package-dir nowhere", 2, "No such file"),
    ("plugin install facts --package-dir .", 3, "the package has no provider `facts`"),
    ("plugin update facts", 3, "`memhost plugin outdated` lists"),
    ("plugin run bad.json -- describe", 2, "is not WebAssembly"),
    ("plugin new 'A B'", 2, "must start with a letter a-z"),
    ("plugin verify bad.json --trusted-key junk", 2, "the public key cannot be read"),
    ("secret create K --origin https://a.example --as header:x-key --value-file \
      short.txt", 2, "--value-file: has 2 bytes; 8"),
    ("embeddings install bad.json --data-dir d2", 2, "FILE: bad.json: is no wheel"),
    ("embeddings install nope --data-dir d2", 2, "FILE: nope"),
    ("eval locomo no-such.json", 2, "No such file"),
    ("eval locomo bad.json", 2, "is not a LoCoMo file"),
    ("mcp --tool-names odd", 2, "possible values: plain, dotted"),
    ("man no such", 2, "unknown command `no`"),
    ("completions tcsh9", 2, "possible values: bash"),
];

/// Words of libraries, which tell a person nothing.
const FOREIGN: [&str; 4] =
    ["Failed to deserialize", "invalid IP address", "panicked", "additionalProperties"];

/// The words of a line. Unlike those of other tests, a word in quotes may be empty.
fn words(line: &str) -> Vec<String> {
    let (mut words, mut word, mut is_quoted, mut has_quotes) =
        (Vec::new(), String::new(), false, false);
    for c in line.chars().chain([' ']) {
        match c {
            '\'' => (is_quoted, has_quotes) = (!is_quoted, true),
            ' ' if !is_quoted => {
                if has_quotes || !word.is_empty() {
                    words.push(std::mem::take(&mut word));
                }
                has_quotes = false;
            }
            c => word.push(c),
        }
    }
    words
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn wrong_inputs_are_told_what_to_write() {
    assert!(ROWS.len() >= 150);
    let terminal = Terminal::open(&[]).await;
    let home = terminal.home.path();
    for (name, text) in [
        ("bad.json", "{\"a\":"),
        ("bad.toml", "listen = \n"),
        ("unknown.toml", "plugin_dir = \"x\"\n"),
        ("strange.toml", "banana = 1\n"),
        ("nested.toml", "listen = \"127.0.0.1:0\"\n[connections]\nmx = 3\n"),
        ("roots.toml", "outgoing_roots = \"bad.json\"\n"),
        ("empty.json", "{}"),
        ("number.json", "7"),
        ("list.json", "[]"),
        (
            "wrong-time.json",
            r#"{"hookKind":"manual_capture","hookId":"h","triggeredAt":"noon","scope":{"companyId":"acme"}}"#,
        ),
        (
            "wrong-kind.json",
            r#"{"hookKind":"manual_capture","hookId":"h","triggeredAt":"2026-11-20T00:00:00Z",
                "scope":{"companyId":"acme"},"mode":"keep"}"#,
        ),
        ("short.txt", "ab"),
    ] {
        std::fs::write(home.join(name), text).unwrap();
    }
    std::fs::create_dir_all(home.join("backup/store.backup")).unwrap();
    std::fs::create_dir(home.join("plain")).unwrap();
    std::fs::write(home.join("plain/thesis.tex"), "years of work").unwrap();
    terminal.fine("note first --agent ada").await;
    terminal.fine("binding create m").await;
    let environment = [
        ("MEMHOST_URL", terminal.url.as_str()),
        ("MEMHOST_TOKEN", super::cli::TOKEN),
        ("MEMHOST_COMPANY", "acme"),
    ];
    let (mut wrong, mut all) = (Vec::new(), String::new());
    for (line, code, part) in ROWS {
        let done = super::cli::run(home, &environment, &words(line), "").await;
        all.push_str(&format!("$ {line}\n[{}] {}\n", done.code, done.err));
        // Where a TOML file is wrong, the file's own line is shown.
        let foreign =
            FOREIGN.iter().find(|word| done.err.contains(*word) && !line.contains(".toml"));
        if done.code != *code || !done.err.contains(part) || foreign.is_some() {
            wrong.push(format!("{line}: wanted {code} `{part}`, {foreign:?}: {done:?}"));
        }
    }
    if let Some(path) = std::env::var_os("WRONG_INPUTS") {
        std::fs::write(path, all).unwrap();
    }
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), ROWS.len(), wrong.join("\n"));
    assert!(
        !home.join("no").exists() && !home.join("d0/store").exists(),
        "a command that failed made a directory"
    );
}

/// The path is that of the person who types it, and not one below the contexts file.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_token_file_is_found_where_it_was_typed() {
    let terminal = Terminal::open(&[]).await;
    let home = terminal.home.path();
    std::fs::write(home.join("token.txt"), super::cli::TOKEN).unwrap();
    let create = words(&format!(
        "context create c --url {} --token-file token.txt --company acme",
        terminal.url
    ));
    let done = super::cli::run(home, &[], &create, "").await;
    assert_eq!(done.code, 0, "{done:?}");
    let done = super::cli::run(home, &[], &words("note 'a fact'"), "").await;
    assert!(done.code == 0 && done.out.starts_with("noted "), "{done:?}");
}
