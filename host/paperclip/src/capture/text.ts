// Texts as memory takes them: whole, without what recall added to them.

/** The limit of one text in bytes of UTF-8; host/docs/limits.md. */
export const TEXT_BYTES = 1_048_576;

/** The most characters of a query. Such a query has at most 16,000 bytes, and memhost takes 16,384. */
export const QUERY_CHARACTERS = 4000;

const OPENING = "<memhost-recall>";
const CLOSING = "</memhost-recall>";

/** Marks recalled text, so that it is not remembered as something new when it comes back in a run's output. */
export function marked(recalled: string): string {
  return recalled === "" ? "" : `${OPENING}\n${recalled.replaceAll(/memhost-recall/gi, "memhost recall")}\n${CLOSING}`;
}

/** Removes recalled blocks, also within JSON strings, and one that was cut off at the end of an excerpt. */
export function withoutRecalled(text: string): string {
  let rest = text;
  let kept = "";
  for (;;) {
    const start = rest.indexOf(OPENING);
    if (start < 0) return kept + rest;
    kept += rest.slice(0, start);
    const end = rest.indexOf(CLOSING, start);
    if (end < 0) return kept;
    rest = rest.slice(end + CLOSING.length);
  }
}

const bytes = (text: string): number => Buffer.byteLength(text, "utf8");

/** Cuts a text into parts of at most `limit` bytes, at the end of a line where there is one, never inside a character. */
export function parts(text: string, limit = TEXT_BYTES): string[] {
  if (bytes(text) <= limit) return [text];
  const result: string[] = [];
  const whole = Buffer.from(text, "utf8");
  let start = 0;
  while (start < whole.length) {
    let end = Math.min(start + limit, whole.length);
    if (end < whole.length) {
      while (((whole[end] ?? 0) & 0xc0) === 0x80) end -= 1;
      const line = whole.lastIndexOf(0x0a, end - 1);
      if (line > start + limit / 2) end = line + 1;
    }
    result.push(whole.subarray(start, end).toString("utf8"));
    start = end;
  }
  return result;
}

/** The beginning of a text, at most so many bytes, never ending inside a character. */
export function cut(text: string, bytes: number): string {
  const whole = Buffer.from(text, "utf8");
  if (whole.length <= bytes) return text;
  let end = bytes;
  while (((whole[end] ?? 0) & 0xc0) === 0x80) end -= 1;
  return whole.subarray(0, end).toString("utf8");
}

/** The beginning of a text, at most so many UTF-16 units, never ending inside a character. */
export function clip(text: string, units: number): string {
  if (text.length <= units) return text;
  const last = text.charCodeAt(units - 1);
  return text.slice(0, last >= 0xd800 && last <= 0xdbff ? units - 1 : units);
}

/** A text as a model is shown it: what cannot be seen is written as its number. Joiners inside words and emoji stay. */
export function visible(text: string): string {
  return text.replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, (character, at: number) => {
    const joins = /[\u200c\u200d]/.test(character) && /[^\x00-\x7f]/.test(text[at - 1] ?? "");
    if (character === "\n" || (joins && /[^\x00-\x7f]/.test(text[at + 1] ?? ""))) return character;
    return `\\u{${(character.codePointAt(0) ?? 0).toString(16)}}`;
  });
}

/** What others wrote, as a quotation: no line of it can look like one of ours. */
export const quoted = (text: string): string =>
  visible(text.trim())
    .split("\n")
    .map((line) => `> ${line}`)
    .join("\n");

/** An id or a name of others within a line of ours: in quotes, where it could be read as more than one. */
export const named = (text: string): string =>
  /^[\p{L}\p{N}\-_.:/@+=~#%&* ]{1,200}$/u.test(text) ? text : visible(JSON.stringify(clip(text, 200)));
