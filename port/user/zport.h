/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The engine's port in user space: the C11 atomics of GCC and Clang, and POSIX
 * mutexes where the kernel has spinlocks. See engine/port.h.
 */
#ifndef ZNSAGE_ZPORT_H
#define ZNSAGE_ZPORT_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef int32_t s32;
typedef uint64_t u64;

#define ZP_DEBUG	1

static inline void *zp_alloc(size_t bytes)
{
	return calloc(1, bytes);
}

static inline void zp_free(void *p)
{
	free(p);
}

typedef pthread_mutex_t zp_lock_t;

#define zp_lock_init(l)		pthread_mutex_init((l), NULL)
#define zp_lock(l, flags)	((flags) = 0, pthread_mutex_lock(l))
#define zp_unlock(l, flags)	((void)(flags), pthread_mutex_unlock(l))
#define zp_assert_held(l)						\
	zp_warn(!pthread_mutex_trylock((pthread_mutex_t *)(l)))
#define zp_acquires(l)
#define zp_releases(l)

static inline u32 zp_load(const u32 *p)
{
	return __atomic_load_n(p, __ATOMIC_RELAXED);
}

static inline void zp_store(u32 *p, u32 v)
{
	__atomic_store_n(p, v, __ATOMIC_RELAXED);
}

static inline u8 zp_load8(const u8 *p)
{
	return __atomic_load_n(p, __ATOMIC_RELAXED);
}

static inline void zp_store8(u8 *p, u8 v)
{
	__atomic_store_n(p, v, __ATOMIC_RELAXED);
}

static inline void zp_mb(void)
{
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
}

/*
 * A C11 read-modify-write is no full barrier: a later load may move before its
 * store. On x86 these instructions are full barriers.
 */
static inline void zp_order(void)
{
#if !defined(__x86_64__)
	zp_mb();
#endif
}

static inline u32 zp_xchg(u32 *p, u32 v)
{
	u32 old;

	zp_order();
	old = __atomic_exchange_n(p, v, __ATOMIC_SEQ_CST);
	zp_order();
	return old;
}

static inline bool zp_cas(u32 *p, u32 old, u32 new)
{
	bool done;

	zp_order();
	done = __atomic_compare_exchange_n(p, &old, new, false,
					   __ATOMIC_SEQ_CST, __ATOMIC_RELAXED);
	zp_order();
	return done;
}

static inline void zp_add(u32 *p, u32 v)
{
	zp_order();
	__atomic_fetch_add(p, v, __ATOMIC_SEQ_CST);
	zp_order();
}

static inline u32 zp_sub_return(u32 *p, u32 v)
{
	u32 left;

	zp_order();
	left = __atomic_sub_fetch(p, v, __ATOMIC_SEQ_CST);
	zp_order();
	return left;
}

static inline u64 zp_load64(const u64 *p)
{
	return __atomic_load_n(p, __ATOMIC_RELAXED);
}

static inline u64 zp_xchg64(u64 *p, u64 v)
{
	u64 old;

	zp_order();
	old = __atomic_exchange_n(p, v, __ATOMIC_SEQ_CST);
	zp_order();
	return old;
}

static inline bool zp_cas64(u64 *p, u64 old, u64 new)
{
	bool done;

	zp_order();
	done = __atomic_compare_exchange_n(p, &old, new, false,
					   __ATOMIC_SEQ_CST, __ATOMIC_RELAXED);
	zp_order();
	return done;
}

static inline void zp_store64(u64 *p, u64 v)
{
	__atomic_store_n(p, v, __ATOMIC_RELAXED);
}

/* Threads are preempted anyway. The hook lets tests run something here. */
extern __attribute__((weak)) void (*zp_on_resched)(void);
__attribute__((weak)) void (*zp_on_resched)(void);

static inline void zp_resched(void)
{
	if (zp_on_resched)
		zp_on_resched();
}

static inline u64 zp_div(u64 dividend, u32 divisor)
{
	return dividend / divisor;
}

static inline u32 zp_ffs(u32 bits)
{
	return __builtin_ctz(bits);
}

#define zp_load_ptr(pp)		__atomic_load_n((pp), __ATOMIC_ACQUIRE)
#define zp_store_ptr(pp, p)	__atomic_store_n((pp), (p), __ATOMIC_RELEASE)

/* Policies are not freed here. */
#define zp_read_lock()		((void)0)
#define zp_read_unlock()	((void)0)

/* Threads are numbered when they first count. */
static inline u32 zp_shard(void)
{
	static u32 threads;
	static __thread u32 mine;

	if (!mine)
		mine = __atomic_add_fetch(&threads, 1, __ATOMIC_RELAXED);
	return mine;
}

static inline void zp_count(u64 *p, u64 v)
{
	__atomic_fetch_add(p, v, __ATOMIC_RELAXED);
}

static inline u64 zp_count_read(const u64 *p)
{
	return __atomic_load_n(p, __ATOMIC_RELAXED);
}

static inline bool zp_warn_at(bool cond, const char *what, const char *file,
			      int line)
{
	if (cond) {
		fprintf(stderr, "%s:%d: invariant broken: %s\n", file, line,
			what);
		abort();
	}
	return cond;
}

#define zp_warn(cond)	zp_warn_at((cond), #cond, __FILE__, __LINE__)

/* Doubly linked lists with the kernel's names. */
struct list_head {
	struct list_head *next, *prev;
};

static inline void INIT_LIST_HEAD(struct list_head *h)
{
	h->next = h;
	h->prev = h;
}

static inline bool list_empty(const struct list_head *h)
{
	return h->next == h;
}

static inline void list_insert_between(struct list_head *n,
				       struct list_head *prev,
				       struct list_head *next)
{
	n->prev = prev;
	n->next = next;
	prev->next = n;
	next->prev = n;
}

static inline void list_add(struct list_head *n, struct list_head *h)
{
	list_insert_between(n, h, h->next);
}

static inline void list_add_tail(struct list_head *n, struct list_head *h)
{
	list_insert_between(n, h->prev, h);
}

static inline void list_del_init(struct list_head *n)
{
	n->prev->next = n->next;
	n->next->prev = n->prev;
	INIT_LIST_HEAD(n);
}

static inline void list_splice_tail_init(struct list_head *from,
					 struct list_head *to)
{
	if (list_empty(from))
		return;
	from->next->prev = to->prev;
	to->prev->next = from->next;
	from->prev->next = to;
	to->prev = from->prev;
	INIT_LIST_HEAD(from);
}

#define list_entry(p, type, member)					\
	((type *)((char *)(p) - offsetof(type, member)))
#define list_first_entry(h, type, member)				\
	list_entry((h)->next, type, member)
#define list_for_each_entry(pos, h, member)				\
	for (pos = list_first_entry(h, __typeof__(*pos), member);	\
	     &pos->member != (h);					\
	     pos = list_entry(pos->member.next, __typeof__(*pos), member))

#endif /* ZNSAGE_ZPORT_H */
