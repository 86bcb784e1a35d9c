/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The engine's port under the model checker: that of user space, but locks,
 * atomics and barriers are src/port.rs, told from which function they come.
 */
#ifndef ZNSAGE_MODEL_ZPORT_H
#define ZNSAGE_MODEL_ZPORT_H

#define zp_load		user_load
#define zp_store	user_store
#define zp_xchg		user_xchg
#define zp_cas		user_cas
#define zp_add		user_add
#define zp_sub_return	user_sub_return
#define zp_mb		user_mb
#define zp_warn_at	user_warn_at
#define zp_shard	user_shard

#include "../../../port/user/zport.h"

#undef zp_load
#undef zp_store
#undef zp_xchg
#undef zp_cas
#undef zp_add
#undef zp_sub_return
#undef zp_mb
#undef zp_warn_at
#undef zp_shard
#undef zp_lock_init
#undef zp_lock
#undef zp_unlock
#undef zp_assert_held
#define zp_assert_held(l)	((void)(l))
#undef zp_warn

/* What runs in production: checks bring barriers of their own. */
#undef ZP_DEBUG
#define ZP_DEBUG	0

u32 model_load(const u32 *p);
void model_store(u32 *p, u32 v);
u32 model_xchg(u32 *p, u32 v, const char *where);
bool model_cas(u32 *p, u32 old, u32 new_value, const char *where);
u32 model_add(u32 *p, u32 v, const char *where);
void model_mb(const char *where);
void model_lock(pthread_mutex_t *lock);
void model_unlock(pthread_mutex_t *lock);
void model_yield(void);

/* The device's own accesses: atomic, and they order nothing else. */
u32 model_disk_xchg(u32 *p, u32 v);
u32 model_disk_read(u32 *p);
void model_broken(const char *what);

#define zp_load(p)		model_load(p)
#define zp_store(p, v)		model_store(p, v)
#define zp_xchg(p, v)		model_xchg(p, v, __func__)
#define zp_cas(p, old, new)	model_cas(p, old, new, __func__)
#define zp_add(p, v)		((void)model_add(p, v, __func__))
#define zp_sub_return(p, v)	model_add(p, -(u32)(v), __func__)
#define zp_mb()			model_mb(__func__)
#define zp_shard()		0

/* Only the lock's address counts. */
#define zp_lock_init(l)		((void)(l))
#define zp_lock(l, flags)	((flags) = 0, model_lock(l))
#define zp_unlock(l, flags)	((void)(flags), model_unlock(l))

static inline bool model_warn(bool cond, const char *what)
{
	if (cond)
		model_broken(what);
	return cond;
}

#define zp_warn(cond)		model_warn((cond), #cond)

#endif /* ZNSAGE_MODEL_ZPORT_H */
