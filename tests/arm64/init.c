// SPDX-License-Identifier: GPL-2.0
/*
 * The only program of a machine (tests/arm64/run): loads the modules, swaps to
 * two drives in every way, and looks at each page that comes back, at the
 * module's counters and at the kernel's log.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/stat.h>
#include <sys/swap.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define CONFIG	"/sys/kernel/config/znsage/swap/"
#define STATE	"/sys/block/znsage0/znsage/"
#define NODE	"/dev/znsage0"
#define GROUP	"/sys/fs/cgroup/load/"
#define FOLIOS	"/sys/kernel/mm/transparent_hugepage/hugepages-64kB/enabled"

#define LENGTH(array)	(sizeof(array) / sizeof(*(array)))

#define ZONE_PAGES	64	/* where there are no zones */
#define ROUNDS	4
#define RUN	32		/* pages of one kind in a row */
#define PARTS	64		/* of a page, which a compressed one takes */

static const struct way {
	const char *name, *compress, *encrypt;
} ways[] = {
	{ "plain", "off", "off" },
	{ "encrypted", "off", "aes-xts" },
	{ "lz4", "lz4", "off" },
	{ "zstd, encrypted", "zstd", "aes-xts" },
};

struct drive {
	char path[32], zoned[32];
	size_t bytes;
};

/* Which must stay 0. */
static const char *const errors[] = {
	"read_errors", "write_errors", "pages_lost", "zones_lost",
	"zones_retired", "refused_pages", "policy_refused",
};

static size_t page_size, words, pages;
static uint64_t *load;
static uint32_t *written;	/* the round that filled a page; 0: freed */
static int log_fd;

static bool fail(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	printf("    ");
	vprintf(format, args);
	printf("\n");
	va_end(args);
	return false;
}

static bool put(const char *path, const char *value)
{
	int fd = open(path, O_WRONLY);
	bool done = write(fd, value, strlen(value)) > 0;
	int error = errno;

	close(fd);
	return done || fail("%s of %s: %s", value, path, strerror(error));
}

static bool put_size(const char *path, size_t value)
{
	char text[32];

	snprintf(text, sizeof(text), "%zu", value);
	return put(path, text);
}

static bool get(const char *path, char *text, size_t size)
{
	int fd = open(path, O_RDONLY);
	ssize_t len = read(fd, text, size - 1);

	close(fd);
	text[len < 0 ? 0 : len] = '\0';
	return len >= 0 || fail("cannot read %s", path);
}

static unsigned long counter(const char *name)
{
	char path[256], text[64];

	snprintf(path, sizeof(path), STATE "%s", name);
	return get(path, text, sizeof(text)) ? strtoul(text, NULL, 10) : -1UL;
}

static uint64_t mix(uint64_t x)
{
	x += 0x9e3779b97f4a7c15;
	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
	x = (x ^ x >> 27) * 0x94d049bb133111eb;
	return x ^ x >> 31;
}

/*
 * Words of noise at the start of a page; the others are all the same. A page
 * shrinks not at all, to half, to nothing, or by so little that it may not pay.
 * In a run, all are of one kind; in each sixth, they are of any.
 */
static size_t noise_of(size_t page, uint64_t seed)
{
	uint64_t kind = mix(page / RUN) % 6;

	switch (kind < 5 ? kind : seed >> 32 & 3) {
	case 0:
		return words;
	case 1:
		return words / 2;
	case 2:
		return seed & 1;
	default:
		return words - (seed & 7) * (words / PARTS / 2);
	}
}

/* Fill the page, or compare it with what it was filled with. */
static bool visit(size_t page, bool fill)
{
	uint64_t seed = mix((uint64_t)written[page] << 32 | page), want;
	size_t noise = noise_of(page, seed), i;
	uint64_t *at = load + page * words;

	for (i = 0; i < words; i++) {
		want = !written[page] ? 0 : i < noise ? mix(seed + i) : seed;
		if (fill)
			at[i] = want;
		else if (at[i] != want)
			return fail("page %zu is wrong at word %zu", page, i);
	}
	return true;
}

/* Compare all pages, in order or not. */
static bool verify(bool in_order)
{
	size_t i;

	for (i = 0; i < pages; i++)
		if (!visit(in_order ? i : i * 1021 % pages, false))
			return false;
	return true;
}

static void fill(uint32_t round)
{
	size_t i;

	for (i = 0; i < pages; i++) {
		if (written[i])
			continue;
		written[i] = round;
		visit(i, true);
	}
}

/* Free half of the pages, chosen anew each time. */
static void free_half(uint32_t round)
{
	size_t i;

	for (i = 0; i < pages; i++) {
		if (mix(i << 8 | round) & 1)
			continue;
		madvise(load + i * words, page_size, MADV_DONTNEED);
		written[i] = 0;
	}
}

static bool check(void)
{
	char text[4096];

	return put(STATE "check", "1") &&
	       get(STATE "check", text, sizeof(text)) &&
	       (!strcmp(text, "ok\n") || fail("check: %s", text));
}

/* What a process does whose memory does not fit into its cgroup. */
static bool use_memory(void)
{
	uint32_t round;

	if (!put(GROUP "cgroup.procs", "0"))
		return false;
	load = mmap(NULL, pages * page_size, PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	written = calloc(pages, sizeof(*written));
	for (round = 1; round <= ROUNDS; round++) {
		fill(round);
		if (!verify(round & 1) || !check())
			return false;
		free_half(round);
	}
	if (!verify(true) || !put(GROUP "memory.max", "max"))
		return false;
	if (swapoff(NODE))
		return fail("swapoff: %s", strerror(errno));
	return verify(true);
}

static bool make_swap(void)
{
	uint32_t *header = calloc(1, page_size);
	int fd = open(NODE, O_WRONLY);
	bool done;

	header[256] = 1;
	header[257] = counter("size_bytes") / page_size - 1;
	memcpy((char *)header + page_size - 10, "SWAPSPACE2", 10);
	done = write(fd, header, page_size) == (ssize_t)page_size && !fsync(fd);
	close(fd);
	free(header);
	return done || fail(NODE " cannot be written");
}

/* Set the device up, use it, and look at what it has counted. */
static bool swap_to(const struct drive *drive, const struct way *way)
{
	/*
	 * Compressed pages have more slots than twice their number, so that the
	 * kernel keeps the slots of pages that it reads, and zones do not empty
	 * by themselves.
	 */
	size_t size = strcmp(way->compress, "off") ? drive->bytes * 2 :
						     drive->bytes / 4 * 3;
	size_t zone = strcmp(drive->zoned, "none") ? 0 : ZONE_PAGES * page_size;
	int status = -1;
	bool ok = true;
	pid_t child;
	size_t i;

	if (!put(CONFIG "backing", drive->path) || !put(CONFIG "force", "1") ||
	    !put(CONFIG "over_provisioning", "0") ||
	    !put_size(CONFIG "size", size) ||
	    !put_size(CONFIG "zone_size", zone) ||
	    !put(CONFIG "encrypt", way->encrypt) ||
	    !put(CONFIG "compress", way->compress) ||
	    !put(CONFIG "power", "1") || !make_swap())
		return false;
	/* So many fit, even if none shrinks. */
	pages = counter("certain_bytes") / page_size / 16 * 15;
	if (!put_size(GROUP "memory.max", pages * page_size / 4))
		return false;
	if (swapon(NODE, 0))
		return fail("swapon: %s", strerror(errno));
	child = fork();
	if (!child)
		exit(use_memory() ? 0 : 1);
	waitpid(child, &status, 0);
	if (status)
		ok = fail("the process ended with status %#x", status);
	swapoff(NODE);
	for (i = 0; i < LENGTH(errors); i++)
		if (counter(errors[i]))
			ok = fail("%s: %lu", errors[i], counter(errors[i]));
	fail("%lu pages swapped out, %lu blocks copied by GC, in %lu zones",
	     counter("host_pages"), counter("gc_blocks"), counter("gc_zones"));
	if (counter("host_pages") < 2 * pages || !counter("gc_blocks"))
		ok = fail("this is too little");
	if (counter("live_blocks"))
		ok = fail("%lu blocks are left", counter("live_blocks"));
	return ok;
}

/* Are there no warnings but those of slow CPUs since the last time? */
static bool log_is_clean(void)
{
	char text[8192];
	bool clean = true;
	ssize_t len;

	while ((len = read(log_fd, text, sizeof(text) - 1)) > 0) {
		text[len - 1] = '\0';
		if ((strtoul(text, NULL, 10) & 7) <= 4 &&
		    !strstr(text, "hrtimer: interrupt took") &&
		    !strstr(text, "hogged CPU for"))
			clean = fail("log: %s", text);
	}
	return (len < 0 && errno == EAGAIN && clean) || fail("log: not clean");
}

static bool test(const struct drive *drive, const struct way *way)
{
	bool ok;

	mkdir(CONFIG, 0755);
	ok = swap_to(drive, way);
	ok = put(CONFIG "power", "0") && ok;
	if (rmdir(CONFIG))
		ok = fail("rmdir: %s", strerror(errno));
	return log_is_clean() && ok;
}

/* In the order of their names. */
static void load_modules(void)
{
	glob_t g = { };
	size_t i;
	int fd;

	glob("/modules/*", 0, NULL, &g);
	for (i = 0; i < g.gl_pathc; i++) {
		fd = open(g.gl_pathv[i], O_RDONLY);
		if (syscall(SYS_finit_module, fd, "", 0) && errno != EEXIST)
			fail("%s: %s", g.gl_pathv[i], strerror(errno));
		close(fd);
	}
}

static void set_up(void)
{
	mount("dev", "/dev", "devtmpfs", 0, NULL);
	mount("proc", "/proc", "proc", 0, NULL);
	mount("sys", "/sys", "sysfs", 0, NULL);
	freopen("/dev/console", "w", stdout);
	setvbuf(stdout, NULL, _IOLBF, 0);
	load_modules();
	mount("config", "/sys/kernel/config", "configfs", 0, NULL);
	mount("cgroup", "/sys/fs/cgroup", "cgroup2", 0, NULL);
	put("/sys/fs/cgroup/cgroup.subtree_control", "+memory");
	mkdir(GROUP, 0755);
	if (!access(FOLIOS, F_OK))
		put(FOLIOS, "always");
	while (access("/dev/nvme0n1", F_OK) || access("/dev/nvme1n1", F_OK))
		usleep(100000);
	log_fd = open("/dev/kmsg", O_RDONLY | O_NONBLOCK);
	lseek(log_fd, 0, SEEK_END);
	page_size = sysconf(_SC_PAGESIZE);
	words = page_size / sizeof(*load);
}

static bool describe(int nr, const char *what, char *text, size_t size)
{
	char path[64];

	snprintf(path, sizeof(path), "/sys/block/nvme%dn1/%s", nr, what);
	if (!get(path, text, size))
		return false;
	text[strcspn(text, "\n")] = '\0';
	return true;
}

static bool find(int nr, struct drive *drive)
{
	char sectors[32];

	snprintf(drive->path, sizeof(drive->path), "/dev/nvme%dn1", nr);
	if (!describe(nr, "size", sectors, sizeof(sectors)))
		return false;
	drive->bytes = strtoul(sectors, NULL, 10) << 9;
	return describe(nr, "queue/zoned", drive->zoned, sizeof(drive->zoned));
}

int main(void)
{
	int failed = 0, passed = 0, i;

	set_up();
	for (i = 0; i < 2 * (int)LENGTH(ways); i++) {
		const struct way *way = &ways[i / 2];
		struct drive drive = { };
		time_t start = time(NULL);
		bool ok = find(i % 2, &drive) && test(&drive, way);

		*(ok ? &passed : &failed) += 1;
		printf("test %zu KiB pages, %s, zones: %s: %s (%ld s)\n",
		       page_size >> 10, way->name, drive.zoned,
		       ok ? "ok" : "FAILED", time(NULL) - start);
	}
	printf("arm64: %d passed, %d failed\n", passed, failed);
	reboot(RB_POWER_OFF);
}
