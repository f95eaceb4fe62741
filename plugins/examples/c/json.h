// The part of JSON that metadata and filters need.

#ifndef JSON_H
#define JSON_H

#include "text.h"

bool json_is_object(text_t json);

// Whether the object `whole` has every member of the object `part` with an equal value.
bool json_has(text_t whole, text_t part);

// The members of both objects; those of `over` win.
text_t json_merged(text_t under, text_t over);

#endif
