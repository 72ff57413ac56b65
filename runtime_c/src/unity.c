/* The part of the runtime that goes into artefacts, as one translation unit: one bitcode module per
 * target. CUVIL_FREESTANDING picks the platform without an operating system. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* before the first system header */
#endif

#include "artefact.c"
#include "bind.c"
#include "context.c"
#include "device_calls.c"
#include "devices.c"
#include "launch.c"
#include "model.c"
#include "ports.c"
#include "run.c"
#include "simple.c"
#include "string_functions.c"
#include "text.c"
#include "weights.c"
#ifdef CUVIL_FREESTANDING
#include "platform_none.c"
#else
#include "cpu_count_linux.c"
#include "platform_posix.c"
#include "pool.c"
#endif
