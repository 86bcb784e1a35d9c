// SPDX-License-Identifier: GPL-2.0-only
/*
 * A tool for Valgrind that tells which pages a program touches. trace/pages
 * builds it, runs programs under it, and makes a file for the simulator of
 * what it prints: docs/dev/trace-format.md, "Accesses of a program".
 *
 * It prints a line "TIME r|w PAGE" for an access to a page that is not among
 * the last KEPT different ones, and for the first write to one that is. TIME
 * is in thousands of instructions, PAGE a virtual address / 4096, in hex. With
 * memory for KEPT pages and more, LRU faults on exactly the same pages as with
 * all accesses (Kaplan, Smaragdakis, Wilson: Trace Reduction for Virtual
 * Memory Simulations, SIGMETRICS 1999).
 */
#include "pub_tool_basics.h"
#include "pub_tool_libcassert.h"
#include "pub_tool_libcbase.h"
#include "pub_tool_libcfile.h"
#include "pub_tool_libcprint.h"
#include "pub_tool_machine.h"
#include "pub_tool_mallocfree.h"
#include "pub_tool_options.h"
#include "pub_tool_tooliface.h"
#include "pub_tool_vki.h"

#define PAGE_SHIFT	12
#define BUCKETS		65536
#define NONE		(-1)

/* One of the last pages. */
struct entry {
	Addr page;
	Int newer, older;	/* in the order of their last accesses */
	Int next;		/* in its bucket */
	Bool written;
};

static Int kept = 256;
static const HChar *path;
static struct entry *entries;
static Int buckets[BUCKETS];
static Int used, newest = NONE, oldest = NONE;
/* Instructions so far, of all threads: Valgrind runs one at a time. */
static ULong instructions;

static HChar buffer[1 << 16];
static Int filled, out;

static void flush(void)
{
	for (Int done = 0; done < filled;) {
		Int n = VG_(write)(out, buffer + done, filled - done);

		if (n <= 0)
			VG_(tool_panic)("cannot write the recording");
		done += n;
	}
	filled = 0;
}

static void tell(Addr page, Bool write)
{
	filled += VG_(snprintf)(buffer + filled, 64, "%llu %c %lx\n",
				instructions / 1000, write ? 'w' : 'r', page);
	if (filled > (Int)sizeof(buffer) - 64)
		flush();
}

static Int *bucket(Addr page)
{
	return &buckets[(page * 0x9e3779b97f4a7c15ULL) >> 48];
}

static void take_out(Int i)
{
	struct entry *e = &entries[i];

	if (e->newer == NONE)
		newest = e->older;
	else
		entries[e->newer].older = e->older;
	if (e->older == NONE)
		oldest = e->newer;
	else
		entries[e->older].newer = e->newer;
}

static void put_first(Int i)
{
	struct entry *e = &entries[i];

	e->newer = NONE;
	e->older = newest;
	if (newest != NONE)
		entries[newest].newer = i;
	newest = i;
	if (oldest == NONE)
		oldest = i;
}

/* Makes room for another page. Returns its place. */
static Int forget_oldest(void)
{
	Int i = oldest;
	Int *at = bucket(entries[i].page);

	while (*at != i)
		at = &entries[*at].next;
	*at = entries[i].next;
	take_out(i);
	return i;
}

static void touch(Addr page, Bool write)
{
	struct entry *e;
	Int i;

	if (newest != NONE && entries[newest].page == page &&
	    (!write || entries[newest].written))
		return;
	for (i = *bucket(page); i != NONE; i = entries[i].next)
		if (entries[i].page == page)
			break;
	if (i != NONE) {
		take_out(i);
		put_first(i);
		e = &entries[i];
		if (!write || e->written)
			return;
		e->written = True;
		tell(page, True);
		return;
	}
	i = used < kept ? used++ : forget_oldest();
	e = &entries[i];
	e->page = page;
	e->written = write;
	e->next = *bucket(page);
	*bucket(page) = i;
	put_first(i);
	tell(page, write);
}

static VG_REGPARM(1) void on_load(Addr a)
{
	touch(a >> PAGE_SHIFT, False);
}

static VG_REGPARM(1) void on_store(Addr a)
{
	touch(a >> PAGE_SHIFT, True);
}

/* The kernel reads and writes the program's memory as well. */
static void touch_all(CorePart part, Addr a, SizeT size, Bool write)
{
	if (part != Vg_CoreSysCall || size == 0)
		return;
	for (Addr page = a >> PAGE_SHIFT; page <= (a + size - 1) >> PAGE_SHIFT; page++)
		touch(page, write);
}

static void kernel_reads(CorePart part, ThreadId tid, const HChar *what, Addr a, SizeT size)
{
	touch_all(part, a, size, False);
}

static void kernel_wrote(CorePart part, ThreadId tid, Addr a, SizeT size)
{
	touch_all(part, a, size, True);
}

static void call(IRSB *sb, Bool write, IRExpr *address, IRExpr *guard)
{
	IRDirty *d = unsafeIRDirty_0_N(1, write ? "on_store" : "on_load",
				       VG_(fnptr_to_fnentry)(write ? (void *)on_store : (void *)on_load),
				       mkIRExprVec_1(address));

	if (guard)
		d->guard = guard;
	addStmtToIRSB(sb, IRStmt_Dirty(d));
}

static void count_instruction(IRSB *sb)
{
	IRExpr *address = mkIRExpr_HWord((HWord)&instructions);
	IRTemp was = newIRTemp(sb->tyenv, Ity_I64);
	IRTemp is = newIRTemp(sb->tyenv, Ity_I64);

	addStmtToIRSB(sb, IRStmt_WrTmp(was, IRExpr_Load(Iend_LE, Ity_I64, address)));
	addStmtToIRSB(sb, IRStmt_WrTmp(is, IRExpr_Binop(Iop_Add64, IRExpr_RdTmp(was),
							IRExpr_Const(IRConst_U64(1)))));
	addStmtToIRSB(sb, IRStmt_Store(Iend_LE, address, IRExpr_RdTmp(is)));
}

/* Accesses that cross the end of a page count for the page they begin in. */
static void add_calls(IRSB *sb, IRStmt *s)
{
	switch (s->tag) {
	case Ist_IMark:
		count_instruction(sb);
		break;
	case Ist_WrTmp:
		if (s->Ist.WrTmp.data->tag == Iex_Load)
			call(sb, False, s->Ist.WrTmp.data->Iex.Load.addr, NULL);
		break;
	case Ist_Store:
		call(sb, True, s->Ist.Store.addr, NULL);
		break;
	case Ist_LoadG:
		call(sb, False, s->Ist.LoadG.details->addr, s->Ist.LoadG.details->guard);
		break;
	case Ist_StoreG:
		call(sb, True, s->Ist.StoreG.details->addr, s->Ist.StoreG.details->guard);
		break;
	case Ist_CAS:
		call(sb, True, s->Ist.CAS.details->addr, NULL);
		break;
	case Ist_Dirty:
		if (s->Ist.Dirty.details->mFx != Ifx_None)
			call(sb, s->Ist.Dirty.details->mFx != Ifx_Read,
			     s->Ist.Dirty.details->mAddr, s->Ist.Dirty.details->guard);
		break;
	default:
		break;
	}
}

static IRSB *instrument(VgCallbackClosure *closure, IRSB *in, const VexGuestLayout *layout,
			const VexGuestExtents *extents, const VexArchInfo *arch,
			IRType guest_word, IRType host_word)
{
	IRSB *sb = deepCopyIRSBExceptStmts(in);

	for (Int i = 0; i < in->stmts_used; i++) {
		if (!in->stmts[i] || in->stmts[i]->tag == Ist_NoOp)
			continue;
		if (in->stmts[i]->tag != Ist_IMark)
			add_calls(sb, in->stmts[i]);
		addStmtToIRSB(sb, in->stmts[i]);
		if (in->stmts[i]->tag == Ist_IMark)
			add_calls(sb, in->stmts[i]);
	}
	return sb;
}

static Bool option(const HChar *arg)
{
	if (VG_STR_CLO(arg, "--pages-file", path))
		return True;
	return VG_BINT_CLO(arg, "--kept", kept, 16, 1 << 20);
}

static void usage(void)
{
	VG_(printf)("    --pages-file=FILE    where the recording goes\n"
		    "    --kept=N             accesses to the last N pages are left out [256]\n");
}

static void debug_usage(void)
{
	VG_(printf)("    (none)\n");
}

static void after_options(void)
{
	if (!path)
		VG_(fmsg_bad_option)("--pages-file", "It is missing.\n");
	out = VG_(fd_open)(path, VKI_O_CREAT | VKI_O_TRUNC | VKI_O_WRONLY, 0644);
	if (out < 0)
		VG_(fmsg_bad_option)(path, "It cannot be written.\n");
	entries = VG_(malloc)("pages", kept * sizeof(*entries));
	for (Int i = 0; i < BUCKETS; i++)
		buckets[i] = NONE;
}

static void at_end(Int status)
{
	flush();
}

static void before_options(void)
{
	VG_(details_name)("pages");
	VG_(details_version)(NULL);
	VG_(details_description)("which pages a program touches");
	VG_(details_copyright_author)("GPL-2.0-only");
	VG_(details_bug_reports_to)("the authors of znsage");
	VG_(basic_tool_funcs)(after_options, instrument, at_end);
	VG_(needs_command_line_options)(option, usage, debug_usage);
	VG_(track_pre_mem_read)(kernel_reads);
	VG_(track_post_mem_write)(kernel_wrote);
}

VG_DETERMINE_INTERFACE_VERSION(before_options)
