/* The part of the runtime that goes into artefacts, as one translation unit: one bitcode module per
 * target. CUVIL_FREESTANDING makes that of targets without an operating system. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* before the first system header */
#endif

#include "dtypes.c"
#include "string_functions.c"
#ifdef CUVIL_FREESTANDING
#include "embedded.c"
#include "square_root.c"
#else
#include "artefact.c"
#include "bind.c"
#include "context.c"
#include "device_calls.c"
#include "devices.c"
#include "launch.c"
#include "model.c"
#include "platform_posix.c"
#include "pool.c"
#include "ports.c"
#include "run.c"
#include "simple.c"
#include "text.c"
#include "weights.c"
#ifdef __APPLE__
#include "platform_macos.c"
#else
#include "cpu_count_linux.c"
#include "numa_linux.c"
#include "placement_linux.c"
#include "platform_linux.c"
#endif
#endif
