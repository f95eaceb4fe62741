// Texts that carry their length, and a buffer that grows.

#ifndef TEXT_H
#define TEXT_H

#include "memory_provider.h"

typedef memory_provider_string_t text_t;
typedef memory_provider_option_string_t maybe_t;
typedef memory_provider_list_u8_t bytes_t;

// The bindings have a separate type for each option of a text.
#define MAYBE(option) ((maybe_t){.is_some = (option).is_some, .val = (option).val})
#define SOME(text) ((maybe_t){.is_some = true, .val = (text)})
#define TEXT(literal) ((text_t){(uint8_t *)(literal), sizeof(literal) - 1})

typedef struct {
  uint8_t *ptr;
  size_t len, room;
} buffer_t;

// `malloc` that ends the call instead of answering NULL.
void *take(size_t size);

void put(buffer_t *buffer, const void *ptr, size_t len);
void put_text(buffer_t *buffer, text_t text);
void put_number(buffer_t *buffer, uint32_t number, int digits);

text_t copy(text_t text);
bool same(text_t a, text_t b);

// Less than, equal to or more than zero, in the order of bytes: that of storage.
int compare(text_t a, text_t b);

// The text in lower case, as a new one.
text_t fold(text_t text);

bool contains(text_t text, text_t part);

// The time in RFC 3339, as a new text.
text_t now(void);

#endif
