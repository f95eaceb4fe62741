//! Irregular English forms that a stemmer does not reduce.

/// The base form of an irregular English word in small letters, such as `go` for `went`; none for
/// other words. A stemmer does not reduce these, and the tense of a question often differs from
/// that of a record.
pub fn base_form(word: &str) -> Option<&'static str> {
    FORMS.binary_search_by(|(form, _)| (*form).cmp(word)).ok().map(|at| FORMS[at].1)
}

/// Form and base, sorted by form.
#[rustfmt::skip]
const FORMS: &[(&str, &str)] = &[
    ("arisen", "arise"), ("arose", "arise"), ("ate", "eat"), ("awoke", "awake"), ("beaten", "beat"),
    ("became", "become"), ("began", "begin"), ("begun", "begin"), ("bent", "bend"),
    ("bitten", "bite"), ("bled", "bleed"), ("blew", "blow"), ("blown", "blow"), ("bought", "buy"),
    ("bred", "breed"), ("broke", "break"), ("broken", "break"), ("brought", "bring"),
    ("built", "build"), ("burnt", "burn"), ("came", "come"), ("caught", "catch"),
    ("children", "child"), ("chose", "choose"), ("chosen", "choose"), ("clung", "cling"),
    ("crept", "creep"), ("dealt", "deal"), ("drank", "drink"), ("drawn", "draw"),
    ("dreamt", "dream"), ("drew", "draw"), ("driven", "drive"), ("drove", "drive"),
    ("drunk", "drink"), ("dug", "dig"), ("eaten", "eat"), ("fallen", "fall"), ("fed", "feed"),
    ("feet", "foot"), ("fell", "fall"), ("felt", "feel"), ("flew", "fly"), ("flown", "fly"),
    ("forbade", "forbid"), ("foresaw", "foresee"), ("forgave", "forgive"), ("forgiven", "forgive"),
    ("forgot", "forget"), ("forgotten", "forget"), ("fought", "fight"), ("found", "find"),
    ("froze", "freeze"), ("frozen", "freeze"), ("gave", "give"), ("geese", "goose"),
    ("given", "give"), ("gone", "go"), ("got", "get"), ("gotten", "get"), ("grew", "grow"),
    ("grown", "grow"), ("heard", "hear"), ("held", "hold"), ("hid", "hide"), ("hidden", "hide"),
    ("hung", "hang"), ("kept", "keep"), ("knelt", "kneel"), ("knew", "know"), ("knives", "knife"),
    ("known", "know"), ("laid", "lay"), ("leapt", "leap"), ("learnt", "learn"), ("led", "lead"),
    ("left", "leave"), ("lent", "lend"), ("lost", "lose"), ("made", "make"), ("meant", "mean"),
    ("men", "man"), ("met", "meet"), ("mice", "mouse"), ("mistook", "mistake"),
    ("outgrew", "outgrow"), ("overcame", "overcome"), ("overheard", "overhear"),
    ("oversaw", "oversee"), ("paid", "pay"), ("proven", "prove"), ("ran", "run"), ("rang", "ring"),
    ("rebuilt", "rebuild"), ("retold", "retell"), ("rewritten", "rewrite"), ("rewrote", "rewrite"),
    ("ridden", "ride"), ("risen", "rise"), ("rode", "ride"), ("rose", "rise"), ("rung", "ring"),
    ("said", "say"), ("sang", "sing"), ("sank", "sink"), ("sat", "sit"), ("saw", "see"),
    ("seen", "see"), ("sent", "send"), ("sewn", "sew"), ("shaken", "shake"), ("shelves", "shelf"),
    ("shone", "shine"), ("shook", "shake"), ("shot", "shoot"), ("shown", "show"),
    ("shrank", "shrink"), ("slept", "sleep"), ("slid", "slide"), ("slung", "sling"),
    ("sold", "sell"), ("sought", "seek"), ("spat", "spit"), ("sped", "speed"), ("spent", "spend"),
    ("spoke", "speak"), ("spoken", "speak"), ("sprang", "spring"), ("spun", "spin"),
    ("stole", "steal"), ("stolen", "steal"), ("stood", "stand"), ("stricken", "strike"),
    ("strove", "strive"), ("struck", "strike"), ("stuck", "stick"), ("stung", "sting"),
    ("sung", "sing"), ("sunk", "sink"), ("swam", "swim"), ("swept", "sweep"), ("swore", "swear"),
    ("sworn", "swear"), ("swum", "swim"), ("swung", "swing"), ("taken", "take"),
    ("taught", "teach"), ("teeth", "tooth"), ("thought", "think"), ("threw", "throw"),
    ("thrown", "throw"), ("told", "tell"), ("took", "take"), ("tore", "tear"), ("torn", "tear"),
    ("undergone", "undergo"), ("understood", "understand"), ("underwent", "undergo"),
    ("upheld", "uphold"), ("went", "go"), ("wept", "weep"), ("withdrawn", "withdraw"),
    ("withdrew", "withdraw"), ("withheld", "withhold"), ("wives", "wife"), ("woke", "wake"),
    ("woken", "wake"), ("wolves", "wolf"), ("women", "woman"), ("won", "win"), ("wore", "wear"),
    ("worn", "wear"), ("wove", "weave"), ("woven", "weave"), ("written", "write"),
    ("wrote", "write"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sorted_and_each_form_leads_to_its_base() {
        assert!(FORMS.is_sorted());
        assert_eq!(base_form("went"), Some("go"));
        assert_eq!(base_form("walked"), None);
    }
}
