// A note as it is stored, and the storage that it is in.

#ifndef NOTE_H
#define NOTE_H

#include "text.h"

typedef exports_paperclip_memory_provider_error_t error_t;
typedef paperclip_memory_types_scope_t scope_t;
typedef paperclip_memory_types_source_ref_t source_t;
typedef paperclip_memory_types_snippet_t snippet_t;
typedef paperclip_memory_types_score_t score_t;
typedef paperclip_memory_storage_write_t write_t;

enum {
  NOTE_TEXT, NOTE_SUMMARY, NOTE_METADATA, NOTE_AGENT, NOTE_SUBJECT, NOTE_NAMESPACE, NOTE_CREATED, NOTE_UPDATED,
  NOTE_EXPIRES,
  SOURCE_COMPANY, SOURCE_ISSUE, SOURCE_COMMENT, SOURCE_DOCUMENT, SOURCE_RUN, SOURCE_ACTIVITY, SOURCE_EXTERNAL,
  NOTE_FIELDS
};

typedef struct {
  // The kind of source, or `NO_SOURCE`.
  uint8_t source;
  maybe_t field[NOTE_FIELDS];
} note_t;

#define NO_SOURCE 0xff

// The fields of a new note. They point into the arguments.
note_t note_of(const scope_t *scope, const source_t *source);

bytes_t note_encode(const note_t *note);

// The fields point into `value`.
note_t note_decode(bytes_t value);

// Whether a scope may see a note: it has no other value in a field that the note has set.
bool note_is_visible(const note_t *note, const scope_t *scope);

snippet_t note_snippet(const note_t *note, text_t id, score_t score);

// A new key made of `prefix` and `rest`.
bytes_t key(const char *prefix, text_t rest);

// Storage. Each of these answers false and sets `error` if it fails.

bool store_get(bytes_t key, maybe_t *value, error_t *error);
bool store_apply(write_t *writes, size_t count, error_t *error);

// Calls `each` with every note that the scope may see, in the order of ids, until it answers false.
bool store_each(const scope_t *scope, bool (*each)(text_t id, const note_t *note, void *context), void *context,
                error_t *error);

bool fail(error_t *error, uint8_t tag, text_t message);
bool invalid(error_t *error, text_t field, const char *message);

#endif
