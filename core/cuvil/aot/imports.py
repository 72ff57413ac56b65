"""What compiled libraries may ask of the system they run on: a few functions of any libc."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase

from cuvil.codegen.objects import defined_globals, undefined_symbols
from cuvil.errors import CompileError

# Generated kernels need the first four; the rest is the hosted runtime.
_ALLOWED = """
    memcpy memmove memset memcmp
    strchr strrchr strcmp strncmp strlen strstr getenv
    free posix_memalign getauxval madvise mmap munmap open close read lseek readlink dl_iterate_phdr
    clock_gettime getpid sysconf syscall
    __sched_cpucount sched_getaffinity sched_getcpu sched_setaffinity sched_yield
    sigfillset pthread_create pthread_join pthread_sigmask
    pthread_mutex_lock pthread_mutex_unlock pthread_cond_wait pthread_cond_broadcast
    pthread_threadid_np dladdr sysctlbyname bzero memset_pattern4 memset_pattern8 memset_pattern16
"""
ALLOWED = frozenset(_ALLOWED.split())
FREESTANDING = frozenset({"memcpy", "memmove", "memset", "memcmp"})


def imports(objects: Iterable[bytes], given: Sequence[str] = ()) -> list[str]:
    """The symbols that objects linked together still need, sorted; `given` come from elsewhere."""
    needed: set[str] = set()
    defined = set(given)
    for data in objects:
        needed.update(undefined_symbols(data))
        defined.update(defined_globals(data))
    return sorted(needed - defined)


def check_imports(
    objects: Iterable[bytes],
    given: Sequence[str] = (),
    allowed: frozenset[str] = ALLOWED,
    support: Sequence[str] = (),
) -> list[str]:
    """`imports`, all of them allowed or like a pattern of `Backend.support`. Raises CompileError
    that names those that are not."""
    found = imports(objects, given)
    wrong = [n for n in found if n not in allowed and not any(fnmatchcase(n, p) for p in support)]
    stale = [name for name in wrong if name.startswith("cuvil_")]
    if stale:
        raise CompileError(
            f"the backend's runtime lacks {', '.join(stale)}: it is older than this compiler; "
            "upgrade the backend's package, or in a checkout run 'make setup'"
        )
    if wrong:
        raise CompileError(
            f"generated code needs {', '.join(wrong)}, which no target promises; this is a fault "
            "of the compiler, not of the model: please report it"
        )
    return found
