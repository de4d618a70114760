//! Many kinds of secrets as users paste them, and as many texts that only resemble secrets. All are
//! made up.

use super::redact;

const ALNUM: &str = "aB3dE5gH7jK9mN1pQ3sT5vW7yZ9bC1eF3hJ5kL7nP9rS1uV3wX5zA7cE9gH1iJ3kL5mN7oP9";
const HEX: &str = "3f9a0c71e5b84d26a7f31c09e84b5d62f0a93c17be45d8602c9f1e7a3b5d8064a1c2e3f4";

/// Replaces `{aN}` with N letters and digits, and `{hN}` with N hexadecimal digits.
fn filled(text: &str) -> String {
    let mut filled = String::new();
    let mut rest = text;
    while let Some(at) = rest.find('{') {
        let (before, slot) = rest.split_at(at);
        filled.push_str(before);
        let end = slot.find('}').unwrap_or(0);
        let number: Option<usize> = slot.get(2..end).and_then(|n| n.parse().ok());
        match (slot.as_bytes().get(1), number) {
            (Some(b'a'), Some(n)) => filled.push_str(&ALNUM[..n]),
            (Some(b'h'), Some(n)) => filled.push_str(&HEX[..n]),
            _ => {
                filled.push('{');
                rest = &slot[1..];
                continue;
            }
        }
        rest = &slot[end + 1..];
    }
    filled.push_str(rest);
    filled
}

/// Expected kind and text; the secret is between « and ».
const SECRETS: &[(&str, &str)] = &[
    ("anthropic-key", "ANTHROPIC_API_KEY=«sk-ant-api03-{a60}»"),
    ("openrouter-key", "use «sk-or-v1-{h64}» please"),
    ("openai-key", "export OPENAI_API_KEY=«sk-{a48}»"),
    ("openai-key", "key: «sk-proj-{a60}»"),
    ("openai-key", "deepseek key «sk-{h32}»"),
    ("google-key", "https://maps.example.org/api?key=«AIza{a35}»"),
    ("google-key", "client_secret «GOCSPX-{a28}»"),
    ("google-key", "access «ya29.{a60}»"),
    (
        "github-token",
        "git clone https://x:«ghp_{a36}»@github.com/a/b",
    ),
    ("github-token", "«gho_{a36}»"),
    ("github-token", "«ghs_{a36}»"),
    ("github-token", "«github_pat_{a22}_{a59}»"),
    ("gitlab-token", "PRIVATE-TOKEN: «glpat-{a20}»"),
    ("gitlab-token", "runner «glrt-{a20}»"),
    ("slack-token", "«xoxb-123456789012-1234567890123-{a24}»"),
    ("slack-token", "«xapp-1-A0123456-9876543210-{h20}»"),
    (
        "slack-webhook",
        "https://hooks.slack.com/services/«T00000000/B00000000/{a24}»",
    ),
    ("aws-key", "aws_access_key_id = «AKIAQ7W3E5R9T1Y2U4I6»"),
    ("aws-key", "«ASIAQ7W3E5R9T1Y2U4I6»"),
    (
        "aws-key",
        "aws_secret_access_key = «wJa1rXUtnFEM1/K7MDENG/bPxRf1CYzzQ9w8e7r6»",
    ),
    ("stripe-key", "«sk_live_{a24}»"),
    ("stripe-key", "«rk_test_{a24}»"),
    ("stripe-key", "«whsec_{a32}»"),
    ("huggingface-token", "HF_TOKEN=«hf_{a34}»"),
    ("npm-token", "//registry.npmjs.org/:_authToken=«npm_{a36}»"),
    ("pypi-token", "password = «pypi-AgEIcHlwaS5vcmc{a60}»"),
    ("sendgrid-key", "«SG.{a22}.{a43}»"),
    ("groq-key", "«gsk_{a52}»"),
    ("xai-key", "«xai-{a60}»"),
    ("perplexity-key", "«pplx-{a48}»"),
    ("replicate-token", "«r8_{a37}»"),
    (
        "telegram-token",
        "https://api.telegram.org/bot«123456789:AA{a33}»/getMe",
    ),
    (
        "discord-token",
        "discord token «MTk4NjIyNDgzNDcxOTI1MjQ4.Cl2FMQ.ZnCjm1XVW7vRze4b7Cq4se7kKWs»",
    ),
    (
        "discord-webhook",
        "https://discord.com/api/webhooks/«123456789012345678/{a60}»",
    ),
    (
        "age-key",
        "«AGE-SECRET-KEY-1QPZRY9X8QPZRY9X8QPZRY9X8QPZRY9X8QPZRY9X8QPZRY9X8QPZRY9X8QP»",
    ),
    (
        "jwt",
        "token «eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.dozjgNryP4J3jVmNHl0w5N»",
    ),
    ("digitalocean-token", "DO_TOKEN «dop_v1_{h64}»"),
    ("shopify-token", "X-Shopify-Access-Token: «shpat_{h32}»"),
    (
        "vault-token",
        "export VAULT_ADDR; vault login «hvs.CAESI{a60}»",
    ),
    (
        "docker-token",
        "docker login -u me --password-stdin <<< «dckr_pat_{a27}»",
    ),
    (
        "docker-auth",
        r#"{"auths":{"https://index.docker.io/v1/":{"auth":"«bWU6aHVudGVyMmh1bnRlcjI=»"}}}"#,
    ),
    ("grafana-token", "«glsa_{a32}_{h8}»"),
    ("linear-key", "Authorization: «lin_api_{a40}»"),
    ("square-token", "«sq0atp-{a22}»"),
    ("postman-key", "X-Api-Key: «PMAK-{h24}-{h34}»"),
    ("newrelic-key", "«NRAK-Q7W3E5R9T1Y2U4I6O8P0A2S4D6F»"),
    ("terraform-token", "credentials «{a14}.atlasv1.{a67}»"),
    ("facebook-token", "fb «EAAC{a60}»"),
    ("mailchimp-key", "mailchimp «{h32}-us14»"),
    ("twilio-key", "TWILIO «SK{h32}»"),
    (
        "azure-sas",
        "https://a.blob.core.windows.net/c?sv=2022-11-02&sp=r&sig=«{a43}%3D»",
    ),
    (
        "private-key",
        "PuTTY-User-Key-File-2: ssh-rsa\nEncryption: none\nComment: k\nPublic-Lines: 1\nAAAAB3Nza\nPrivate-Lines: 2\n«{a60}\n{a44}\nPrivate-MAC: {h40}»",
    ),
    (
        "kubernetes-key",
        "    client-key-data: «LS0tLS1CRUdJTiBSU0EgUFJJVkFURSBLRVktLS0tLQo{a40}=»",
    ),
    (
        "secret",
        r#"{"user":"ann","password":"«correct horse battery staple»"}"#,
    ),
    ("secret", "DB_PASSWORD=«s3cr3t»"),
    ("secret", "MYSQL_ROOT_PASSWORD='«qwerty»'"),
    (
        "basic-auth",
        "curl -s -u ann:«tr0ub4dor» https://example.org/x",
    ),
    (
        "basic-auth",
        "curl --user 'ann:«p4ssw0rd»' https://example.org",
    ),
    (
        "mysql-password",
        "mysql -h db -uroot -p«hunter2x» shop < dump.sql",
    ),
    (
        "netrc-password",
        "machine example.org login ann password «hunter2»",
    ),
    (
        "netrc-password",
        "machine example.org\n  login ann\n  password «c0rrecthorse»\n",
    ),
    (
        "session-cookie",
        "Cookie: theme=dark; sessionid=«{a32}»; lang=en",
    ),
    (
        "session-cookie",
        "Set-Cookie: connect.sid=«s%3A{a32}»; Path=/; HttpOnly",
    ),
    ("mailgun-key", "mailgun: «key-{h32}»"),
    (
        "mailgun-key",
        "curl -s --user 'api:«key-{h32}»' https://api.mailgun.net/v3",
    ),
    ("secret", "DB_PASSWORD: «s3cr3t»"),
    ("secret", r#"{"DB_PASSWORD": "«ab12cd»"}"#),
    ("secret", "DB_PASSWORD=«x.1/y2» # of the test database"),
    ("secret", "db_password = '«h4nt3r»'"),
    ("secret", "docker run -e DB_PASSWORD=«hunter» postgres"),
    (
        "discord-token",
        "client.run('«MTA5NTg4Njc3ODQ1NjQ1NTIxOA.GdN5Qk.{a38}»')",
    ),
    (
        "sentry-dsn",
        "dsn = https://«{h32}:{h32}»@sentry.example.org/42",
    ),
    (
        "sentry-dsn",
        "https://«{h32}»@o12345.ingest.us.sentry.io/67890",
    ),
    ("sentry-token", "SENTRY=«sntryu_{h64}»"),
    ("asana-token", "asana «1/1204567890123456:{h32}»"),
    ("asana-token", "«2/1204567890123456/1204567890123457:{h32}»"),
    ("asana-token", "ASANA_PAT=«0/{h32}»"),
    ("atlassian-token", "jira «ATATT3xFfGF0{a60}={h8}»"),
    ("databricks-token", "databricks «dapi{h32}-2»"),
    ("doppler-token", "«dp.pt.{a43}»"),
    ("doppler-token", "doppler run -t «dp.st.dev_main.{a40}»"),
    ("fly-token", "FLY «fm2_lJPECAAAAAAAA{a60}+/=,fm2_{a60}»"),
    ("notion-token", "«ntn_{a46}»"),
    ("figma-token", "figma «figd_{a40}»"),
    ("airtable-token", "«pat{a14}.{h64}»"),
    ("supabase-token", "supabase login «sbp_{h40}»"),
    ("planetscale-token", "«pscale_pw_{a43}»"),
    (
        "net-use-password",
        r"net use Z: \\server\share /user:DOM\ann «hunter2x»",
    ),
    (
        "net-use-password",
        r"NET USE \\server\share «Passw0rd!» /USER:ann /persistent:no",
    ),
    ("web-token", "tertulia web token: «tertulia_{a43}»"),
    (
        "web-token",
        "open http://127.0.0.1:7417/#code=«0123456789ABCDEFGHJK»",
    ),
    ("web-token", "Cookie: tertulia=«{a43}»; lang=en"),
    ("netrc-password", "default login ann password «hunter2»"),
    ("secret", "by the way, my password is «hunter22!»"),
    ("secret", "the password for staging is \"«swordfish»\""),
    ("url-password", "postgres://ann:«hunter2»@db:5432/shop"),
    ("url-password", "amqp://guest:«gu3st»@mq/%2f"),
    ("basic-auth", "Authorization: Basic «YW5uOmh1bnRlcjI=»"),
    ("bearer-token", "Authorization: Bearer «{a40}»"),
    ("secret", "api_key=«q8w7e6r5t4y3»"),
    ("secret", "client_secret: «{a32}»"),
    ("secret", "export DB_PASSWORD=«hunter22»"),
    ("secret", "<password>«Tr0ub4dor&3»</password>"),
    ("secret", "tool --api-token «q8w7e6r5t4y3»"),
    ("secret", r#"const TOKEN: &str = "«a1b2c3d4e5f6»";"#),
    ("secret", "SECRET_KEY_BASE=«{h64}»"),
    ("secret", "encryption_key = '«{h32}»'"),
    ("secret", r#"\"access_token\": \"«a1b2c3d4e5f6»\""#),
    ("secret", "AccountKey=«{a60}==»"),
    (
        "private-key",
        "«-----BEGIN RSA PRIVATE KEY-----\n{a60}\n-----END RSA PRIVATE KEY-----»",
    ),
    (
        "private-key",
        "«-----BEGIN OPENSSH PRIVATE KEY-----\n{a60}\n-----END OPENSSH PRIVATE KEY-----»",
    ),
    (
        "private-key",
        "«-----BEGIN PGP PRIVATE KEY BLOCK-----\n\n{a60}\n-----END PGP PRIVATE KEY BLOCK-----»",
    ),
];

const INNOCENT: &[&str] = &[
    "Please reset your password; the password is too short.",
    "The password is required and must be at least 8 characters.",
    "My password is not working any more, what can I do?",
    "The pin is broken, the passphrase is optional.",
    r#"{"password": "Enter your password", "label": "Forgot the password?"}"#,
    r#"{"password": "must be at least 8 characters"}"#,
    r#"{"auth": "required", "auth": "optional"}"#,
    "let token = lexer.next_token();",
    "password: String,",
    "password = getpass.getpass()",
    "api_key = os.environ[\"API_KEY\"]",
    "export TOKEN=$(cat token.txt)",
    "PASSWORD=${PASSWORD:-}",
    "DB_PASSWORD=changeme",
    "POSTGRES_PASSWORD=true",
    "curl -u \"$USER:$PASSWORD\" https://example.org",
    "curl -u ann https://example.org asks for the password",
    "mysql -p shop < dump.sql",
    "mysql --protocol=tcp -P 3306 -h db",
    "The machine learning course has a login page and a password field.",
    "Cookie: theme=dark; lang=en; consent=yes",
    "Set the session cookie with SameSite=Strict and HttpOnly.",
    "sk-toggleable__label-arrow and sk-estimator-doc-link are classes",
    "git show 3f9a0c71e5b84d26a7f31c09e84b5d62f0a93c17",
    "sha256:3f9a0c71e5b84d26a7f31c09e84b5d62f0a93c17be45d8602c9f1e7a3b5d8064",
    "550e8400-e29b-41d4-a716-446655440000",
    "https://example.org/path?query=value&page=2",
    "https://example.org:8080/a@b",
    "ssh://git@github.com/a/b.git",
    "assert_eq!(redact(\"x\"), \"x\");",
    "The secret of good prose is rewriting.",
    "token bucket, token ring, tokenizer = AutoTokenizer.from_pretrained('bert-base-uncased')",
    "max_tokens: 4096, prompt_tokens=1234",
    "primary_key=True, foreign_key=ForeignKey('users.id')",
    "keyboard: KeyCode::Enter => Action::Submit",
    "sort_key = lambda row: row.updated_at",
    "public_key = \"ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIGl\"",
    "ssh-rsa AAAAB3NzaC1yc2EAAAADAQABAAABAQC7 ann@laptop",
    "-----BEGIN CERTIFICATE-----\nMIIDdzCCAl+gAwIBAgIEAgAAuTANBgkqhkiG9w0BAQUFADBa\n-----END CERTIFICATE-----",
    "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk",
    "EAAC is not a word, and neither is EAABXYZ.",
    "ask the task force: SKate, SKetch, SK01",
    "hvs. the other, cf. hvb.",
    "Design=modern&sig=short",
    "The us-east-1 region and eu-west-us2 zone",
    "Private-Lines: none",
    "client-key-data: REDACTED",
    "password: <your password here>",
    "token: {{ vault_token }}",
    "secret: !vault |",
    "passwordHash, passwordField, PasswordInput",
    "AUTH_TOKEN_TTL=3600",
    "the passcode is shown on the screen",
    "我的密码是什么？password 是必填项",
    "Bearer tokens are sent in the Authorization header.",
    "SG.1 and SG.2 are stages",
];

/// Texts as developers write them every day, which are about keys, tokens and passwords or resemble them.
const HARMLESS: &[&str] = &[
    "postgres://user:password@localhost/db",
    "mysql://root:pass@127.0.0.1:3306/test",
    "machine learning login page password field",
    "AWS_ACCESS_KEY_ID=AKIAIOSFODNN7EXAMPLE",
    "aws_secret_access_key = wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
    "DB_PASSWORD=",
    "DB_PASSWORD: ${DB_PASSWORD}",
    "DB_PASSWORD=none",
    "password: bcrypt",
    "password: sha256",
    "password=base64",
    "password: 8 to 72 characters",
    "password_min_length=12, password_max_age: 90d",
    "The default login is admin, and the password is set at the first start.",
    "default login page password reset",
    "net use",
    "net use Z: /delete",
    "net use \\\\server\\share /persistent:yes",
    "net use Z: \\\\server\\share /user:ann *",
    "The key-value store and the key-0123456789 row",
    "key-value-separator-in-the-config-file",
    "See chapter 2/3, section 1/12, and page 0/0.",
    "1/2 cup, 3/4 teaspoon, 0/10 would not eat again",
    "refs/pull/1204567890123456/head and 1/2:30",
    "ATATT3 is how tokens of Atlassian begin.",
    "dapi is short for data API; dapi-client 1.2",
    "dp.pt is a domain name",
    "fm2_tuner and fm2_synth are modules",
    "ntn_ is a prefix; ntn_flush() flushes",
    "figd_ and figma: two names",
    "path.patch.pathological, patABCDEFGHIJKLMN.js",
    "sbp_level: 120, dbp_level: 80",
    "pscale_pw_ is the prefix of passwords",
    "sntrys_ is a prefix, too",
    "https://sentry.io/organizations/acme/issues/1234567890/",
    "https://github.com/login/oauth/authorize?client_id=abc&response_type=code",
    "/callback?code=short&state=xyz",
    "#code=python and ?code=404",
    "tertulia=debug,hyper=warn",
    "tertulia_server::web::listen and tertulia_core",
    "Cookie: tertulia=; Max-Age=0",
    "Mon.Tue.Wed and Nov.Dec.Jan are abbreviations",
    "Module.Class.methodWithAVeryLongNameThatGoesOnAndOn",
    "Object.prototype.hasOwnPropertyOfTheVeryLongKind",
    "token.type is 'bearer', and expires_in=3600",
    "ci: rotate the deploy token every 90 days (#1234)",
    "const passwordInput = document.querySelector('#password');",
    "SELECT id, password_hash FROM users WHERE reset_token IS NULL;",
    "error: invalid credentials (401) for https://registry.example.org/v2/",
    "Content-Security-Policy: default-src 'none'; script-src 'self'",
    "etag: \"33a64df551425fcc55e4d42a148795d9f25f89d4\"",
    "integrity sha512-z4PhNX7vuL3xVChQ1m2AB9Yg5AULVxXcg/SpIdNs6c5H0NE8XYXysP+DGNKHfuwvY7kxvUdBeoGlODJ6+SfaPg==",
    "uuid 01a1e32e-6f46-72f2-bd92-1e8027b0bda3 of device 3f9a0c71e5b84d26",
];

#[test]
fn secrets_of_every_kind_are_replaced() {
    assert!(SECRETS.len() >= 109, "{}", SECRETS.len());
    let mut missed = Vec::new();
    for (kind, text) in SECRETS {
        let marked = filled(text);
        let input = marked.replace(['«', '»'], "");
        let secret = marked.split_once('«').unwrap().1.split_once('»').unwrap().0;
        let clean = redact(&input).text.into_owned();
        let marker = format!("[redacted:{kind}]");
        if clean.contains(secret) || !clean.contains(&marker) {
            missed.push(format!("{kind}: {input} -> {clean}"));
        }
        assert_eq!(redact(&clean).text, clean, "not stable: {input}");
    }
    assert!(missed.is_empty(), "{missed:#?}");
}

#[test]
fn innocent_texts_stay_as_they_are() {
    assert!(INNOCENT.len() >= 50, "{}", INNOCENT.len());
    assert_eq!(HARMLESS.len(), 53);
    let changed: Vec<String> = INNOCENT
        .iter()
        .chain(HARMLESS)
        .filter(|text| redact(text).text != **text)
        .map(|text| format!("{text} -> {}", redact(text).text))
        .collect();
    assert!(changed.is_empty(), "{changed:#?}");
}

/// A search that looks at the rest of a text again and again would take many minutes.
#[test]
fn long_hostile_texts_take_no_long_time() {
    use std::time::{Duration, Instant};
    let begun = Instant::now();
    let keywords = super::rules().iter().flat_map(|rule| rule.keywords());
    let pieces: std::collections::BTreeSet<&str> = keywords.map(String::as_str).collect();
    let others = [
        "machine a.b login c ",
        "net use \\\\a /user:",
        "asana 0/",
        "https://a:",
        "password: ",
        "Cookie: a=b; ",
        "MTA.G",
        "curl -u ",
    ];
    for piece in pieces.into_iter().chain(others) {
        for filler in ["", "0", "a ", "M"] {
            let one = format!("{piece}{filler}");
            let _ = redact(&one.repeat(20_000 / one.len()));
        }
    }
    assert!(begun.elapsed() < Duration::from_secs(120));
}

#[test]
fn rules_of_ones_own_are_added_in_the_form_of_gitleaks() {
    use super::{Ending, Rules, redact_as};
    let rules = r#"
title = "ours"
[[rules]]
id = "acme-key"
description = "Key of our own service"
regex = '''\bacme-([0-9a-f]{16})\b'''
entropy = 2.5
keywords = ["acme-"]
[[rules.allowlists]]
stopwords = ["deadbeef"]
[[rules]]
id = "ticket"
regex = '''(CASE)-([0-9]{4})'''
secretGroup = 2
[[allowlists]]
regexes = ['''^0000$''']
[[allowlists]]
regexTarget = "line"
regexes = ['''# an example$''']
"#;
    let rules = Rules::extended(rules).unwrap();
    let check = |text: &str, expected: &str| {
        assert_eq!(redact_as(text, Ending::Finished, &rules).text, expected);
    };
    check("acme-3f9a0c71e5b84d26", "acme-[redacted:acme-key]");
    check("acme-deadbeef5b84d26a", "acme-deadbeef5b84d26a");
    check("acme-aaaaaaaaaaaaaaaa", "acme-aaaaaaaaaaaaaaaa");
    check("CASE-1234 CASE-0000", "CASE-[redacted:ticket] CASE-0000");
    check(
        "CASE-1234\nCASE-1234 # an example\nCASE-1234",
        "CASE-[redacted:ticket]\nCASE-1234 # an example\nCASE-[redacted:ticket]",
    );
    check(
        "postgres://a:b1c2@h/d",
        "postgres://a:[redacted:url-password]@h/d",
    );
    let error = Rules::extended("[[rules]]\nid = \"x\"\nregex = '''(a'''\n").unwrap_err();
    assert!(error.to_string().contains("'x'"), "{error}");
    assert!(Rules::extended("rules = 3").is_err());
    for list in ["[allowlist]", "[[allowlists]]"] {
        let error = Rules::extended(&format!("{list}\nregexes = ['(a']\n")).unwrap_err();
        assert!(error.to_string().contains("'allowlist'"), "{error}");
    }
}
