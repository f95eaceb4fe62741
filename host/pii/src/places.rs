//! Postal addresses, in the forms of the countries that have one.
//!
//! A street needs a word for a street and a number; a town needs its postal code and, where codes
//! are mere digits, the name of a state or of a large town, or a street in front of it.

use std::ops::Range;

use super::check::Check;
use super::text::{before, byte, ends_clean, is_one_of, is_word, starts_clean};
use super::{Finding, PiiKind};

pub(super) const SPECS: &[(&str, Check)] = &[
    // English: a number, capitalised words, a word for a street, and maybe the flat.
    (
        concat!(
            r"(?-u:\b)[0-9]{1,5}[a-zA-Z]?,? (?:[NSEW]\.? )?(?:[A-Z][A-Za-z0-9'.-]{0,30},? ){1,4}",
            r"(?:Street|St|Avenue|Ave|Road|Rd|Lane|Ln|Boulevard|Blvd|Drive|Dr|Court|Ct|Square|Sq|Terrace|Place|Pl|Way|",
            r"Crescent|Close|Highway|Hwy|Parkway|Pkwy|Circle|Mews|Gardens|Grove|Walk|Trail|Alley|Marg|Nagar)(?-u:\b)",
            r"(?:,? (?:Apt|Apartment|Flat|Unit|Suite|Ste)\.? ?#?[0-9A-Za-z]{1,5}(?-u:\b))?",
        ),
        street,
    ),
    (r"(?-u:\b)P\.? ?O\.? Box [0-9]{1,7}(?-u:\b)", street),
    // American: a state and its ZIP code.
    (
        concat!(
            r"[A-Z][a-z]{2,20},? (?:A[KLRZ]|C[AOT]|D[CE]|FL|GA|HI|I[ADLN]|K[SY]|LA|M[ADEINOST]|N[CDEHJMVY]|O[HKR]",
            r"|PA|RI|S[CD]",
            r"|T[NX]|UT|V[AT]|W[AIVY]|Texas|California|Florida|New York|Ohio|Illinois",
            r"|Washington),? [0-9]{5}(?:-[0-9]{4})?",
        ),
        town,
    ),
    // British: the postcode tells some ten houses.
    (r"[A-Z]{1,2}[0-9][0-9A-Z]? [0-9][ABD-HJLNP-UW-Z]{2}", postcode),
    // German: a word that ends like a street, with its number.
    (
        concat!(
            r"[A-ZÄÖÜ][A-Za-zäöüß-]{0,40}(?:stra(?:ß|ss)e|str\.|weg|platz|gasse|allee|straat|laan) ",
            r"[0-9]{1,4}(?: ?[a-z])?(?:/[0-9]{1,4}){0,3}(?-u:\b)",
        ),
        street,
    ),
    (
        r"[A-ZÄÖÜ][a-zäöüß]{1,30}(?:er|-) ?(?:Stra(?:ß|ss)e|Str\.|Allee|Gasse|Damm) [0-9]{1,4}(?:/[0-9]{1,4}){0,3}",
        street,
    ),
    // German, Swiss and Italian: a street by its preposition or its end, and the town with its
    // code.
    (
        concat!(
            r"(?:(?:A[mn]|I[mn]|Auf|Zu[mr]|Unter|Hinter|Beim?|Via|Viale|Piazza|Corso)(?: (?:de[rnm]|della|del",
            r"|di))?(?: [A-ZÄÖÜ][A-Za-zÀ-ɏ'’-]{1,30}){1,3}",
            r"|[A-ZÄÖÜ][A-Za-zÀ-ɏ-]{1,30}(?:ring|markt|damm|ufer|steig|graben|hof|berg|pfad|kai|chaussee|promenade))",
            r" [0-9]{1,3}(?: ?[a-z])?(?:,| in) (?:[A-Z]{1,2}-)?[0-9]{4,5} [A-ZÄÖÜ][A-Za-zÀ-ɏ-]{2,30}",
        ),
        street,
    ),
    // French: number, street and name.
    (
        concat!(
            r"(?-u:\b)[0-9]{1,4}(?: ?(?:bis|ter|quater))?,? ",
            r"(?:[Rr]ue|[Aa]venue|[Aa]v\.|[Bb]oulevard|[Bb]d|[Pp]lace|[Cc]hemin|[Ii]mpasse|[Aa]llée|[Qq]uai",
            r"|[Rr]oute|[Ss]quare|[Ss]entier) ",
            r"(?:(?:de|du|des|la|le|les|aux?) |(?:de )?[dl]['’]){0,2}[A-ZÀ-Ý][A-Za-zÀ-ɏ'’-]{1,30}",
            r"(?:[ -][A-ZÀ-Ý][A-Za-zÀ-ɏ'’-]{1,30}){0,3}(?:, [0-9]{5} [A-ZÀ-Ý][A-Za-zÀ-ɏ-]{1,30})?",
        ),
        street,
    ),
    // Chinese: a road and a house.
    (
        concat!(
            r"(?:[一-鿿]{1,12}[省市区县])?[一-鿿]{1,10}(?:路|街|道|巷|弄|胡同)[东西南北中段]{0,2}[0-9]{1,5}(?:弄|号|號)",
            r"(?:[0-9A-Za-z]{1,4}(?:号楼|栋|幢|单元|室|号|层|楼)){0,4}",
        ),
        house_chinese,
    ),
    // Japanese: a town, and a block by its number.
    (
        concat!(
            r"[一-鿿ヶケ]{1,8}[都道府県市区町村郡][一-鿿ぁ-ヿ]{0,20}",
            r"[0-9一二三四五六七八九十]{1,4}(?:丁目|番地|番町|-[0-9]{1,4}-[0-9]{1,4})(?:[0-9]{1,4}(?:番地?|号)?-?){0,3}",
        ),
        street,
    ),
    (r"〒 ?[0-9]{3}-?[0-9]{4}", street),
    (
        concat!(
            r"(?-u:\b)[0-9]{1,3}(?:-[0-9]{1,3}){1,2},? [A-Z][a-z-]{2,20}(?:-[A-Z][a-z]+)?,? ",
            r"[A-Z][a-z]{2,20}-(?:ku|shi|cho|machi)",
        ),
        street,
    ),
    // Indian: a large town and its code.
    (
        concat!(
            r"(?:Mumbai|Delhi|Bengaluru|Bangalore|Hyderabad|Ahmedabad|Chennai|Kolkata|Surat|Pune|Jaipur|Lucknow",
            r"|Kanpur|Nagpur",
            r"|Indore|Thane|Bhopal|Visakhapatnam|Patna|Vadodara|Ghaziabad|Ludhiana|Agra|Nashik|Faridabad|Meerut|Rajkot",
            r"|Varanasi|Srinagar|Amritsar|Allahabad|Prayagraj|Ranchi|Coimbatore|Jabalpur|Gwalior|Vijayawada",
            r"|Jodhpur|Madurai",
            r"|Raipur|Kota|Guwahati|Chandigarh|Mysuru|Mysore|Gurugram|Gurgaon|Noida|Kochi|Thiruvananthapuram",
            r"|Bhubaneswar",
            r"|Dehradun|Mangaluru|Goa|Secunderabad|Navi Mumbai)(?: ?[-–,] ?| )[1-8][0-9]{2} ?[0-9]{3}",
        ),
        town,
    ),
    (
        r"(?i-u:\b)(?:H\.? ?No\.?|House No\.?|Flat No\.?|Door No\.?) ?[0-9][0-9A-Za-z/-]{0,12}",
        street,
    ),
];

/// A street that begins where no word or number goes on.
fn street(text: &str, at: Range<usize>) -> Option<Finding> {
    // Words that end like a street and are none, and phrases of time and place in a text.
    const OTHER: &str = "Arbeitsplatz Speicherplatz Listenplatz Tabellenplatz Stellplatz Parkplatz \
                         Sitzplatz \
        Startplatz Jahr Kapitel Abschnitt Schritt Punkt Absatz Band Quartal Teil Artikel Bereich";
    let starts =
        text[..at.start].chars().next_back().is_none_or(|c| !c.is_alphanumeric() || c > '\u{2E7F}');
    let other = text[at.clone()].split(' ').take(3).any(|word| is_one_of(word, OTHER));
    (starts && !other && !is_word(byte(text, at.end)))
        .then(|| Finding::high(PiiKind::PostalAddress, at))
}

fn town(text: &str, at: Range<usize>) -> Option<Finding> {
    let starts = !is_word(before(text, at.start, 1));
    (starts && ends_clean(text, at.end)).then(|| Finding::high(PiiKind::PostalAddress, at))
}

/// A postcode of an area that exists.
fn postcode(text: &str, at: Range<usize>) -> Option<Finding> {
    const AREAS: &str = "AB AL B BA BB BD BH BL BN BR BS BT CA CB CF CH CM CO CR CT CV CW DA DD DE \
                         DG DH DL DN \
        DT DY E EC EH EN EX FK FY G GL GU GY HA HD HG HP HR HS HU HX IG IM IP IV JE KA KT KW KY L \
        LA LD LE LL LN \
        LS LU M ME MK ML N NE NG NN NP NR NW OL OX PA PE PH PL PO PR RG RH RM S SA SE SG SK SL SM \
        SN SO SP SR SS \
        ST SW SY TA TD TF TN TQ TR TS TW UB W WA WC WD WF WN WR WS WV YO ZE";
    let code = &text[at.clone()];
    let area = &code[..code.find(|c: char| c.is_ascii_digit())?];
    let clean = starts_clean(text, at.start) && ends_clean(text, at.end);
    // "M2 8GB" is a computer.
    let size = code.ends_with("GB") || code.ends_with("TB");
    (clean && !size && is_one_of(area, AREAS)).then(|| Finding::high(PiiKind::PostalAddress, at))
}

/// A house on a road. "10号线" is a line of an underground.
fn house_chinese(text: &str, at: Range<usize>) -> Option<Finding> {
    let line = text[at.end..].starts_with(['线', '線', '文']);
    (!line).then(|| Finding::high(PiiKind::PostalAddress, at))
}
