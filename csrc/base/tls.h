// TAEDA_FAST_TLS: for the few small thread_local variables that every op reads.
//
// They are reached by an offset from the thread pointer instead of a function call. Space for such
// variables is scarce in libraries loaded at run time (about 1.5 KB for the whole process), so keep
// anything big behind a pointer.
#pragma once

#ifdef __linux__
#define TAEDA_FAST_TLS [[gnu::tls_model("initial-exec")]]
#else
#define TAEDA_FAST_TLS
#endif
