#include "json.h"

#include <stdlib.h>
#include <string.h>

// The contract allows 64 levels.
#define DEPTH 80

typedef struct {
  const uint8_t *at, *end;
} cursor_t;

typedef struct {
  cursor_t name, value;
} member_t;

static bool is_next(cursor_t *in, char wanted) {
  while (in->at < in->end && strchr(" \t\r\n", *in->at) != NULL) in->at++;
  return in->at < in->end && *in->at == (uint8_t)wanted;
}

static bool eat(cursor_t *in, char wanted) {
  bool is_there = is_next(in, wanted);
  in->at += is_there;
  return is_there;
}

static bool skip_string(cursor_t *in) {
  if (!eat(in, '"')) return false;
  for (; in->at < in->end; in->at++) {
    if (*in->at == '"') return in->at++, true;
    if (*in->at == '\\') in->at++;
  }
  return false;
}

static bool skip(cursor_t *in, int depth);

// Begins after the opening bracket. Answers whether there is one more element or member.
static bool has_more(cursor_t *in, char close, bool is_first, bool *is_broken) {
  if (eat(in, close)) return false;
  if (!is_first && !eat(in, ',')) *is_broken = true;
  return !*is_broken;
}

static bool next_member(cursor_t *in, bool is_first, member_t *member, bool *is_broken) {
  if (!has_more(in, '}', is_first, is_broken)) return false;
  is_next(in, '"');
  member->name = *in;
  *is_broken = !skip_string(in) || !eat(in, ':');
  is_next(in, ' ');
  member->value = *in;
  *is_broken = *is_broken || !skip(in, DEPTH);
  member->name.end = member->value.end = in->at;
  return !*is_broken;
}

static bool skip(cursor_t *in, int depth) {
  bool is_broken = depth == 0;
  if (is_next(in, '"')) return skip_string(in);
  if (!is_broken && (is_next(in, '{') || is_next(in, '['))) {
    char close = *in->at++ == '{' ? '}' : ']';
    for (bool is_first = true; has_more(in, close, is_first, &is_broken); is_first = false) {
      if (close == '}') is_broken = !skip_string(in) || !eat(in, ':');
      is_broken = is_broken || !skip(in, depth - 1);
    }
    return !is_broken;
  }
  const uint8_t *begin = in->at;
  while (in->at < in->end && strchr(" \t\r\n,:]}[{\"", *in->at) == NULL) in->at++;
  return !is_broken && in->at > begin;
}

static uint32_t hex(cursor_t *in) {
  uint32_t value = 0;
  for (int n = 0; n < 4 && in->at < in->end; n++, in->at++) {
    uint8_t digit = *in->at;
    value = value << 4 | (digit <= '9' ? digit - '0' : (digit | 0x20) - 'a' + 10);
  }
  return value;
}

// One UTF-16 unit of an escape, or one byte: two spellings of a text become the same bytes in `out`.
static void put_character(cursor_t *in, buffer_t *out) {
  static const char letters[] = "bfnrt", meant[] = "\b\f\n\r\t";
  uint8_t byte = *in->at++;
  if (byte == '\\' && in->at < in->end) {
    byte = *in->at++;
    const char *letter = memchr(letters, byte, 5);
    if (letter != NULL) byte = meant[letter - letters];
    if (byte == 'u') {
      uint32_t code = hex(in);
      if (code >= 0xd800 && code < 0xdc00 && in->end - in->at >= 6 && in->at[0] == '\\') {
        in->at += 2;
        code = 0x10000 + ((code - 0xd800) << 10) + (hex(in) - 0xdc00);
      }
      uint8_t unit[] = {0xf0 | code >> 18, 0x80 | (code >> 12 & 0x3f), 0x80 | (code >> 6 & 0x3f), 0x80 | (code & 0x3f)};
      if (code < 0x80) unit[3] = code;
      else if (code < 0x800) unit[2] = 0xc0 | code >> 6;
      else if (code < 0x10000) unit[1] = 0xe0 | code >> 12;
      size_t len = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
      return put(out, unit + 4 - len, len);
    }
  }
  put(out, &byte, 1);
}

static text_t unescaped(cursor_t in) {
  buffer_t out = {0};
  for (in.at++; in.at < in.end && *in.at != '"';) put_character(&in, &out);
  return (text_t){out.ptr, out.len};
}

static bool are_strings_equal(cursor_t a, cursor_t b) {
  text_t one = unescaped(a), other = unescaped(b);
  bool is_equal = same(one, other);
  free(one.ptr);
  free(other.ptr);
  return is_equal;
}

static bool are_equal(cursor_t a, cursor_t b);

static bool find(cursor_t object, cursor_t name, member_t *found) {
  bool is_broken = false;
  eat(&object, '{');
  for (bool is_first = true; next_member(&object, is_first, found, &is_broken); is_first = false) {
    if (are_strings_equal(found->name, name)) return true;
  }
  return false;
}

// How many members `part` has, or -1 if `whole` lacks one of them.
static int members_in(cursor_t whole, cursor_t part) {
  bool is_broken = false;
  int count = 0;
  member_t member, found;
  eat(&part, '{');
  for (; next_member(&part, count == 0, &member, &is_broken); count++) {
    if (!find(whole, member.name, &found) || !are_equal(found.value, member.value)) return -1;
  }
  return count;
}

static bool are_scalars_equal(cursor_t a, cursor_t b) {
  const uint8_t *begin_a = a.at, *begin_b = b.at;
  skip(&a, 1);
  skip(&b, 1);
  text_t one = {(uint8_t *)begin_a, a.at - begin_a}, other = {(uint8_t *)begin_b, b.at - begin_b};
  if (same(one, other)) return true;
  // 1 and 1.0 are the same number. Both end before a character that no number has, or at the end of the text.
  char numbers[2][48] = {{0}};
  if (one.len >= 48 || other.len >= 48) return false;
  memcpy(numbers[0], one.ptr, one.len);
  memcpy(numbers[1], other.ptr, other.len);
  char *end[2];
  double value[2] = {strtod(numbers[0], &end[0]), strtod(numbers[1], &end[1])};
  return *end[0] == 0 && *end[1] == 0 && value[0] == value[1];
}

static bool are_equal(cursor_t a, cursor_t b) {
  if (is_next(&a, '"')) return is_next(&b, '"') && are_strings_equal(a, b);
  if (is_next(&a, '{')) {
    int count = is_next(&b, '{') ? members_in(a, b) : -1;
    return count >= 0 && count == members_in(b, a);
  }
  if (is_next(&b, '"') || is_next(&b, '{')) return false;
  if (!is_next(&a, '[') || !is_next(&b, '[')) return is_next(&a, '[') == is_next(&b, '[') && are_scalars_equal(a, b);
  eat(&a, '[');
  eat(&b, '[');
  bool is_broken = false;
  for (bool is_first = true;; is_first = false) {
    bool more = has_more(&a, ']', is_first, &is_broken);
    if (more != has_more(&b, ']', is_first, &is_broken) || is_broken) return false;
    if (!more) return true;
    if (!are_equal(a, b)) return false;
    skip(&a, DEPTH);
    skip(&b, DEPTH);
  }
}

static cursor_t over(text_t json) { return (cursor_t){json.ptr, json.ptr + json.len}; }

bool json_is_object(text_t json) {
  cursor_t in = over(json);
  return is_next(&in, '{') && skip(&in, DEPTH) && (is_next(&in, ' '), in.at == in.end);
}

bool json_has(text_t whole, text_t part) { return members_in(over(whole), over(part)) >= 0; }

text_t json_merged(text_t under, text_t upper) {
  buffer_t out = {0};
  const text_t both[] = {upper, under};
  for (int n = 0; n < 2; n++) {
    bool is_broken = false;
    member_t member, found;
    cursor_t in = over(both[n]);
    eat(&in, '{');
    for (bool is_first = true; next_member(&in, is_first, &member, &is_broken); is_first = false) {
      if (n == 1 && find(over(upper), member.name, &found)) continue;
      put(&out, out.len == 0 ? "{" : ",", 1);
      put(&out, member.name.at, member.name.end - member.name.at);
    }
  }
  put(&out, out.len == 0 ? "{}" : "}", out.len == 0 ? 2 : 1);
  return (text_t){out.ptr, out.len};
}
