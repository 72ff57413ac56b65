/* Gets the artefact out of compiled code: an object file in memory (what the compiler just made, or
 * a cache kept) or a shared library. Not part of artefacts; for hosts that load them.
 *
 * An object must be an ELF relocatable file for this processor that imports nothing but memcpy,
 * memmove, memset, memcmp and what `find` gives. It is checked before any of it is used: a damaged
 * file is an error.
 * What it holds runs as code: load only what you trust, as with dlopen.
 */
#ifndef CUVIL_LOADER_H
#define CUVIL_LOADER_H

#include "cuvil.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct cuvil_code cuvil_code;

/* The code of a custom operator by its symbol, NULL where there is none; called during the load. */
typedef void *(*cuvil_find_symbol)(void *state, const char *name);

/* Both give the code and its artefact, found by `symbol`, or when that is NULL by the note
 * .note.cuvil, or else by being the one symbol named cuvil_artefact_* or *_artefact.
 * message, room: receives one line about a failure. The bytes of an object are copied. find: may be
 * NULL; what it finds stays where it is until the code is unloaded. */
cuvil_status cuvil_object_load(const void *bytes, size_t count, const char *symbol,
                               cuvil_find_symbol find, void *state, cuvil_code **code,
                               char *message, size_t room);
cuvil_status cuvil_library_load(const char *path, const char *symbol, cuvil_code **code,
                                char *message, size_t room);

/* The same for an object that holds no artefact: the address of its function `symbol`. */
cuvil_status cuvil_function_load(const void *bytes, size_t count, const char *symbol,
                                 cuvil_find_symbol find, void *state, cuvil_code **code,
                                 const void **function, char *message, size_t room);

const cuvil_artefact *cuvil_code_artefact(const cuvil_code *code);
/* Unmaps the code: close its models first. NULL is fine. */
void cuvil_code_unload(cuvil_code *code);

#ifdef __cplusplus
}
#endif
#endif
