#include "note.h"

#include <stdlib.h>
#include <string.h>

#define NO_TEXT UINT32_MAX

note_t note_of(const scope_t *scope, const source_t *source) {
  note_t note = {.source = NO_SOURCE};
  note.field[NOTE_AGENT] = scope->agent_id;
  note.field[NOTE_SUBJECT] = scope->subject_id;
  note.field[NOTE_NAMESPACE] = scope->namespace_;
  if (source != NULL) {
    note.source = source->kind.tag;
    note.field[SOURCE_COMPANY] = SOME(source->company_id);
    note.field[SOURCE_ISSUE] = source->issue_id;
    note.field[SOURCE_COMMENT] = source->comment_id;
    note.field[SOURCE_DOCUMENT] = source->document_key;
    note.field[SOURCE_RUN] = source->run_id;
    note.field[SOURCE_ACTIVITY] = source->activity_id;
    note.field[SOURCE_EXTERNAL] = source->external_ref;
  }
  return note;
}

bytes_t note_encode(const note_t *note) {
  buffer_t out = {0};
  put(&out, &note->source, 1);
  for (int n = 0; n < NOTE_FIELDS; n++) {
    uint32_t len = note->field[n].is_some ? note->field[n].val.len : NO_TEXT;
    put(&out, &len, sizeof len);
    if (note->field[n].is_some) put_text(&out, note->field[n].val);
  }
  return (bytes_t){out.ptr, out.len};
}

note_t note_decode(bytes_t value) {
  note_t note = {.source = value.ptr[0]};
  uint8_t *at = value.ptr + 1;
  for (int n = 0; n < NOTE_FIELDS; n++) {
    uint32_t len;
    memcpy(&len, at, sizeof len);
    at += sizeof len;
    if (len == NO_TEXT) continue;
    note.field[n] = SOME(((text_t){at, len}));
    at += len;
  }
  return note;
}

static bool fits(maybe_t own, maybe_t asked) { return !own.is_some || !asked.is_some || same(own.val, asked.val); }

bool note_is_visible(const note_t *note, const scope_t *scope) {
  return fits(note->field[NOTE_AGENT], scope->agent_id) && fits(note->field[NOTE_SUBJECT], scope->subject_id) &&
         fits(note->field[NOTE_NAMESPACE], scope->namespace_);
}

static maybe_t copied(maybe_t field) { return field.is_some ? SOME(copy(field.val)) : field; }

snippet_t note_snippet(const note_t *note, text_t id, score_t score) {
  maybe_t field[NOTE_FIELDS];
  for (int n = 0; n < NOTE_FIELDS; n++) {
    bool is_answered = n < NOTE_AGENT || n > NOTE_NAMESPACE;
    field[n] = is_answered ? copied(note->field[n]) : (maybe_t){0};
  }
  snippet_t snippet = {.id = copy(id), .text = field[NOTE_TEXT].val, .score = score, .summary = field[NOTE_SUMMARY]};
  snippet.metadata.is_some = field[NOTE_METADATA].is_some;
  snippet.metadata.val = field[NOTE_METADATA].val;
  snippet.created_at.is_some = snippet.updated_at.is_some = true;
  snippet.created_at.val = field[NOTE_CREATED].val;
  snippet.updated_at.val = field[NOTE_UPDATED].val;
  snippet.expires_at.is_some = field[NOTE_EXPIRES].is_some;
  snippet.expires_at.val = field[NOTE_EXPIRES].val;
  snippet.source.is_some = note->source != NO_SOURCE;
  snippet.source.val = (source_t){
      .kind = {.tag = note->source},
      .company_id = field[SOURCE_COMPANY].val,
      .issue_id = field[SOURCE_ISSUE],
      .comment_id = field[SOURCE_COMMENT],
      .document_key = field[SOURCE_DOCUMENT],
      .run_id = field[SOURCE_RUN],
      .activity_id = field[SOURCE_ACTIVITY],
      .external_ref = field[SOURCE_EXTERNAL],
  };
  return snippet;
}

bytes_t key(const char *prefix, text_t rest) {
  buffer_t out = {0};
  put(&out, prefix, strlen(prefix));
  put_text(&out, rest);
  return (bytes_t){out.ptr, out.len};
}

bool fail(error_t *error, uint8_t tag, text_t message) {
  // All cases except three contain only a message.
  *error = (error_t){.tag = tag};
  error->val.internal = copy(message);
  return false;
}

bool invalid(error_t *error, text_t field, const char *message) {
  *error = (error_t){.tag = PAPERCLIP_MEMORY_TYPES_ERROR_INVALID_REQUEST};
  error->val.invalid_request.field = SOME(copy(field));
  memory_provider_string_dup(&error->val.invalid_request.message, message);
  return false;
}

static bool failed(paperclip_memory_storage_error_t *said, error_t *error) {
  bool is_limit = said->tag == PAPERCLIP_MEMORY_STORAGE_ERROR_LIMIT_EXCEEDED;
  fail(error, is_limit ? PAPERCLIP_MEMORY_TYPES_ERROR_QUOTA_EXCEEDED : PAPERCLIP_MEMORY_TYPES_ERROR_INTERNAL,
       said->val.failed);
  paperclip_memory_storage_error_free(said);
  return false;
}

bool store_get(bytes_t key, maybe_t *value, error_t *error) {
  memory_provider_option_list_u8_t found;
  paperclip_memory_storage_error_t said;
  if (!paperclip_memory_storage_get(&key, &found, &said)) return failed(&said, error);
  *value = (maybe_t){.is_some = found.is_some, .val = {found.val.ptr, found.val.len}};
  return true;
}

bool store_apply(write_t *writes, size_t count, error_t *error) {
  paperclip_memory_storage_list_write_t batch = {writes, count};
  paperclip_memory_storage_error_t said;
  return paperclip_memory_storage_apply(&batch, &said) || failed(&said, error);
}

bool store_each(const scope_t *scope, bool (*each)(text_t, const note_t *, void *), void *context, error_t *error) {
  bytes_t prefix = {(uint8_t *)"r/", 2}, cursor = {0};
  bool more = true;
  while (more) {
    paperclip_memory_storage_page_t page;
    paperclip_memory_storage_error_t said;
    bool is_read = paperclip_memory_storage_scan(&prefix, cursor.ptr != NULL ? &cursor : NULL, 0, &page, &said);
    free(cursor.ptr);
    if (!is_read) return failed(&said, error);
    for (size_t n = 0; n < page.entries.len && more; n++) {
      note_t note = note_decode(page.entries.ptr[n].value);
      bytes_t id = page.entries.ptr[n].key;
      if (note_is_visible(&note, scope)) more = each((text_t){id.ptr + 2, id.len - 2}, &note, context);
    }
    cursor = (bytes_t){0};
    if (page.next.is_some && more) {
      text_t next = copy((text_t){page.next.val.ptr, page.next.val.len});
      cursor = (bytes_t){next.ptr, next.len};
    }
    more = more && page.next.is_some;
    paperclip_memory_storage_page_free(&page);
  }
  return true;
}
