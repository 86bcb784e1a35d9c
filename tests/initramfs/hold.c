// SPDX-License-Identifier: GPL-2.0-only
/*
 * Memory for tests/hibernation to have swapped out.
 *
 *   hold MIB          fills MIB; then answers each line on standard input: are all pages
 *                     right, how many are lost or wrong? Writes a part of them anew.
 *   hold image AREA   makes an image as programs do that write it themselves, and tries
 *                     to write a page of it to the swap area; prints what write says
 *   hold swapon DEVICE PRIORITY   which busybox cannot
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/suspend_ioctls.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/swap.h>
#include <unistd.h>

#define PAGE	4096
#define WORDS	(PAGE / sizeof(unsigned long))

static sigjmp_buf lost_page;

static void on_sigbus(int nr)
{
	siglongjmp(lost_page, nr);
}

static void fill(unsigned long *page, unsigned long nr, unsigned long round)
{
	unsigned long x = nr * 1000003 + round;
	unsigned int i;

	for (i = 0; i < WORDS; i++) {
		x = x * 6364136223846793005UL + 1442695040888963407UL;
		page[i] = x >> 16;
	}
}

static void answer(char *memory, unsigned long pages, unsigned char *rounds)
{
	static unsigned long want[WORDS];
	static unsigned long nr, lost, wrong;
	static unsigned char round;

	round++;
	lost = 0;
	wrong = 0;
	for (nr = 0; nr < pages; nr++) {
		char *page = memory + nr * PAGE;

		if (sigsetjmp(lost_page, 1)) {
			lost++;
			madvise(page, PAGE, MADV_DONTNEED);
		} else {
			fill(want, nr, rounds[nr]);
			wrong += memcmp(page, want, PAGE) != 0;
			if (nr % 3 != round % 3)
				continue;
		}
		rounds[nr] = round;
		fill((unsigned long *)page, nr, round);
	}
	if (wrong || lost)
		printf("lost %lu wrong %lu\n", lost, wrong);
	else
		printf("right\n");
	fflush(stdout);
}

static int hold(unsigned long pages)
{
	static char buffers[2][PAGE];
	unsigned char *rounds = calloc(pages, 1);
	unsigned long nr;
	char line[80], *memory;

	/* What is on the device may get lost, but not the program. */
	setvbuf(stdin, buffers[0], _IOFBF, PAGE);
	setvbuf(stdout, buffers[1], _IOFBF, PAGE);
	if (!rounds || mlockall(MCL_CURRENT))
		return 1;
	memory = mmap(NULL, pages * PAGE, PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (memory == MAP_FAILED)
		return 1;
	madvise(memory, pages * PAGE, MADV_NOHUGEPAGE);
	for (nr = 0; nr < pages; nr++)
		fill((unsigned long *)(memory + nr * PAGE), nr, 0);
	signal(SIGBUS, on_sigbus);
	while (fgets(line, sizeof(line), stdin))
		answer(memory, pages, rounds);
	return 0;
}

static void must(int result, const char *what)
{
	if (result >= 0)
		return;
	printf("%s: %s\n", what, strerror(errno));
	exit(1);
}

static int image(const char *path)
{
	int snapshot = open("/dev/snapshot", O_RDONLY), in_suspend = 0;
	int file = open(path, O_WRONLY | O_DIRECT);
	struct resume_swap_area area = { 0 };
	struct stat stat;
	void *page = NULL;

	must(snapshot, "/dev/snapshot");
	must(file, path);
	must(fstat(file, &stat), path);
	area.dev = stat.st_rdev;
	must(ioctl(snapshot, SNAPSHOT_SET_SWAP_AREA, &area), "choose the area");
	if (posix_memalign(&page, PAGE, PAGE) || mlockall(MCL_CURRENT))
		return 1;
	must(ioctl(snapshot, SNAPSHOT_FREEZE), "freeze");
	must(ioctl(snapshot, SNAPSHOT_CREATE_IMAGE, &in_suspend), "image");
	must(read(snapshot, page, PAGE), "read the image");
	printf("%s\n", pwrite(file, page, PAGE, 64 * PAGE) < 0 ?
	       strerror(errno) : "written");
	must(ioctl(snapshot, SNAPSHOT_FREE), "free");
	must(ioctl(snapshot, SNAPSHOT_UNFREEZE), "unfreeze");
	return 0;
}

int main(int argc, char **argv)
{
	if (argc == 4 && !strcmp(argv[1], "swapon"))
		return swapon(argv[2], SWAP_FLAG_PREFER | atoi(argv[3])) != 0;
	if (argc == 3 && !strcmp(argv[1], "image"))
		return image(argv[2]);
	return argc == 2 ? hold(strtoul(argv[1], NULL, 0) << 8) : 2;
}
