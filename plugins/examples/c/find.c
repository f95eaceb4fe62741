// `query` and `list-records`: both read all notes of the scope.

#include <stdlib.h>
#include <string.h>

#include "json.h"
#include "note.h"

typedef struct {
  snippet_t *ptr;
  size_t len, room;
} hits_t;

static void add(hits_t *hits, snippet_t snippet) {
  if (hits->len == hits->room) {
    hits->room = hits->room * 2 + 16;
    hits->ptr = realloc(hits->ptr, hits->room * sizeof *hits->ptr);
    if (hits->ptr == NULL) abort();
  }
  hits->ptr[hits->len++] = snippet;
}

static bool matches(const note_t *note, maybe_t filter) {
  maybe_t metadata = note->field[NOTE_METADATA];
  return !filter.is_some || json_has(metadata.is_some ? metadata.val : TEXT("{}"), filter.val);
}

static bool check_filter(maybe_t filter, error_t *error) {
  return !filter.is_some || json_is_object(filter.val) ||
         invalid(error, TEXT("metadataFilter"), "it is not a JSON object; send one");
}

// A running query.

typedef struct {
  hits_t hits;
  maybe_t filter;
  // The question in lower case, and the places of its words.
  text_t *words;
  size_t count;
} search_t;

static bool is_blank(uint8_t byte) { return byte == ' ' || (byte >= '\t' && byte <= '\r'); }

static void split(text_t question, search_t *search) {
  search->words = take((question.len / 2 + 1) * sizeof *search->words);
  for (size_t at = 0, begin; at < question.len;) {
    while (at < question.len && is_blank(question.ptr[at])) at++;
    for (begin = at; at < question.len && !is_blank(question.ptr[at]);) at++;
    if (at > begin) search->words[search->count++] = (text_t){question.ptr + begin, at - begin};
  }
}

static bool look(text_t id, const note_t *note, void *context) {
  search_t *search = context;
  if (!matches(note, search->filter)) return true;
  text_t text = fold(note->field[NOTE_TEXT].val);
  size_t found = 0;
  for (size_t n = 0; n < search->count; n++) found += contains(text, search->words[n]);
  free(text.ptr);
  if (found == 0 && search->count > 0) return true;
  score_t score = {.tag = PAPERCLIP_MEMORY_TYPES_SCORE_SIMILARITY};
  score.val.similarity = search->count > 0 ? (double)found / (double)search->count : 0.0;
  add(&search->hits, note_snippet(note, id, score));
  return true;
}

// Of equal hits the newest comes first, which is the order for an empty question.
static int best_first(const void *one, const void *other) {
  const snippet_t *a = one, *b = other;
  double difference = b->score.val.similarity - a->score.val.similarity;
  if (difference != 0) return difference > 0 ? 1 : -1;
  int newer = compare(b->updated_at.val, a->updated_at.val);
  return newer != 0 ? newer : compare(b->id, a->id);
}

bool exports_paperclip_memory_provider_query(exports_paperclip_memory_provider_query_request_t *request,
                                             exports_paperclip_memory_provider_context_bundle_t *ret,
                                             exports_paperclip_memory_provider_error_t *err) {
  *ret = (exports_paperclip_memory_provider_context_bundle_t){0};
  search_t search = {.filter = MAYBE(request->metadata_filter)};
  text_t question = fold(request->query);
  split(question, &search);
  bool is_well = check_filter(search.filter, err) && store_each(&request->scope, look, &search, err);
  if (is_well && search.hits.len > 0) {
    qsort(search.hits.ptr, search.hits.len, sizeof *search.hits.ptr, best_first);
  }
  while (search.hits.len > (is_well ? request->top_k : 0)) {
    paperclip_memory_types_snippet_free(&search.hits.ptr[--search.hits.len]);
  }
  ret->snippets.ptr = search.hits.ptr;
  ret->snippets.len = search.hits.len;
  free(search.words);
  free(question.ptr);
  exports_paperclip_memory_provider_query_request_free(request);
  return is_well;
}

// A running list.

typedef struct {
  hits_t items;
  maybe_t filter, cursor;
  uint32_t limit;
  bool has_more;
} listing_t;

static bool enter(text_t id, const note_t *note, void *context) {
  listing_t *listing = context;
  // The cursor is the last id of the page before: it stays valid when that note is removed.
  if (listing->cursor.is_some && compare(id, listing->cursor.val) <= 0) return true;
  if (!matches(note, listing->filter)) return true;
  listing->has_more = listing->items.len == listing->limit;
  if (!listing->has_more) {
    add(&listing->items, note_snippet(note, id, (score_t){.tag = PAPERCLIP_MEMORY_TYPES_SCORE_NONE}));
  }
  return !listing->has_more;
}

bool exports_paperclip_memory_provider_list_records(exports_paperclip_memory_provider_list_request_t *request,
                                                    exports_paperclip_memory_provider_list_page_t *ret,
                                                    exports_paperclip_memory_provider_error_t *err) {
  *ret = (exports_paperclip_memory_provider_list_page_t){0};
  listing_t listing = {.filter = MAYBE(request->metadata_filter), .cursor = request->cursor, .limit = request->limit};
  bool is_well = check_filter(listing.filter, err) && store_each(&request->scope, enter, &listing, err);
  ret->items.ptr = listing.items.ptr;
  ret->items.len = listing.items.len;
  if (listing.has_more) {
    ret->continuation.tag = PAPERCLIP_MEMORY_TYPES_CONTINUATION_NEXT;
    ret->continuation.val.next = copy(listing.items.ptr[listing.items.len - 1].id);
  }
  exports_paperclip_memory_provider_list_request_free(request);
  return is_well;
}
