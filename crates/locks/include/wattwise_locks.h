/* Generated from crates/locks/src/capi.rs: WATTWISE_BLESS=1 cargo test -p wattwise-locks --test header */

#ifndef WATTWISE_LOCKS_H
#define WATTWISE_LOCKS_H

#include <stdint.h>

// A lock that was chosen by name. Made by `ww_mutex_new`, freed by `ww_mutex_free`.
typedef struct ww_mutex ww_mutex;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

// Makes an unlocked lock of this name, `LOCK:POLICY` such as `"mcs:spin-then-park"`; a null name is the
// default. Null if there is no such lock.
//
// # Safety
// `name` is null or a C string.
struct ww_mutex *ww_mutex_new(const char *name);

// Frees a lock that nobody holds or waits for. Null is allowed.
//
// # Safety
// `mutex` is null, or came from `ww_mutex_new` and is not used again.
void ww_mutex_free(struct ww_mutex *mutex);

// Acquires, however long it takes.
//
// # Safety
// `mutex` came from `ww_mutex_new`.
void ww_mutex_lock(struct ww_mutex *mutex);

// Acquires if that needs no waiting: 1, else 0.
//
// # Safety
// `mutex` came from `ww_mutex_new`.
int ww_mutex_trylock(struct ww_mutex *mutex);

// Acquires within so many nanoseconds: 1, else 0.
//
// # Safety
// `mutex` came from `ww_mutex_new`.
int ww_mutex_lock_for(struct ww_mutex *mutex, uint64_t nanoseconds);

// Releases.
//
// # Safety
// `mutex` came from `ww_mutex_new` and the caller holds it.
void ww_mutex_unlock(struct ww_mutex *mutex);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* WATTWISE_LOCKS_H */
