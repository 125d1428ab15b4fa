// TAEDA_FAST_TLS: for the few small thread_local variables that every op reads.
//
// They are reached by an offset from the thread pointer instead of a function call. The room for
// such variables is short in a library that is loaded at run time (about 1.5 KB for all libraries
// of a process), so whatever is big belongs behind a pointer.
#pragma once

#ifdef __linux__
#define TAEDA_FAST_TLS [[gnu::tls_model("initial-exec")]]
#else
#define TAEDA_FAST_TLS
#endif
