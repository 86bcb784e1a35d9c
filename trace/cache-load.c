// SPDX-License-Identifier: GPL-2.0-only
/*
 * Fills a memcached and sends it requests, then ends it:
 *
 *	cc -O2 -o cache-load trace/cache-load.c -lm
 *	./cache-load PORT ITEMS REQUESTS
 *
 * Keys follow Zipf's law (exponent 0.99), one request in ten writes, and values
 * have 100 to 1,000 bytes, small ones more often. The same arguments send the
 * same requests.
 */
#include <arpa/inet.h>
#include <err.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define BATCH	100

/* Requests that were not sent yet, and which of them are gets. */
static char requests[BATCH * 1100];
static size_t filled;
static bool gets[BATCH];
static int count;

/* xorshift64*, Vigna 2016. */
static uint64_t state = 1;

/* A number from 0 to below 1. */
static double uniform(void)
{
	state ^= state >> 12;
	state ^= state << 25;
	state ^= state >> 27;
	return (double)((state * 0x2545f4914f6cdd1dULL) >> 11) / 9007199254740992.0;
}

/* Waits up to a minute for the server to listen. */
static int connect_to(int port)
{
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons(port) };

	to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	for (int i = 0; i < 600; i++) {
		int fd = socket(AF_INET, SOCK_STREAM, 0);

		if (fd < 0)
			err(1, "socket");
		if (!connect(fd, (struct sockaddr *)&to, sizeof(to)))
			return fd;
		close(fd);
		usleep(100000);
	}
	errx(1, "nobody listens on port %d", port);
}

/* Adds the request that stores an item. */
static void store(long key)
{
	int size = (int)(100 * pow(10, uniform()));

	filled += sprintf(requests + filled, "set %ld 0 0 %d\r\n", key, size);
	memset(requests + filled, 'x', size);
	filled += size;
	filled += sprintf(requests + filled, "\r\n");
	gets[count++] = false;
}

/* Sends the requests, and reads an answer to each. */
static void talk(int fd, FILE *answers)
{
	char line[2048];

	if (send(fd, requests, filled, 0) != (ssize_t)filled)
		err(1, "send");
	filled = 0;
	for (int i = 0; i < count; i++) {
		do {
			if (!fgets(line, sizeof(line), answers))
				errx(1, "memcached ended");
		} while (gets[i] && (!strncmp(line, "VALUE ", 6) || line[0] == 'x'));
		if (strcmp(line, gets[i] ? "END\r\n" : "STORED\r\n"))
			errx(1, "memcached answers %s", line);
	}
	count = 0;
}

/* The rank that a request goes to: the first whose sum is above @at. */
static long rank_of(const double *sums, long items, double at)
{
	long low = 0, high = items - 1;

	while (low < high) {
		long middle = (low + high) / 2;

		if (sums[middle] > at)
			high = middle;
		else
			low = middle + 1;
	}
	return low;
}

int main(int argc, char **argv)
{
	long items = argc == 4 ? atol(argv[2]) : 0, batches = argc == 4 ? atol(argv[3]) / BATCH : 0;
	double sum = 0, *sums = calloc(items > 0 ? items : 1, sizeof(*sums));
	long *keys = calloc(items > 0 ? items : 1, sizeof(*keys));
	FILE *answers;
	int fd;

	if (items < 1 || batches < 1 || !sums || !keys)
		errx(1, "usage: cache-load PORT ITEMS REQUESTS");
	fd = connect_to(atoi(argv[1]));
	answers = fdopen(fd, "r");
	for (long i = 0; i < items; i++) {
		long other = (long)(uniform() * (i + 1));

		sum += 1 / pow(i + 1, 0.99);
		sums[i] = sum;
		/* Shuffled: Fisher and Yates, inside out. */
		keys[i] = keys[other];
		keys[other] = i;
		store(i);
		if (count == BATCH || i == items - 1)
			talk(fd, answers);
	}
	while (batches--) {
		while (count < BATCH) {
			long key = keys[rank_of(sums, items, uniform() * sum)];

			if (uniform() < 0.1) {
				store(key);
				continue;
			}
			filled += sprintf(requests + filled, "get %ld\r\n", key);
			gets[count++] = true;
		}
		talk(fd, answers);
	}
	if (send(fd, "shutdown\r\n", 10, 0) != 10)
		err(1, "send");
	return 0;
}
