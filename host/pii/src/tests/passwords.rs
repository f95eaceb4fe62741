//! Passwords that people tell, and what they say about passwords.

use crate::{PiiRisk, redact, risk, scan};

#[test]
fn a_password_that_somebody_tells_is_raw() {
    for text in [
        "Remember that my password is hunter2.",
        "password: hunter2",
        "password:hunter2",
        "password = hunter2",
        "Password: Str0ng!",
        "my password is hunter2",
        "my passwd is now hunter2, keep it",
        "pwd=abc12",
        "the passphrase is tr0ub4dor",
        "my password for the wifi is hunter2",
        "my password is 'hunter2'",
        "My password is swordfish.",
        "my password is 48213",
        "**password:** `pa55w`",
        "我的密码是hunter2",
        "密码\u{FF1A}hunter2\u{FF0C}别告诉别人",
        "wifi密码是 abcd1234",
        "路由器的密码为admin88",
    ] {
        assert_eq!(risk(text), PiiRisk::High, "{text}");
        let left = redact(text);
        assert!(
            !["hunter", "swordfish", "55w", "4821", "1234"].iter().any(|part| left.contains(part)),
            "{left}"
        );
    }
    assert_eq!(
        redact("密码\u{FF1A}hunter2\u{FF0C}别告诉别人"),
        "密码\u{FF1A}[SECRET]\u{FF0C}别告诉别人"
    );
}

#[test]
fn what_is_said_about_passwords_is_not_raw() {
    for text in [
        "the password policy is strict",
        "reset password flow",
        "The wifi password in the office changes every month.",
        "My password is wrong.",
        "my password is expired",
        "my password is too weak",
        "the password is 16-char or more",
        "my password is 12 characters long",
        "the password is sha256 hashed",
        "the password is utf-8 encoded",
        "our password is stored as bcrypt",
        "password: u64, pwd: &str",
        "password = cfg.pw1",
        "password: [u8; 32]",
        "pwd is /home/user1",
        "password: String",
        "my password is 100% safe",
        "the password is required",
        "我忘了密码",
        "密码是必填的",
        "密码是SHA256加密的",
    ] {
        assert!(risk(text) < PiiRisk::High, "{text}: {:?}", scan(text));
    }
}

#[test]
fn words_that_announce_personal_data_are_a_hint() {
    for text in [
        "his email address is on file",
        "Her phone number is in the book.",
        "I forgot my password",
        "my work password expires on Friday",
        "他的邮箱密码又忘了",
    ] {
        assert_eq!(risk(text), PiiRisk::Possible, "{text}");
    }
    for text in ["the password policy is strict", "password manager", "its address is on the stack"]
    {
        assert_eq!(risk(text), PiiRisk::None, "{text}");
    }
}
