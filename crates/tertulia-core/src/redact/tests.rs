#![allow(clippy::unwrap_used, clippy::expect_used)]

use super::*;
use proptest::prelude::*;

const BODY: &str = "aB3dE5gH7jK9mN1pQ3sT5vW7yZ9bC1eF3hJ5kL7nP9rS1uV3";

fn check(input: &str, expected: &str) {
    let result = redact(input);
    assert_eq!(result.text, expected, "\ninput: {input}");
    let replaced: u32 = result.found.values().sum();
    let before = input.matches(MARKER_OPENING).count();
    let after = expected.matches(MARKER_OPENING).count();
    assert_eq!(replaced as usize, after - before, "count of {input}");
    let is_borrowed = matches!(result.text, Cow::Borrowed(_));
    assert_eq!(is_borrowed, input == expected, "borrowed: {input}");
    assert_eq!(redact(expected).text, expected, "not stable: {input}");
}

fn check_untouched(input: &str) {
    check(input, input);
}

/// Made-up keys of every kind that is recognised without context.
fn bare_keys() -> Vec<(&'static str, String)> {
    let body = |length: usize| &BODY[..length];
    let plain = "abcdefghijklmnopqrst";
    vec![
        ("anthropic-key", format!("sk-ant-api03-{}", body(20))),
        ("anthropic-key", format!("sk-ant-api03-{plain}")),
        (
            "anthropic-key",
            format!("sk-ant-{}_{}-AA", body(40), body(40)),
        ),
        ("openrouter-key", format!("sk-or-v1-{}", body(48))),
        ("openai-key", format!("sk-{}", body(20))),
        ("openai-key", format!("sk-{plain}")),
        ("openai-key", format!("sk-proj-{}", body(40))),
        ("openai-key", format!("sk-svcacct-{}_{}", body(20), body(9))),
        ("google-key", format!("AIza{}", body(35))),
        ("github-token", format!("ghp_{}", body(36))),
        ("github-token", format!("ghs_{}", body(30))),
        (
            "github-token",
            format!("github_pat_{}_{}", body(22), body(40)),
        ),
        ("gitlab-token", format!("glpat-{}", body(20))),
        ("slack-token", "xoxb-123456789012-abcdefABCDEF".into()),
        ("slack-token", "xapp-1-A0123456-9876543210-abcdef".into()),
        ("aws-key", format!("AKIA{}", "Q7W3E5R9T1Y2U4I6")),
        ("aws-key", "ASIAQWERTYUIOP123456".into()),
        ("stripe-key", format!("sk_live_{}", body(24))),
        ("stripe-key", format!("rk_test_{}", body(24))),
        ("huggingface-token", format!("hf_{}", body(34))),
        ("npm-token", format!("npm_{}", body(36))),
        ("pypi-token", format!("pypi-AgEIcHlwaS5vcmc{}", body(40))),
        ("sendgrid-key", format!("SG.{}.{}", body(22), body(43))),
        ("groq-key", format!("gsk_{}", body(48))),
        ("xai-key", format!("xai-{}", body(48))),
        ("perplexity-key", format!("pplx-{}", body(48))),
        ("replicate-token", format!("r8_{}", body(37))),
        ("telegram-token", format!("110201543:AA{}", body(33))),
        (
            "age-key",
            format!("AGE-SECRET-KEY-1{}", "QPZRY9X8".repeat(7)),
        ),
        (
            "jwt",
            "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.dozjgNryP4J3".into(),
        ),
    ]
}

fn private_key(label: &str) -> String {
    let line = "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7";
    format!("-----BEGIN {label}-----\n{line}\n{line}\n-----END {label}-----")
}

#[test]
fn every_rule_compiles_and_has_lower_case_keywords() {
    let rules = Rules::built_in();
    assert!(rules.iter().count() > 50);
    for rule in rules.iter() {
        assert!(rule.regex().is_some(), "{}", rule.kind);
        for keyword in rule.keywords() {
            assert_eq!(*keyword, keyword.to_ascii_lowercase());
        }
    }
    assert!(private_key::KEY_BOUNDARY.is_some() && private_key::CUT_OFF_KEY.is_some());
}

#[test]
fn keys_are_found_in_every_surrounding() {
    for (kind, key) in bare_keys() {
        for (before, after) in [
            ("", ""),
            ("use ", " now."),
            ("(", ")"),
            ("\"", "\""),
            ("`", "`"),
            ("密钥是", "，谢谢🎉"),
            ("first\\n", "\\nlast"),
            ("\x1b[32m", "\x1b[0m"),
            ("🔑", "🔑"),
            ("-", "\n"),
            ("key=", ","),
        ] {
            check(
                &format!("{before}{key}{after}"),
                &format!("{before}[redacted:{kind}]{after}"),
            );
        }
    }
}

#[test]
fn a_prefixed_key_in_an_assignment_keeps_its_kind() {
    for (kind, key) in bare_keys() {
        for frame in [
            "API_KEY=@",
            "api_key: @",
            "\"token\": \"@\"",
            "password = '@'",
            "--token @",
            "Authorization: Bearer @",
            "<password>@</password>",
            "https://user:@@github.com/a/b",
        ] {
            if frame.starts_with("http") {
                let clean = format!("https://user:[redacted:{kind}]@github.com/a/b");
                check(&format!("https://user:{key}@github.com/a/b"), &clean);
                continue;
            }
            let clean = frame.replace('@', &format!("[redacted:{kind}]"));
            check(&frame.replace('@', &key), &clean);
        }
    }
}

#[test]
fn prefixes_inside_words_are_not_keys() {
    for (_, key) in bare_keys() {
        if !key.starts_with(|c: char| c.is_ascii_digit()) {
            check_untouched(&format!("the word{key} is no key"));
        }
    }
}

#[test]
fn secrets_with_a_context() {
    for (input, expected) in [
        (
            "Authorization: Bearer abcdefghijklmnop",
            "Authorization: Bearer [redacted:bearer-token]",
        ),
        (
            "-H 'authorization: bearer 0123456789abcdef'",
            "-H 'authorization: bearer [redacted:bearer-token]'",
        ),
        (
            r#"{\"Authorization\": \"Bearer q1w2e3r4t5y6u7i8\"}"#,
            r#"{\"Authorization\": \"Bearer [redacted:bearer-token]\"}"#,
        ),
        (
            "Authorization: Basic dXNlcjpodW50ZXIy",
            "Authorization: Basic [redacted:basic-auth]",
        ),
        (
            "postgres://bob:hunter2@db:5432/x",
            "postgres://bob:[redacted:url-password]@db:5432/x",
        ),
        (
            "redis://:p@ss@10.0.0.1",
            "redis://:[redacted:url-password]@10.0.0.1",
        ),
        (
            "DATABASE_URL=mysql://a:b1c2@h/d?x=1",
            "DATABASE_URL=mysql://a:[redacted:url-password]@h/d?x=1",
        ),
        (
            "https://x-access-token:abc123def456@github.com/a",
            "https://x-access-token:[redacted:url-password]@github.com/a",
        ),
        (
            "aws_secret_access_key = wJa1rXUtnFEM1/K7MDENG/bPxRf1CYzzQ9w8e7r6",
            "aws_secret_access_key = [redacted:aws-key]",
        ),
        (
            r#""SecretAccessKey": "wJalrXUtnFEMI/K7MDENG/bPxRfiCYzzzzzzzKEY","#,
            r#""SecretAccessKey": "[redacted:aws-key]","#,
        ),
        (
            "https://api.telegram.org/bot123456789:AAabcdefghijklmnopqrstuvwxyz1234567/getMe",
            "https://api.telegram.org/bot[redacted:telegram-token]/getMe",
        ),
        (
            "https://hooks.slack.com/services/T00000000/B00000000/a1b2c3d4e5f6a1b2c3d4e5f6",
            "https://hooks.slack.com/services/[redacted:slack-webhook]",
        ),
        (
            "https://discord.com/api/webhooks/123456789012345678/aB3dE5gH7jK9mN1pQ3sT5vW7yZ9bC1eF3hJ5kL7nP9rS1uV3x",
            "https://discord.com/api/webhooks/[redacted:discord-webhook]",
        ),
        (
            "whsec_a1b2c3d4e5f6a1b2c3d4e5f6 GOCSPX-a1b2c3d4e5f6a1b2c3d4e5f6",
            "[redacted:stripe-key] [redacted:google-key]",
        ),
        ("${DB_PASS:-a1b2c3d4}", "${DB_PASS:[redacted:secret]}"),
        (
            "discord token MTk4NjIyNDgzNDcxOTI1MjQ4.Cl2FMQ.ZnCjm1XVW7vRze4b7Cq4se7kKWs",
            "discord token [redacted:discord-token]",
        ),
    ] {
        check(input, expected);
    }
}

#[test]
fn assigned_secrets() {
    for (input, expected) in [
        ("api_key=q8w7e6r5t4y3", "api_key=[redacted:secret]"),
        (
            "FOO_API_KEY=0f1e2d3c4b5a69788796a5b4c3d2e1f0",
            "FOO_API_KEY=[redacted:secret]",
        ),
        (
            "export DB_PASSWORD=hunter22",
            "export DB_PASSWORD=[redacted:secret]",
        ),
        (
            "DB_PASSWORD='Tr0ub4dor&3'",
            "DB_PASSWORD='[redacted:secret]'",
        ),
        (
            "password: hunter22\nuser: bob",
            "password: [redacted:secret]\nuser: bob",
        ),
        (
            "password = \"P@ssw0rd!\"",
            "password = \"[redacted:secret]\"",
        ),
        (
            r#"{"clientSecret":"a1b2c3d4e5f6","x":1}"#,
            r#"{"clientSecret":"[redacted:secret]","x":1}"#,
        ),
        (
            r#"{\"token\": \"a1b2c3d4e5f6\"}"#,
            r#"{\"token\": \"[redacted:secret]\"}"#,
        ),
        (
            "const TOKEN: &str = \"a1b2c3d4e5f6\";",
            "const TOKEN: &str = \"[redacted:secret]\";",
        ),
        (
            "config['secret'] = 'zX9cV8bN7mQ6'",
            "config['secret'] = '[redacted:secret]'",
        ),
        (
            "?token=a1b2c3d4e5f6&page=2",
            "?token=[redacted:secret]&page=2",
        ),
        (
            "secret: 550e8400-e29b-41d4-a716-446655440000",
            "secret: [redacted:secret]",
        ),
        (
            "login --password s3cr3tv4lue9 now",
            "login --password [redacted:secret] now",
        ),
        (
            "<apiKey>a1b2c3d4e5f6</apiKey>",
            "<apiKey>[redacted:secret]</apiKey>",
        ),
        (
            "AccountKey=Zm9vYmFyYmF6cXV4MTIzNDU2Nzg5MA==;End",
            "AccountKey=[redacted:secret];End",
        ),
        (
            "secret: password=\"a1b2c3d4e5f6\"",
            "secret: password=\"[redacted:secret]\"",
        ),
        (
            "密码 password：a1b2c3d4e5f6。完",
            "密码 password：[redacted:secret]。完",
        ),
        (
            "token = correcthorsebatterystaple",
            "token = [redacted:secret]",
        ),
    ] {
        check(input, expected);
    }
}

#[test]
fn placeholders_are_left_alone() {
    for value in [
        "your-api-key",
        "YOUR_API_KEY_123",
        "xxxx",
        "xxxxxxxxxxxxxxxxxxxx",
        "XXXXXXXX-XXXX-1",
        "<token>",
        "<your token 123>",
        "${TOKEN}",
        "$TOKEN",
        "$MY_TOKEN_2024",
        "changeme",
        "changeme123",
        "...",
        "a1b2c3d4...",
        "example",
        "example-token-1234",
        "os.environ[\"X12345678\"]",
        "process.env.TOKEN12345",
        "std::env::var(\"A1B2C3D4E5\")",
        "getenv('A1B2C3D4E5')",
        "********",
        "{{ token_12345 }}",
        "{api_key_12345}",
        "next_token()",
        "get_secret_v2(x)",
        "",
        "null",
        "true",
        "[redacted:secret]",
        "%s",
        "••••••••",
    ] {
        for frame in [
            "api_key=@",
            "token: @",
            "DB_PASSWORD=@",
            "secret = \"@\"",
            "password: '@'",
            "Bearer @",
        ] {
            check_untouched(&frame.replace('@', value));
        }
    }
    for key in [
        "sk-ant-api03-your-api-key-here",
        "sk-xxxxxxxxxxxxxxxxxxxxxxxx",
        "xoxb-your-token-here",
        "ghp_xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
        "sk-ant-...",
        "AKIAXXXXXXXXXXXXXXXX",
        "Authorization: Bearer YOUR_ACCESS_TOKEN_HERE",
        "Authorization: Bearer $LONG_TOKEN_NAME_1",
        "Authorization: Bearer ${LONG_TOKEN_NAME_1}",
        "f\"Authorization: Bearer {token_with_long_name}\"",
        "postgres://user:${DB_PASSWORD}@host/db",
        "postgres://user:$PASS@host",
        "ftp://u:<password>@h",
        "postgres://{user}:{password}@{host}",
        "mysql://u:****@h",
    ] {
        check_untouched(key);
    }
}

#[test]
fn ordinary_text_is_left_alone() {
    for input in [
        "",
        " ",
        "commit 9fceb02d0ae598e95dc970b74767f19372d61af8",
        "550e8400-e29b-41d4-a716-446655440000",
        "![dot](data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAUAAAAFCAYAAACNbyblAAAAHElEQVQI12P4)",
        "password: String",
        "let token = next_token();",
        "fn f(password: &str, token: Option<String>)",
        "pip install sk-learn",
        "sk-toggleable__label-arrow sk-container-id-1",
        "task-1234567890-abcdefghij-klm",
        "risk-abcdefghijklmnopqrstuvwxyz0123",
        "a disk-0123456789abcdefghijklmn",
        "max_tokens: 4096, tokens = 100000",
        "token = self.tokens[index12]",
        "token: Token::Number32Literal",
        "secret = config.secret_v2",
        "let password = read_password_from_stdin_v2;",
        "if token == other_token_2 {",
        "tokenizer = Tokenizer2000",
        "\"password\": \"Password\"",
        "\"password\": \"must be at least 8 characters\"",
        "type=\"password\"",
        "\"password\":\"请输入您的密码abc123\"",
        "password: str = None",
        "token: 2024-01-15T10:20:30Z",
        "https://example.com:8080/a@b",
        "http://localhost:3000?mail=a@b.c",
        "git@github.com:user/repo.git",
        "访问https://a.com:8080，联系foo@bar.com",
        "Bearer authentication is required",
        "bearer of bad news",
        "PWD=/home/alice/projects2/tertulia",
        "secret: /run/secrets/db_password_1",
        "the secret: be kind",
        "AIzaTooShort",
        "npm_config_registry_of_the_long_name_here",
        "hf_hub_download_with_a_very_long_name",
        "msg.something.other",
        "eyJ is how base64 JSON begins",
        "max-token-length: abc",
        "ghp_short",
        "SG.a.b",
        "密码是什么？🔐 token 是令牌。",
        "monkey: business12 as usual",
        "const BEGIN = \"-----BEGIN PRIVATE KEY-----\";",
        "(\"-----BEGIN PRIVATE KEY-----\\n\" + body + \"\\n-----END PRIVATE KEY-----\")",
        "-----BEGIN PUBLIC KEY-----\nMIIEvQIBADANBgkqhkiG9w0BAQEFAASC\n-----END PUBLIC KEY-----",
        "-----BEGIN PRIVATE KEY-----\n...\n-----END PRIVATE KEY-----",
        "key_id: AKIA and ASIA are prefixes",
    ] {
        check_untouched(input);
    }
}

#[test]
fn private_keys() {
    for label in [
        "PRIVATE KEY",
        "RSA PRIVATE KEY",
        "EC PRIVATE KEY",
        "OPENSSH PRIVATE KEY",
        "ENCRYPTED PRIVATE KEY",
        "PGP PRIVATE KEY BLOCK",
    ] {
        let key = private_key(label);
        check(&format!("a\n{key}\nb"), "a\n[redacted:private-key]\nb");
        check(
            &format!("k=\"{}\"", key.replace('\n', "\\n")),
            "k=\"[redacted:private-key]\"",
        );
        check(
            &format!("{key}\n{key}"),
            "[redacted:private-key]\n[redacted:private-key]",
        );
        check(
            &format!("\"-----BEGIN {label}-----\" then {key}"),
            &format!("\"-----BEGIN {label}-----\" then [redacted:private-key]"),
        );
        let cut = &key[..key.len() - 40];
        assert!(
            redact(cut).text.starts_with("[redacted:private-key]"),
            "{cut}"
        );
        assert!(!redact(cut).text.contains("MIIEvQ"), "{cut}");
    }
    let tiny = "-----BEGIN PRIVATE KEY-----\nMIIabc\n-----END PRIVATE KEY-----";
    check(tiny, "[redacted:private-key]");
    check(&tiny.replace('\n', "\r\n"), "[redacted:private-key]");
}

#[test]
fn unfinished_text_stops_before_the_last_word() {
    let key = private_key("RSA PRIVATE KEY");
    let cut = format!("here: {}", &key[..key.len() - 45]);
    let almost = format!("here: {}", &key[..key.len() - 1]);
    for (input, expected) in [
        ("", ""),
        ("hel", ""),
        ("hello wor", "hello "),
        ("hello world ", "hello world "),
        ("嗨\u{3000}世界", "嗨\u{3000}世界"),
        ("世界sk-ant-ab", "世界"),
        ("key sk-ant-api03-abcd", "key "),
        ("password = \"hunter2", "password = "),
        (
            "key sk-ant-api03-abcdefghijklmnopqrst and",
            "key [redacted:anthropic-key] ",
        ),
        (cut.as_str(), "here: [redacted:private-key]"),
        (almost.as_str(), "here: [redacted:private-key]"),
        (&format!("{cut}\n"), "here: [redacted:private-key]"),
        (&format!("{key}\nb c"), "[redacted:private-key]\nb "),
        (
            "a -----BEGIN PRIVATE KEY----- x y",
            "a [redacted:private-key]",
        ),
    ] {
        assert_eq!(redact_unfinished(input).text, expected, "{input}");
    }
    assert!(matches!(
        redact_unfinished("one tw").text,
        Cow::Borrowed("one ")
    ));
}

#[test]
fn each_secret_is_counted_once() {
    let text = format!(
        "token=ghp_{0} Authorization: Bearer sk-ant-{0} ghp_{0} password=hunter22",
        &BODY[..36]
    );
    let expected = [("anthropic-key", 1), ("github-token", 2), ("secret", 1)];
    let expected = expected.map(|(kind, count)| (kind.to_owned(), count));
    assert_eq!(redact(&text).found, BTreeMap::from(expected));
}

#[test]
fn a_marker_with_an_unknown_kind_hides_nothing() {
    let key = format!("sk-ant-api03-{}", &BODY[..20]);
    check(
        &format!("[redacted:{key}]"),
        "[redacted:[redacted:anthropic-key]]",
    );
    check(
        "token: [redacted:secret] = [redacted:jwt]",
        "token: [redacted:secret] = [redacted:jwt]",
    );
    check(
        "[redacted:bearer-token] = a1b2c3d4e5f6",
        "[redacted:bearer-token] = a1b2c3d4e5f6",
    );
}

fn fragment() -> impl Strategy<Value = String> {
    let keys: Vec<String> = bare_keys().into_iter().map(|(_, key)| key).collect();
    prop_oneof![
        3 => proptest::sample::select(keys),
        4 => proptest::sample::select(vec![
            "token", "password", "API_KEY", "secret", "=", ": ", "\"", "'", "\\n", "\\\"", "Bearer ", "://", "user:",
            "@host", "Authorization: ", "[redacted:secret]", "[redacted:", "]", "-----BEGIN PRIVATE KEY-----",
            "-----END PRIVATE KEY-----", "\n", "https", "<", ">", "</", "--", "=>", "a1b2c3d4e5f6", "xxxx", "你好", "🎉",
            "$", "{", "}", "(", "...", "/", ".", "AKIA", "sk-", "eyJ", "%3D", "\x1b[0m", "/bot", "SG.",
        ]).prop_map(str::to_owned),
        1 => "[A-Za-z0-9+/=_-]{1,40}",
        1 => "\\PC{0,12}",
    ]
}

fn mixture() -> impl Strategy<Value = String> {
    proptest::collection::vec(fragment(), 0..24).prop_map(|parts| parts.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn redacting_twice_changes_nothing(text in mixture()) {
        let once = redact(&text);
        let twice = redact(&once.text);
        prop_assert_eq!(&twice.text, &once.text);
        prop_assert!(twice.found.is_empty());
    }

    #[test]
    fn text_without_findings_stays_borrowed(text in "\\PC*") {
        let result = redact(&text);
        prop_assert_eq!(matches!(result.text, Cow::Borrowed(_)), result.found.is_empty());
        prop_assert_eq!(result.found.is_empty(), result.text == text);
    }

    #[test]
    fn words_of_any_script_stay_intact(words in proptest::collection::vec("[a-z]{1,12}|\\p{Han}{1,8}|\\p{Emoji_Presentation}", 0..40)) {
        let text = words.join(" ");
        prop_assert_eq!(&redact(&text).text, &text);
    }

    #[test]
    fn a_key_between_words_never_survives(before in "[ \\p{Han}a-z]{0,20}", (kind, key) in proptest::sample::select(bare_keys()), after in "[ \\p{Han}a-z]{0,20}") {
        let text = format!("{before} {key} {after}");
        prop_assert_eq!(redact(&text).text, format!("{before} [redacted:{kind}] {after}"));
    }

    #[test]
    fn no_streamed_prefix_shows_more_of_a_key_than_a_prefix(key in proptest::sample::select(bare_keys()), cut in 0usize..200) {
        let text = format!("你好 token = {} end", key.1);
        let cut = (0..=cut.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap();
        let shown = redact_unfinished(&text[..cut]);
        prop_assert!(!shown.text.contains(&key.1[..8]), "{}", shown.text);
    }
}
