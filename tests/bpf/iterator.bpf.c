// SPDX-License-Identifier: GPL-2.0
/* A policy that counts by the kernel's iterator to place a page. */
#include <znsage.bpf.h>

struct bpf_iter_num {
	u64 opaque;
};

extern int bpf_iter_num_new(struct bpf_iter_num *it, int from, int to) __ksym;
extern int *bpf_iter_num_next(struct bpf_iter_num *it) __ksym;
extern void bpf_iter_num_destroy(struct bpf_iter_num *it) __ksym;

ZNSAGE_PLACE(iterator_place, dev, page)
{
	struct bpf_iter_num it;

	bpf_iter_num_new(&it, 0, 2);
	while (bpf_iter_num_next(&it))
		;
	bpf_iter_num_destroy(&it);
	return 0;
}

ZNSAGE_POLICY iterator = {
	.name = "bpf-wrong",
	.streams = 2,
	.place = (void *)iterator_place,
};
