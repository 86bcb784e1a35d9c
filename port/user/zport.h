/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The engine's port in user space: what engine/port.h lists, by the C11 atomics
 * of GCC and Clang, and POSIX mutexes where the kernel has spinlocks.
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
typedef int64_t s64;
typedef uint64_t u64;

static inline void *zport_alloc(size_t bytes)
{
	return calloc(1, bytes);
}

static inline void zport_free(void *p)
{
	free(p);
}

typedef pthread_mutex_t spinlock_t;

#define spin_lock_init(l)		pthread_mutex_init((l), NULL)
#define spin_lock_irqsave(l, flags)	((flags) = 0, pthread_mutex_lock(l))
#define spin_unlock_irqrestore(l, flags)				\
	((void)(flags), pthread_mutex_unlock(l))
#define lockdep_assert_held(l)						\
	WARN_ON_ONCE(!pthread_mutex_trylock((pthread_mutex_t *)(l)))
#define prefetchw(p)		__builtin_prefetch((p), 1)
/* calloc() does not align. */
#define ____cacheline_aligned
#define __acquires(l)
#define __releases(l)

#define READ_ONCE(x)		__atomic_load_n(&(x), __ATOMIC_RELAXED)
#define WRITE_ONCE(x, v)	__atomic_store_n(&(x), (v), __ATOMIC_RELAXED)
#define smp_load_acquire(p)	__atomic_load_n((p), __ATOMIC_ACQUIRE)
#define smp_store_release(p, v)	__atomic_store_n((p), (v), __ATOMIC_RELEASE)
#define smp_mb()		__atomic_thread_fence(__ATOMIC_SEQ_CST)

/*
 * A C11 read-modify-write is no full barrier: a later load may move before its
 * store. On x86 these instructions are full barriers.
 */
static inline void zport_order(void)
{
#if !defined(__x86_64__)
	smp_mb();
#endif
}

static inline u32 xchg(u32 *p, u32 v)
{
	u32 old;

	zport_order();
	old = __atomic_exchange_n(p, v, __ATOMIC_SEQ_CST);
	zport_order();
	return old;
}

static inline u32 cmpxchg(u32 *p, u32 old, u32 new)
{
	zport_order();
	__atomic_compare_exchange_n(p, &old, new, false, __ATOMIC_SEQ_CST,
				    __ATOMIC_RELAXED);
	zport_order();
	return old;
}

typedef struct {
	int counter;
} atomic_t;

typedef struct {
	s64 counter;
} atomic64_t;

#define atomic_read(a)		READ_ONCE((a)->counter)
#define atomic_set(a, v)	WRITE_ONCE((a)->counter, (v))
#define atomic_inc_return(a)	atomic_add_return(1, (a))
#define atomic_dec_return(a)	atomic_add_return(-1, (a))
#define atomic_sub_return(v, a)	atomic_add_return(-(int)(v), (a))

static inline int atomic_add_return(int v, atomic_t *a)
{
	int now;

	zport_order();
	now = __atomic_add_fetch(&a->counter, v, __ATOMIC_SEQ_CST);
	zport_order();
	return now;
}

#define atomic64_read(a)	READ_ONCE((a)->counter)
#define atomic64_set(a, v)	WRITE_ONCE((a)->counter, (v))
#define atomic64_add(v, a)						\
	((void)__atomic_fetch_add(&(a)->counter, (v), __ATOMIC_RELAXED))
#define atomic64_sub(v, a)	atomic64_add(-(s64)(v), (a))
#define atomic64_inc(a)		atomic64_add(1, (a))
#define atomic64_dec(a)		atomic64_add(-1, (a))

static inline s64 atomic64_xchg(atomic64_t *a, s64 v)
{
	s64 old;

	zport_order();
	old = __atomic_exchange_n(&a->counter, v, __ATOMIC_SEQ_CST);
	zport_order();
	return old;
}

static inline s64 atomic64_cmpxchg(atomic64_t *a, s64 old, s64 new)
{
	zport_order();
	__atomic_compare_exchange_n(&a->counter, &old, new, false,
				    __ATOMIC_SEQ_CST, __ATOMIC_RELAXED);
	zport_order();
	return old;
}

/* Threads are preempted anyway. The hook lets tests run something here. */
extern __attribute__((weak)) void (*on_cond_resched)(void);
__attribute__((weak)) void (*on_cond_resched)(void);

static inline void cond_resched(void)
{
	if (on_cond_resched)
		on_cond_resched();
}

static inline u64 div_u64(u64 dividend, u32 divisor)
{
	return dividend / divisor;
}

#define __ffs(bits)		((unsigned long)__builtin_ctzl(bits))

/* Policies are not freed here. */
#define rcu_read_lock()		((void)0)
#define rcu_read_unlock()	((void)0)

/* A number of the thread, given when it first asks. */
static inline u32 raw_smp_processor_id(void)
{
	static u32 threads;
	static __thread u32 mine;

	if (!mine)
		mine = __atomic_add_fetch(&threads, 1, __ATOMIC_RELAXED);
	return mine;
}

static inline bool zport_warn(bool cond, const char *what, const char *file,
			      int line)
{
	if (cond) {
		fprintf(stderr, "%s:%d: invariant broken: %s\n", file, line,
			what);
		abort();
	}
	return cond;
}

#define WARN_ON_ONCE(cond)						\
	zport_warn((cond), #cond, __FILE__, __LINE__)

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
