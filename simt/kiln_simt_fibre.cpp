/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CUDA threads as fibres of one host thread: a block at a time, and of its threads that can run
 * always a random one, until it waits for others. Knows when each may go on, and reports threads
 * that wait for one that never comes. Knows no memory.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "kiln_simt_hooks.h"
#include "kiln_simt_internal.h"
#include "kiln_simt_switch.h"

uint3 threadIdx, blockIdx;
dim3 blockDim, gridDim;

namespace simt
{
namespace
{
#if defined(KILN_SIMT_ADDRESS) || defined(KILN_SIMT_MEMORY) || defined(KILN_SIMT_THREAD)
constexpr size_t kStackBytes = 512 << 10;
#else
constexpr size_t kStackBytes = 128 << 10;
#endif
constexpr size_t kGapBytes = 64
                             << 10; /* below each stack: touching it ends the program */

enum state_t { kReady, kAtBlock, kAtWarp, kExited };

struct fibre_t {
    void *sp;
    known_stack_t stack;
    state_t state;
    const kiln_simt_place *place; /* where it waits */
    unsigned mask;                /* kAtWarp: for whom */
    bool orders;
    unsigned long long value;             /* what it brought */
    kiln_simt_count how;                  /* kAtBlock */
    int result;                           /* kAtBlock: what it takes away */
    unsigned long long lanes[kWarpLanes]; /* kAtWarp: the same */
    unsigned char *stack_low;             /* it has touched its stack down to here */
    uint32_t clock;
    uint32_t warp_seen[kWarpLanes];
};

/* Where ThreadSanitizer keeps what a wait hands on; two in turn, as a slow thread may not have
 * left the last wait when a fast one comes to the next. */
struct objects_t {
    char block[2];
    char warps[kThreadsMax][2];
};

struct grid_t {
    fibre_t *fibres;
    unsigned char *stacks;
    size_t stacks_bytes;
    void *sp; /* the scheduler's */
    known_stack_t stack;
    fibre_t *running; /* nullptr: the scheduler */
    fibre_t *ready[kThreadsMax];
    unsigned n_ready, n_live, n_threads;
    unsigned n_made; /* fibres, of kThreadsMax */
    uint32_t block, epoch;
    uint32_t warp_turns[kThreadsMax];
    objects_t *objects;
    char finished; /* what threads hand on to whoever reads the results */
    const void *args;
    uint32_t first_x, n_x; /* the blocks that run */
    random_t random;
};

grid_t *grid;

unsigned index_of(const fibre_t *fibre)
{
    return static_cast<unsigned>(fibre - grid->fibres);
}

/* Back to the scheduler, until it comes back here. */
void pause(fibre_t *self)
{
    before_switch(self->stack, grid->stack);
    kiln_simt_switch(&self->sp, grid->sp);
    after_switch(self->stack, nullptr);
}

void fibre_main()
{
    after_switch(grid->running->stack, &grid->stack);
    for (;;) {
        fibre_t *self = grid->running;
        kiln_simt_kernel(grid->args);
        self->state = kExited;
        grid->n_live--;
        release(&grid->finished);
        pause(self);
    }
}

void run(fibre_t *fibre)
{
    grid->running = fibre;
    threadIdx.x = index_of(fibre);
    before_switch(grid->stack, fibre->stack);
    kiln_simt_switch(&grid->sp, fibre->sp);
    after_switch(grid->stack, nullptr);
    grid->running = nullptr;
}

/* Not memcpy, which the compilers' checkers take for the running thread's own accesses. */
template <typename type>
void copy_values(type *to, const type *from, unsigned n)
{
    volatile type *target = to;
    for (unsigned i = 0; i < n; i++) {
        target[i] = from[i];
    }
}

void make_ready(fibre_t *fibre)
{
    fibre->state = kReady;
    grid->ready[grid->n_ready++] = fibre;
}

fibre_t *take_ready()
{
    const unsigned i = grid->random.below(grid->n_ready);
    fibre_t *fibre = grid->ready[i];
    grid->ready[i] = grid->ready[--grid->n_ready];
    return fibre;
}

bool same_place(const kiln_simt_place *a, const kiln_simt_place *b)
{
    return a->line == b->line && strcmp(a->file, b->file) == 0 &&
           strcmp(a->what, b->what) == 0;
}

/* ---- who waits for whom, in words */

void describe(const fibre_t *fibre, char out[256])
{
    if (fibre->state == kExited) {
        snprintf(out, 256, "thread %u has returned", index_of(fibre));
        return;
    }
    int used = snprintf(out, 256, "thread %u waits at %s (%s:%d)", index_of(fibre),
                        fibre->place->what, fibre->place->file, fibre->place->line);
    if (fibre->state == kAtWarp && used > 0 && used < 200) {
        snprintf(out + used, 256 - static_cast<size_t>(used), " with mask 0x%08x",
                 fibre->mask);
    }
}

[[noreturn]] void fail_divergent(const fibre_t *waits, const fibre_t *missing)
{
    char where[256];
    describe(missing, where);
    fail(nullptr,
         "%s:%d: divergence: thread %u of block (%u, %u) waits at %s for thread %u, but "
         "%s",
         waits->place->file, waits->place->line, index_of(waits), blockIdx.x, blockIdx.y,
         waits->place->what, index_of(missing), where);
}

/* ---- the block's barrier */

int fold_predicates(kiln_simt_count how)
{
    int count = 0;
    for (unsigned i = 0; i < grid->n_threads; i++) {
        count += grid->fibres[i].state == kAtBlock && grid->fibres[i].value != 0;
    }
    switch (how) {
    case KILN_SIMT_AND:
        return count == static_cast<int>(grid->n_live);
    case KILN_SIMT_OR:
        return count > 0;
    case KILN_SIMT_COUNT:
        break;
    }
    return count;
}

void pass_block_barrier()
{
    const fibre_t *first = nullptr;
    for (unsigned i = 0; i < grid->n_threads; i++) {
        const fibre_t *fibre = &grid->fibres[i];
        first = first == nullptr && fibre->state == kAtBlock ? fibre : first;
    }
    for (unsigned i = 0; i < grid->n_threads; i++) {
        fibre_t *fibre = &grid->fibres[i];
        if (fibre->state == kAtBlock && !same_place(fibre->place, first->place)) {
            fail_divergent(first, fibre);
        }
    }
    const int result = fold_predicates(first->how);
    grid->epoch++;
    for (unsigned i = 0; i < grid->n_threads; i++) {
        if (grid->fibres[i].state == kAtBlock) {
            grid->fibres[i].result = result;
            make_ready(&grid->fibres[i]);
        }
    }
}

/* ---- the warp's operations */

fibre_t *first_of_warp(const fibre_t *fibre)
{
    return grid->fibres + index_of(fibre) / kWarpLanes * kWarpLanes;
}

bool is_in(unsigned mask, unsigned lane)
{
    return mask >> lane & 1;
}

/* The first lane that the fibre's operation waits for; nullptr: all are there. */
const fibre_t *missing_lane(const fibre_t *fibre)
{
    const fibre_t *warp = first_of_warp(fibre);
    for (unsigned lane = 0; lane < kWarpLanes; lane++) {
        const bool there = warp[lane].state == kAtWarp &&
                           warp[lane].mask == fibre->mask &&
                           same_place(warp[lane].place, fibre->place);
        if (is_in(fibre->mask, lane) && !there) {
            return &warp[lane];
        }
    }
    return nullptr;
}

void pass_warp(const fibre_t *last)
{
    fibre_t *warp = first_of_warp(last);
    const unsigned mask = last->mask;
    unsigned long long values[kWarpLanes] = {};
    uint32_t seen[kWarpLanes] = {};
    for (unsigned lane = 0; lane < kWarpLanes; lane++) {
        if (!is_in(mask, lane)) {
            continue;
        }
        values[lane] = warp[lane].value;
        for (unsigned i = 0; i < kWarpLanes; i++) {
            seen[i] =
                warp[lane].warp_seen[i] > seen[i] ? warp[lane].warp_seen[i] : seen[i];
        }
        seen[lane] = warp[lane].clock;
    }
    for (unsigned lane = 0; lane < kWarpLanes; lane++) {
        if (!is_in(mask, lane)) {
            continue;
        }
        copy_values(warp[lane].lanes, values, kWarpLanes);
        if (last->orders) {
            copy_values(warp[lane].warp_seen, seen, kWarpLanes);
            warp[lane].clock++;
        }
    }
    for (unsigned lane = 0; lane < kWarpLanes; lane++) {
        if (is_in(mask, lane) && &warp[lane] != last) {
            make_ready(&warp[lane]);
        }
    }
}

char *warp_object(const fibre_t *fibre)
{
    const unsigned first = index_of(first_of_warp(fibre)) +
                           static_cast<unsigned>(__builtin_ctz(fibre->mask));
    return &grid->objects->warps[first][grid->warp_turns[first] & 1];
}

void check_mask(const fibre_t *self)
{
    const unsigned lane = index_of(self) % kWarpLanes;
    const unsigned n_lanes = grid->n_threads - (index_of(self) - lane);
    const fibre_t *warp = first_of_warp(self);
    const kiln_simt_place *place = self->place;
    if (!is_in(self->mask, lane)) {
        fail(nullptr,
             "%s:%d: divergence: %s: %s with mask 0x%08x, which lacks its own lane %u",
             place->file, place->line, who(), place->what, self->mask, lane);
    }
    for (unsigned i = 0; i < kWarpLanes; i++) {
        if (is_in(self->mask, i) && i >= n_lanes) {
            fail(nullptr,
                 "%s:%d: divergence: %s: %s with mask 0x%08x, but its warp has %u lanes",
                 place->file, place->line, who(), place->what, self->mask, n_lanes);
        }
        if (is_in(self->mask, i) && warp[i].state == kExited) {
            fail_divergent(self, &warp[i]);
        }
    }
}

/* ---- a block, the grid */

/* Nobody can run: all that live are at the barrier, or something is wrong. */
void pass_or_fail()
{
    const fibre_t *at_warp = nullptr;
    for (unsigned i = 0; i < grid->n_threads; i++) {
        const fibre_t *fibre = &grid->fibres[i];
        at_warp = fibre->state == kAtWarp && at_warp == nullptr ? fibre : at_warp;
    }
    if (at_warp != nullptr) {
        fail_divergent(at_warp, missing_lane(at_warp));
    }
    pass_block_barrier();
}

void begin_block(unsigned index)
{
    blockIdx = {grid->first_x + index % grid->n_x, index / grid->n_x, 0};
    grid->block++;
    grid->epoch = 1;
    grid->n_ready = 0;
    grid->n_live = grid->n_threads;
    grid->objects = static_cast<objects_t *>(calloc(1, sizeof *grid->objects));
    renew_shared(grid->random.state);
    for (unsigned i = 0; i < grid->n_threads; i++) {
        fibre_t *fibre = &grid->fibres[i];
        fibre->clock = 1;
        memset(fibre->warp_seen, 0, sizeof fibre->warp_seen);
        begin_thread(fibre->stack);
        make_ready(fibre);
    }
}

unsigned char *stack_end(const fibre_t *fibre)
{
    return const_cast<unsigned char *>(
               static_cast<const unsigned char *>(fibre->stack.bottom)) +
           fibre->stack.bytes;
}

/* A stack is zero where nobody has been. */
unsigned char *find_stack_low(const fibre_t *fibre)
{
    constexpr size_t kStep = 1024;
    unsigned char *low = fibre->stack_low;
    bool is_touched = true;
    while (is_touched && low - kStep > fibre->stack.bottom) {
        is_touched = false;
        for (size_t i = 1; i <= kStep / sizeof(uint64_t); i++) {
            is_touched |=
                reinterpret_cast<volatile uint64_t *>(low)[-static_cast<long>(i)] != 0;
        }
        low -= is_touched ? kStep : 0;
    }
    return low;
}

void end_block()
{
    for (unsigned i = 0; i < grid->n_threads; i++) {
        fibre_t *fibre = &grid->fibres[i];
        end_thread(fibre->stack);
        fibre->stack_low = find_stack_low(fibre);
        renew(fibre->stack_low, static_cast<size_t>(stack_end(fibre) - fibre->stack_low));
    }
    free(grid->objects);
    grid->objects = nullptr;
}

void run_block(unsigned index)
{
    begin_block(index);
    while (grid->n_live > 0) {
        if (grid->n_ready == 0) {
            pass_or_fail();
        }
        run(take_ready());
    }
    end_block();
}

constexpr size_t kStackStep = kStackBytes + kGapBytes;

void make_grid()
{
    const size_t bytes = kStackStep * kThreadsMax;
    void *memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) {
        fail(nullptr, "no memory for %u threads", kThreadsMax);
    }
    grid = static_cast<grid_t *>(calloc(1, sizeof *grid));
    grid->fibres = static_cast<fibre_t *>(calloc(kThreadsMax, sizeof *grid->fibres));
    grid->stacks = static_cast<unsigned char *>(memory);
    grid->stacks_bytes = bytes;
}

/* Those that no launch had before. Touching the gap between two stacks is a fault. */
void make_fibres(unsigned n_threads)
{
    for (; grid->n_made < n_threads; grid->n_made++) {
        unsigned char *gap = grid->stacks + kStackStep * grid->n_made;
        unsigned char *stack = gap + kGapBytes;
        fibre_t *fibre = &grid->fibres[grid->n_made];
        mprotect(gap, kGapBytes, PROT_NONE);
        fibre->sp = first_switch(stack, kStackBytes, fibre_main);
        fibre->stack.bottom = stack;
        fibre->stack.bytes = kStackBytes;
        fibre->stack_low = stack + kStackBytes;
    }
}

uint32_t common_divisor(uint32_t a, uint32_t b)
{
    return b == 0 ? a : common_divisor(b, a % b);
}
} // namespace

uint32_t random_t::below(uint32_t n)
{
    state += UINT64_C(0x9e3779b97f4a7c15);
    uint64_t z = state;
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return static_cast<uint32_t>((z >> 32) * n >> 32);
}

/* Blocks in an order that looks random: every `step`-th, which meets each once. */
void run_grid(const launch_t &launch)
{
    if (grid == nullptr) {
        make_grid();
    }
    make_fibres(launch.threads);
    grid->n_threads = launch.threads;
    blockDim = {launch.threads, 1, 1};
    gridDim = {launch.grid_x, launch.grid_y, 1};
    grid->args = launch.args;
    grid->first_x = launch.first_x;
    grid->n_x = launch.n_x;
    grid->random.state = launch.seed;
    begin_scheduler(grid->stack);
    const uint32_t n_blocks = launch.n_x * launch.grid_y;
    uint32_t at = grid->random.below(n_blocks);
    uint32_t step = 1 + grid->random.below(n_blocks);
    while (common_divisor(step, n_blocks) != 1) {
        step++;
    }
    for (uint32_t i = 0; i < n_blocks; i++) {
        run_block(at);
        at = static_cast<uint32_t>((static_cast<uint64_t>(at) + step) % n_blocks);
    }
    acquire(&grid->finished);
}

bool is_running()
{
    return grid != nullptr && grid->running != nullptr;
}

const char *who()
{
    static char text[64];
    text[0] = '\0';
    if (is_running()) {
        snprintf(text, sizeof text, "block (%u, %u), thread %u", blockIdx.x, blockIdx.y,
                 index_of(grid->running));
    }
    return text;
}

uint32_t next_block()
{
    return grid == nullptr ? 1 : grid->block + 1;
}

bool is_on_stack(const void *address)
{
    return grid != nullptr &&
           static_cast<size_t>(static_cast<const unsigned char *>(address) -
                               grid->stacks) < grid->stacks_bytes;
}

const clocks_t &clocks()
{
    static clocks_t now;
    const fibre_t *self = grid->running;
    now = {grid->block, index_of(self), grid->epoch, self->clock, self->warp_seen};
    return now;
}
} // namespace simt

using namespace simt;

int kiln_simt_block_sync(const kiln_simt_place *place, kiln_simt_count how, int predicate)
{
    fibre_t *self = grid->running;
    char *object = &grid->objects->block[grid->epoch & 1];
    self->place = place;
    self->how = how;
    self->value = static_cast<unsigned long long>(predicate);
    self->state = kAtBlock;
    release(object);
    pause(self);
    acquire(object);
    return self->result;
}

void kiln_simt_warp_sync(const kiln_simt_place *place, unsigned mask,
                         unsigned long long value, bool orders,
                         unsigned long long values[32])
{
    fibre_t *self = grid->running;
    self->place = place;
    self->mask = mask;
    self->value = value;
    self->orders = orders;
    check_mask(self);
    char *object = warp_object(self);
    self->state = kAtWarp;
    if (orders) {
        release(object);
    }
    if (missing_lane(self) != nullptr) {
        pause(self);
    } else {
        pass_warp(self);
        self->state = kReady;
        grid->warp_turns[(object - &grid->objects->warps[0][0]) / 2]++;
    }
    if (orders) {
        acquire(object);
    }
    if (values != nullptr) {
        copy_values(values, self->lanes, kWarpLanes);
    }
}

unsigned kiln_simt_active_mask(void)
{
    return 1u << threadIdx.x % kWarpLanes;
}

void kiln_simt_trap(const kiln_simt_place *place)
{
    fail(nullptr, "%s:%d: %s: %s", place->file, place->line, who(), place->what);
}

long long kiln_simt_clock(void)
{
    static long long ticks;
    return ++ticks;
}
