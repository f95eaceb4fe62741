#include "text.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <wctype.h>

void *take(size_t size) {
  void *ptr = malloc(size > 0 ? size : 1);
  if (ptr == NULL) abort();
  return ptr;
}

void put(buffer_t *buffer, const void *ptr, size_t len) {
  if (len > buffer->room - buffer->len) {
    buffer->room = (buffer->len + len) * 2;
    buffer->ptr = realloc(buffer->ptr, buffer->room);
    if (buffer->ptr == NULL) abort();
  }
  if (len > 0) memcpy(buffer->ptr + buffer->len, ptr, len);
  buffer->len += len;
}

void put_text(buffer_t *buffer, text_t text) { put(buffer, text.ptr, text.len); }

// Writes at least so many digits. This is smaller than `printf`.
void put_number(buffer_t *buffer, uint32_t number, int digits) {
  char shown[10];
  int count = 0;
  do {
    shown[9 - count++] = '0' + number % 10;
    number /= 10;
  } while (number > 0 || count < digits);
  put(buffer, shown + 10 - count, count);
}

text_t copy(text_t text) {
  text_t copied = {take(text.len), text.len};
  if (text.len > 0) memcpy(copied.ptr, text.ptr, text.len);
  return copied;
}

bool same(text_t a, text_t b) { return a.len == b.len && (a.len == 0 || memcmp(a.ptr, b.ptr, a.len) == 0); }

int compare(text_t a, text_t b) {
  size_t shorter = a.len < b.len ? a.len : b.len;
  int order = shorter == 0 ? 0 : memcmp(a.ptr, b.ptr, shorter);
  return order != 0 ? order : (a.len > b.len) - (a.len < b.len);
}

// Texts of the contract are UTF-8, so nothing is checked here.
static uint32_t decode(const uint8_t **at) {
  uint8_t first = *(*at)++;
  int more = first < 0x80 ? 0 : first < 0xe0 ? 1 : first < 0xf0 ? 2 : 3;
  uint32_t code = more == 0 ? first : first & (0x3f >> more);
  while (more-- > 0) code = code << 6 | (*(*at)++ & 0x3f);
  return code;
}

static void encode(buffer_t *buffer, uint32_t code) {
  uint8_t unit[4];
  size_t len = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
  for (size_t n = len - 1; n > 0; n--, code >>= 6) unit[n] = 0x80 | (code & 0x3f);
  unit[0] = len == 1 ? code : (uint8_t)(0xf00 >> len) | code;
  put(buffer, unit, len);
}

text_t fold(text_t text) {
  buffer_t folded = {take(text.len), 0, text.len};
  for (const uint8_t *at = text.ptr, *end = text.ptr + text.len; at < end;) {
    if (*at < 0x80 && folded.len < folded.room) {
      folded.ptr[folded.len++] = *at | (*at >= 'A' && *at <= 'Z' ? 0x20 : 0);
      at++;
    } else {
      encode(&folded, towlower(decode(&at)));
    }
  }
  return (text_t){folded.ptr, folded.len};
}

bool contains(text_t text, text_t part) {
  if (part.len == 0 || part.len > text.len) return part.len == 0;
  const uint8_t *at = text.ptr, *last = text.ptr + text.len - part.len;
  for (; at <= last && (at = memchr(at, part.ptr[0], last - at + 1)) != NULL; at++) {
    if (memcmp(at, part.ptr, part.len) == 0) return true;
  }
  return false;
}

text_t now(void) {
  struct timespec time;
  struct tm utc;
  clock_gettime(CLOCK_REALTIME, &time);
  gmtime_r(&time.tv_sec, &utc);
  buffer_t shown = {0};
  put_number(&shown, utc.tm_year + 1900, 4);
  const struct { char before; uint32_t value; } parts[] = {
      {'-', utc.tm_mon + 1}, {'-', utc.tm_mday}, {'T', utc.tm_hour}, {':', utc.tm_min}, {':', utc.tm_sec}};
  for (size_t n = 0; n < 5; n++) {
    put(&shown, &parts[n].before, 1);
    put_number(&shown, parts[n].value, 2);
  }
  put(&shown, ".", 1);
  put_number(&shown, time.tv_nsec, 9);
  put(&shown, "Z", 1);
  return (text_t){shown.ptr, shown.len};
}
