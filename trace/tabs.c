// SPDX-License-Identifier: GPL-2.0-only
/*
 * Does what a browser with many tabs does to memory:
 *
 *	cc -O2 -o tabs trace/tabs.c $(xml2-config --cflags --libs) -lm
 *	./tabs TABS STEPS
 *
 * Each tab has a page, parsed by libxml2 into a tree. A step goes to a tab,
 * mostly one that was looked at not long ago, and lays out a part of its page:
 * it visits elements and sets an attribute of each. One step in eight loads
 * another page instead, whose tree replaces the old one. The same arguments do
 * the same. Needs libxml2-dev.
 */
#include <libxml/HTMLparser.h>
#include <libxml/tree.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_TABS	4096
#define LAID_OUT	20	/* sections in a step */
#define PARSE		(HTML_PARSE_RECOVER | HTML_PARSE_NOERROR | HTML_PARSE_NOWARNING | \
			 HTML_PARSE_NONET | HTML_PARSE_COMPACT)

static const char * const words[] = {
	"swap", "zone", "page", "write", "device", "memory", "a", "the", "of"
};

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

/* A number from low to high, both included. */
static int between(int low, int high)
{
	return low + (int)(uniform() * (high - low + 1));
}

static const char *word(void)
{
	return words[between(0, sizeof(words) / sizeof(words[0]) - 1)];
}

static void die(const char *what)
{
	fprintf(stderr, "tabs: %s\n", what);
	exit(1);
}

/* A page: some thousand elements, a few levels deep. */
static htmlDocPtr load(void)
{
	int sections = between(20, 120);
	htmlDocPtr page;
	size_t size;
	char *text;
	FILE *f = open_memstream(&text, &size);

	if (!f)
		die("no memory");
	fputs("<html><body>", f);
	for (int i = 0; i < sections; i++) {
		fprintf(f, "<div class=\"section s%d\"><h2>%s</h2>", i, word());
		for (int n = between(5, 25); n; n--) {
			fprintf(f, "<p style=\"margin: %dpx\"><a href=\"/%d\">%s", i, i, word());
			for (int more = between(2, 29); more; more--)
				fprintf(f, " %s", word());
			fputs("</a></p>", f);
		}
		fputs("</div>", f);
	}
	fputs("</body></html>", f);
	if (fclose(f))
		die("no memory");
	page = htmlReadMemory(text, (int)size, NULL, NULL, PARSE);
	if (!page)
		die("libxml2 cannot parse a page");
	free(text);
	return page;
}

static void lay_out(htmlDocPtr page, long step)
{
	xmlNodePtr body = xmlFirstElementChild(xmlDocGetRootElement(page));
	int first = between(0, (int)xmlChildElementCount(body) - 1);
	xmlNodePtr section = xmlFirstElementChild(body);
	char height[24];

	snprintf(height, sizeof(height), "%ld", step);
	while (first--)
		section = xmlNextElementSibling(section);
	for (int n = 0; n < LAID_OUT && section; n++) {
		for (xmlNodePtr e = xmlFirstElementChild(section); e; e = xmlNextElementSibling(e))
			if (!xmlSetProp(e, BAD_CAST "height", BAD_CAST height))
				die("no memory");
		section = xmlNextElementSibling(section);
	}
}

int main(int argc, char **argv)
{
	/* The tab that was looked at last comes first. */
	static htmlDocPtr order[MAX_TABS];
	int tabs = argc == 3 ? atoi(argv[1]) : 0;
	long steps = argc == 3 ? atol(argv[2]) : 0;

	if (tabs < 1 || tabs > MAX_TABS || steps < 1)
		die("usage: tabs TABS STEPS");
	for (int i = 0; i < tabs; i++)
		order[i] = load();
	for (long step = 0; step < steps; step++) {
		/* Pareto's distribution, shape 0.7. */
		double place = floor(pow(1 - uniform(), -1 / 0.7)) - 1;
		int at = place < tabs - 1 ? (int)place : tabs - 1;
		htmlDocPtr page = order[at];

		if (uniform() < 1.0 / 8) {
			htmlDocPtr old = page;

			page = load();
			xmlFreeDoc(old);
		} else {
			lay_out(page, step);
		}
		memmove(order + 1, order, at * sizeof(*order));
		order[0] = page;
	}
	return 0;
}
