/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The engine's port under the model checker: that of user space, but locks,
 * atomics and barriers are src/port.rs, told from which function they come.
 */
#ifndef ZNSAGE_MODEL_ZPORT_H
#define ZNSAGE_MODEL_ZPORT_H

#define xchg			user_xchg
#define cmpxchg			user_cmpxchg
#define atomic_add_return	user_atomic_add_return
#define zport_warn		user_warn
#define raw_smp_processor_id	user_smp_processor_id

#include "../../../port/user/zport.h"

#undef xchg
#undef cmpxchg
#undef atomic_add_return
#undef raw_smp_processor_id
#undef READ_ONCE
#undef WRITE_ONCE
#undef smp_mb
#undef spin_lock_init
#undef spin_lock_irqsave
#undef spin_unlock_irqrestore
#undef lockdep_assert_held
#undef WARN_ON_ONCE

u32 model_load(const u32 *p);
void model_store(u32 *p, u32 v);
u32 model_xchg(u32 *p, u32 v, const char *where);
u32 model_cmpxchg(u32 *p, u32 old, u32 new_value, const char *where);
u32 model_add(u32 *p, u32 v, const char *where);
void model_mb(const char *where);
void model_lock(pthread_mutex_t *lock);
void model_unlock(pthread_mutex_t *lock);
void model_yield(void);

/* The device's own accesses: atomic, and they order nothing else. */
u32 model_disk_xchg(u32 *p, u32 v);
u32 model_disk_read(u32 *p);
void model_broken(const char *what);

/* Only words of 32 bits are shared without a lock. */
#define READ_ONCE(x)							\
	(sizeof(x) == sizeof(u32) ?					\
	 (__typeof__(x))model_load((const u32 *)&(x)) : (x))
#define WRITE_ONCE(x, v)						\
	do {								\
		__typeof__(x) *at_ = &(x);				\
		__typeof__(x) to_ = (v);				\
									\
		if (sizeof(x) == sizeof(u32))				\
			model_store((u32 *)at_, (u32)to_);		\
		else							\
			*at_ = to_;					\
	} while (0)
#define smp_mb()			model_mb(__func__)
#define xchg(p, v)			model_xchg(p, v, __func__)
#define cmpxchg(p, old, new)		model_cmpxchg(p, old, new, __func__)
#define atomic_add_return(v, a)						\
	((int)model_add((u32 *)&(a)->counter, v, __func__))
#define raw_smp_processor_id()		0

/* Only the lock's address counts; checks would bring barriers of their own. */
#define spin_lock_init(l)		((void)(l))
#define spin_lock_irqsave(l, flags)	((flags) = 0, model_lock(l))
#define spin_unlock_irqrestore(l, flags) ((void)(flags), model_unlock(l))
#define lockdep_assert_held(l)		((void)(l))

static inline bool model_warn(bool cond, const char *what)
{
	if (cond)
		model_broken(what);
	return cond;
}

#define WARN_ON_ONCE(cond)		model_warn((cond), #cond)

#endif /* ZNSAGE_MODEL_ZPORT_H */
