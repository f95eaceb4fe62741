// A memory provider in C: notes in the binding's storage, found by the words that they share with the question.
//
// What each function must do is stated in `wit/provider.wit`. A function frees its arguments; the bindings free its answer.
// A function answers whether it succeeded.

#include <stdlib.h>
#include <string.h>

#include "json.h"
#include "note.h"

#define MARK "o/"
#define RECORD "r/"
#define UNSCORED ((score_t){.tag = PAPERCLIP_MEMORY_TYPES_SCORE_NONE})

typedef exports_paperclip_memory_provider_list_record_id_t ids_t;

void exports_paperclip_memory_provider_describe(exports_paperclip_memory_provider_description_t *ret) {
  exports_paperclip_memory_provider_permission_request_t *storage = take(sizeof *storage);
  *storage = (exports_paperclip_memory_provider_permission_request_t){
      .permission = {.tag = EXPORTS_PAPERCLIP_MEMORY_PROVIDER_PERMISSION_STORAGE, .val.storage = 64 << 20},
      .reason = copy(TEXT("The notes are kept in it")),
  };
  *ret = (exports_paperclip_memory_provider_description_t){
      .provider_key = copy(TEXT("notes-c")),
      .name = copy(TEXT("Notes in C")),
      .version = copy(TEXT("0.1.0")),
      .summary = copy(TEXT("Notes, found by their words; an example in C")),
      // A mark is looked up and then written. Two instances at once could both find none.
      .max_concurrency = 1,
      .permissions = {storage, 1},
  };
}

bool exports_paperclip_memory_provider_validate_config(
    exports_paperclip_memory_provider_json_t *config, exports_paperclip_memory_provider_list_config_error_t *err) {
  bool is_empty = json_is_object(*config) && json_has(TEXT("{}"), *config);
  exports_paperclip_memory_provider_json_free(config);
  if (is_empty) return true;
  *err = (exports_paperclip_memory_provider_list_config_error_t){take(sizeof *err->ptr), 1};
  err->ptr->pointer = copy(TEXT(""));
  err->ptr->message = copy(TEXT("this provider has no configuration; leave it out"));
  return false;
}

static bool check_object(maybe_t json, text_t field, error_t *error) {
  return !json.is_some || json_is_object(json.val) || invalid(error, field, "it is not a JSON object; send one");
}

static write_t writing(bytes_t key, bytes_t value) {
  write_t write = {.tag = PAPERCLIP_MEMORY_STORAGE_WRITE_PUT};
  write.val.put = (paperclip_memory_storage_entry_t){key, value};
  return write;
}

// Ids as a value, each with its length before it.
static bytes_t marked(ids_t ids) {
  buffer_t out = {0};
  for (size_t n = 0; n < ids.len; n++) {
    uint32_t len = ids.ptr[n].len;
    put(&out, &len, sizeof len);
    put_text(&out, ids.ptr[n]);
  }
  return (bytes_t){out.ptr, out.len};
}

// The answer to an earlier delivery of this operation; `ids->ptr` is NULL if there was none.
static bool answered(bytes_t mark, ids_t *ids, error_t *error) {
  maybe_t value;
  if (!store_get(mark, &value, error)) return false;
  if (!value.is_some) return true;
  ids->ptr = take(value.val.len / sizeof(uint32_t) * sizeof *ids->ptr);
  for (uint8_t *at = value.val.ptr, *end = at + value.val.len; at < end;) {
    uint32_t len;
    memcpy(&len, at, sizeof len);
    ids->ptr[ids->len++] = copy((text_t){at + sizeof len, len});
    at += sizeof len + len;
  }
  free(value.val.ptr);
  return true;
}

static text_t new_id(text_t operation, uint32_t number) {
  buffer_t out = {0};
  put_text(&out, operation);
  put(&out, ".", 1);
  put_number(&out, number, 1);
  return (text_t){out.ptr, out.len};
}

// A conversation as one text, with a paragraph for each turn.
static text_t said(paperclip_memory_types_source_payload_t *payload) {
  buffer_t out = {0};
  for (size_t n = 0; n < payload->turns.len; n++) {
    if (n > 0) put_text(&out, TEXT("\n\n"));
    put_text(&out, payload->turns.ptr[n].role);
    put_text(&out, TEXT(": "));
    put_text(&out, payload->turns.ptr[n].text);
  }
  return (text_t){out.ptr, out.len};
}

static bool keep(exports_paperclip_memory_provider_capture_request_t *request, bytes_t mark, ids_t *ids,
                 error_t *error) {
  maybe_t text = request->payload.text.is_some ? request->payload.text : MAYBE(request->payload.object);
  if (!request->payload.text.is_some && request->payload.turns.len > 0) text = SOME(said(&request->payload));
  maybe_t own = MAYBE(request->metadata), of_payload = MAYBE(request->payload.metadata);
  if (!text.is_some) return invalid(error, TEXT("payload.text"), "there is neither a text nor an object; send one");
  if (!check_object(own, TEXT("metadata"), error)) return false;
  if (!check_object(of_payload, TEXT("payload.metadata"), error)) return false;
  note_t note = note_of(&request->scope, &request->source);
  text_t time = request->hook.is_some ? copy(request->hook.val.triggered_at) : now();
  text_t merged = json_merged(of_payload.is_some ? of_payload.val : TEXT("{}"), own.is_some ? own.val : TEXT("{}"));
  note.field[NOTE_TEXT] = text;
  if (own.is_some || of_payload.is_some) note.field[NOTE_METADATA] = SOME(merged);
  note.field[NOTE_CREATED] = note.field[NOTE_UPDATED] = SOME(time);
  *ids = (ids_t){take(sizeof(text_t)), 1};
  ids->ptr[0] = new_id(request->operation_id, 0);
  // One batch, so that after a crash either the note and its mark exist or neither.
  bytes_t value = marked(*ids);
  write_t writes[2] = {writing(key(RECORD, ids->ptr[0]), note_encode(&note)), writing(mark, value)};
  bool is_kept = store_apply(writes, 2, error);
  paperclip_memory_storage_write_free(&writes[0]);
  free(value.ptr);
  free(merged.ptr);
  free(time.ptr);
  return is_kept;
}

bool exports_paperclip_memory_provider_capture(exports_paperclip_memory_provider_capture_request_t *request,
                                               exports_paperclip_memory_provider_capture_response_t *ret,
                                               exports_paperclip_memory_provider_error_t *err) {
  *ret = (exports_paperclip_memory_provider_capture_response_t){0};
  bytes_t mark = key(MARK, request->operation_id);
  bool is_well = answered(mark, &ret->records, err);
  if (is_well && ret->records.ptr == NULL) is_well = keep(request, mark, &ret->records, err);
  free(mark.ptr);
  exports_paperclip_memory_provider_capture_request_free(request);
  return is_well;
}

// The write for one record of an upsert.
static bool prepare(exports_paperclip_memory_provider_upsert_request_t *request, size_t n, text_t id, text_t time,
                    write_t *write, error_t *error) {
  exports_paperclip_memory_provider_record_write_t *record = &request->records.ptr[n];
  bytes_t place = key(RECORD, id);
  maybe_t old;
  if (!store_get(place, &old, error)) return free(place.ptr), false;
  source_t *source = record->source.is_some ? &record->source.val : request->source.is_some ? &request->source.val : NULL;
  note_t note = note_of(&request->scope, source), before;
  note.field[NOTE_TEXT] = SOME(record->text);
  note.field[NOTE_SUMMARY] = record->summary;
  note.field[NOTE_METADATA] = MAYBE(record->metadata);
  note.field[NOTE_CREATED] = note.field[NOTE_UPDATED] = SOME(time);
  bool is_well = true;
  if (old.is_some) {
    before = note_decode((bytes_t){old.val.ptr, old.val.len});
    note.field[NOTE_CREATED] = before.field[NOTE_CREATED];
    is_well = note_is_visible(&before, &request->scope);
  }
  if (record->created_at.is_some) note.field[NOTE_CREATED] = MAYBE(record->created_at);
  if (record->expires_at.is_some) note.field[NOTE_EXPIRES] = MAYBE(record->expires_at);
  if (is_well) {
    *write = writing(place, note_encode(&note));
  } else {
    buffer_t field = {0};
    put(&field, "records.", 8);
    put_number(&field, n, 1);
    put(&field, ".id", 3);
    invalid(error, (text_t){field.ptr, field.len}, "another agent, subject or namespace has this id; choose another one");
    free(field.ptr);
    free(place.ptr);
  }
  if (old.is_some) free(old.val.ptr);
  return is_well;
}

bool exports_paperclip_memory_provider_upsert_records(exports_paperclip_memory_provider_upsert_request_t *request,
                                                      exports_paperclip_memory_provider_upsert_response_t *ret,
                                                      exports_paperclip_memory_provider_error_t *err) {
  *ret = (exports_paperclip_memory_provider_upsert_response_t){0};
  bytes_t mark = key(MARK, request->operation_id);
  bool is_well = answered(mark, &ret->records, err);
  if (is_well && ret->records.ptr == NULL) {
    size_t count = request->records.len, done = 0;
    text_t time = now();
    write_t *writes = take((count + 1) * sizeof *writes);
    ret->records = (ids_t){take(count * sizeof(text_t)), count};
    for (; done < count && is_well; done += is_well) {
      maybe_t given = MAYBE(request->records.ptr[done].id);
      ret->records.ptr[done] = given.is_some ? copy(given.val) : new_id(request->operation_id, done);
      is_well = prepare(request, done, ret->records.ptr[done], time, &writes[done], err);
    }
    bytes_t value = is_well ? marked(ret->records) : (bytes_t){0};
    writes[done] = writing(mark, value);
    if (is_well) is_well = store_apply(writes, count + 1, err);
    for (size_t n = 0; n < done; n++) paperclip_memory_storage_write_free(&writes[n]);
    free(value.ptr);
    free(writes);
    free(time.ptr);
  }
  free(mark.ptr);
  exports_paperclip_memory_provider_upsert_request_free(request);
  return is_well;
}

bool exports_paperclip_memory_provider_get_record(exports_paperclip_memory_provider_record_id_t *id,
                                                  exports_paperclip_memory_provider_scope_t *scope,
                                                  exports_paperclip_memory_provider_get_response_t *ret,
                                                  exports_paperclip_memory_provider_error_t *err) {
  *ret = (exports_paperclip_memory_provider_get_response_t){0};
  bytes_t place = key(RECORD, *id);
  maybe_t value;
  bool is_well = store_get(place, &value, err);
  if (is_well && value.is_some) {
    note_t note = note_decode((bytes_t){value.val.ptr, value.val.len});
    ret->snippet.is_some = note_is_visible(&note, scope);
    if (ret->snippet.is_some) ret->snippet.val = note_snippet(&note, *id, UNSCORED);
    free(value.val.ptr);
  }
  free(place.ptr);
  exports_paperclip_memory_provider_record_id_free(id);
  exports_paperclip_memory_provider_scope_free(scope);
  return is_well;
}

bool exports_paperclip_memory_provider_forget(exports_paperclip_memory_provider_forget_request_t *request,
                                              exports_paperclip_memory_provider_forget_response_t *ret,
                                              exports_paperclip_memory_provider_error_t *err) {
  *ret = (exports_paperclip_memory_provider_forget_response_t){0};
  const ids_t *ids = &request->ids;
  ret->outcomes.ptr = take(ids->len * sizeof *ret->outcomes.ptr);
  write_t *writes = take(ids->len * sizeof *writes);
  size_t count = 0;
  bool is_well = true;
  for (size_t n = 0; n < ids->len && is_well; n++) {
    bytes_t place = key(RECORD, ids->ptr[n]);
    maybe_t value = {0};
    is_well = store_get(place, &value, err);
    bool is_there = is_well && value.is_some;
    if (is_there) {
      note_t note = note_decode((bytes_t){value.val.ptr, value.val.len});
      is_there = note_is_visible(&note, &request->scope);
      free(value.val.ptr);
    }
    // An id that occurs twice in one call is gone the second time.
    for (size_t before = 0; before < count && is_there; before++) {
      bytes_t gone = writes[before].val.delete_;
      is_there = !same((text_t){gone.ptr, gone.len}, (text_t){place.ptr, place.len});
    }
    ret->outcomes.ptr[n].id = copy(ids->ptr[n]);
    ret->outcomes.ptr[n].effect = is_there ? EXPORTS_PAPERCLIP_MEMORY_PROVIDER_FORGET_EFFECT_HARD
                                           : EXPORTS_PAPERCLIP_MEMORY_PROVIDER_FORGET_EFFECT_NOT_FOUND;
    ret->outcomes.len++;
    if (is_there) {
      writes[count].tag = PAPERCLIP_MEMORY_STORAGE_WRITE_DELETE;
      writes[count++].val.delete_ = place;
    } else {
      free(place.ptr);
    }
  }
  if (is_well) is_well = store_apply(writes, count, err);
  for (size_t n = 0; n < count; n++) free(writes[n].val.delete_.ptr);
  free(writes);
  exports_paperclip_memory_provider_forget_request_free(request);
  return is_well;
}
