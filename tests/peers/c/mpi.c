/* One rank of an MPI library, driven as unisono-peers is: see src/main.rs for the protocol and the
 * environment, src/trial.rs for the trial and src/call.rs for the operations. What is timed must be
 * the same here and there. */
#define _GNU_SOURCE
#include <mpi.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

static int me, ranks;
static float *send_buffer, *recv_buffer;
static size_t capacity;

enum op { ALL_REDUCE, ALL_GATHER, REDUCE_SCATTER, BROADCAST, ALL_TO_ALL, REDUCE, BARRIER, SEND_RECV, OPS };
static const char *const names[OPS] = {"all_reduce", "all_gather", "reduce_scatter", "broadcast",
                                       "all_to_all", "reduce",     "barrier",        "send_recv"};

static void fail(const char *what)
{
    perror(what);
    MPI_Abort(MPI_COMM_WORLD, 1);
    exit(1);
}

static int asked(const char *name)
{
    const char *value = getenv(name);
    return value && strcmp(value, "1") == 0;
}

static double now_us(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1e6 + t.tv_nsec * 1e-3;
}

static float step(size_t i)
{
    return (float)(i % 13 + 1);
}

static float pattern(int rank, size_t i)
{
    return (float)(rank + 1) * step(i);
}

/* Private pages, so many bytes behind a huge page's boundary, or what the library allocates. */
static float *buffer(size_t elements)
{
    const size_t huge = (size_t)2 << 20;
    size_t bytes = (elements * sizeof(float) + huge - 1) / huge * huge;
    void *memory;
    if (asked("PEERS_WINDOWS")) {
        if (MPI_Alloc_mem((MPI_Aint)bytes, MPI_INFO_NULL, &memory) != MPI_SUCCESS)
            fail("MPI_Alloc_mem");
        return memory;
    }
    const char *offset = getenv("PEERS_OFFSET");
    size_t behind = offset ? strtoul(offset, NULL, 10) : 0;
    bytes += behind ? huge : 0;
    if (posix_memalign(&memory, huge, bytes) != 0)
        fail("posix_memalign");
    madvise(memory, bytes, asked("PEERS_THP") ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
    return (float *)((char *)memory + behind);
}

/* Elements of the larger buffer; at least one for each block. */
static size_t elements_of(enum op op, size_t bytes)
{
    size_t elements = bytes / sizeof(float);
    if (elements == 0)
        elements = 1;
    if (op == BARRIER)
        return 0;
    if (op == ALL_GATHER || op == REDUCE_SCATTER || op == ALL_TO_ALL) {
        size_t block = elements / (size_t)ranks;
        return (block ? block : 1) * (size_t)ranks;
    }
    return elements;
}

static void call(enum op op, size_t len)
{
    int all = (int)len, block = (int)(len / (size_t)ranks);
    switch (op) {
    case ALL_REDUCE:
        MPI_Allreduce(send_buffer, recv_buffer, all, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
        break;
    case ALL_GATHER:
        MPI_Allgather(send_buffer, block, MPI_FLOAT, recv_buffer, block, MPI_FLOAT, MPI_COMM_WORLD);
        break;
    case REDUCE_SCATTER:
        MPI_Reduce_scatter_block(send_buffer, recv_buffer, block, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
        break;
    case BROADCAST:
        MPI_Bcast(me == 0 ? send_buffer : recv_buffer, all, MPI_FLOAT, 0, MPI_COMM_WORLD);
        break;
    case ALL_TO_ALL:
        MPI_Alltoall(send_buffer, block, MPI_FLOAT, recv_buffer, block, MPI_FLOAT, MPI_COMM_WORLD);
        break;
    case REDUCE:
        MPI_Reduce(send_buffer, recv_buffer, all, MPI_FLOAT, MPI_SUM, 0, MPI_COMM_WORLD);
        break;
    case SEND_RECV:
        if (me == 0) {
            MPI_Send(send_buffer, all, MPI_FLOAT, 1, 0, MPI_COMM_WORLD);
            MPI_Recv(recv_buffer, all, MPI_FLOAT, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        } else {
            MPI_Recv(recv_buffer, all, MPI_FLOAT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            MPI_Send(send_buffer, all, MPI_FLOAT, 0, 0, MPI_COMM_WORLD);
        }
        break;
    default:
        MPI_Barrier(MPI_COMM_WORLD);
    }
}

/* Elements of the receive buffer that are not what they must be. */
static double wrong(enum op op, size_t len)
{
    size_t block = len / (size_t)ranks, count = 0, i;
    float all = (float)(ranks * (ranks + 1) / 2);
    if ((op == REDUCE && me > 0) || (op == BROADCAST && me == 0) || op == BARRIER)
        return 0;
    for (i = 0; i < (op == REDUCE_SCATTER ? block : len); i++) {
        float wanted;
        switch (op) {
        case ALL_GATHER:
            wanted = pattern((int)(i / block), i % block);
            break;
        case ALL_TO_ALL:
            wanted = pattern((int)(i / block), (size_t)me * block + i % block);
            break;
        case REDUCE_SCATTER:
            wanted = all * step((size_t)me * block + i);
            break;
        case BROADCAST:
            wanted = pattern(0, i);
            break;
        case SEND_RECV:
            wanted = pattern(1 - me, i);
            break;
        default:
            wanted = all * step(i);
        }
        count += recv_buffer[i] != wanted;
    }
    return (double)count;
}

static double slowest(double value)
{
    double all;
    MPI_Allreduce(&value, &all, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return all;
}

/* Rewrites one word of every cache line, as a program that computes its input would. */
static void touch(size_t len)
{
    volatile float *data = send_buffer;
    size_t i;
    for (i = 0; i < len; i += 16)
        data[i] = data[i];
}

/* How many calls are timed if one takes so many microseconds: no more than were asked for, and no fewer than least. */
static long iters_within(long asked_for, double cap_us, double usec, long least)
{
    long iters = cap_us > 0 && (double)asked_for * usec > cap_us ? (long)(cap_us / usec) : asked_for;
    return iters < least ? least : iters;
}

/* Microseconds of one of so many calls, on the slowest rank. */
static double timed(enum op op, size_t len, long iters, int dirty)
{
    double start, touching = 0;
    long i;
    MPI_Barrier(MPI_COMM_WORLD);
    if (dirty) {
        start = now_us();
        for (i = 0; i < iters; i++)
            touch(len);
        touching = (now_us() - start) / (double)iters;
        MPI_Barrier(MPI_COMM_WORLD);
    }
    start = now_us();
    for (i = 0; i < iters; i++) {
        if (dirty)
            touch(len);
        call(op, len);
    }
    return slowest((now_us() - start) / (double)iters - touching);
}

static void trial(enum op op, size_t bytes, long warmup, long asked_for, double cap_us, int verify, FILE *results)
{
    size_t len = elements_of(op, bytes);
    int dirty = op != BARRIER && asked("PEERS_DIRTY");
    double start, usec, bad = -1;
    long i, iters, more;
    MPI_Barrier(MPI_COMM_WORLD);
    start = now_us();
    for (i = 0; i < warmup; i++)
        call(op, len);
    more = iters_within(asked_for, cap_us, slowest((now_us() - start) / (double)warmup), 2);
    /* Again where the first calls were slow: see trial.rs. */
    do {
        iters = more;
        usec = timed(op, len, iters, dirty);
        more = iters_within(asked_for, cap_us, usec, iters);
    } while (more > 2 * iters);
    if (op == SEND_RECV)
        usec /= 2;
    if (verify && op != BARRIER) {
        memset(recv_buffer, 0, len * sizeof(float));
        MPI_Barrier(MPI_COMM_WORLD);
        call(op, len);
        bad = slowest(wrong(op, len));
    }
    if (me == 0) {
        fprintf(results, "{\"op\":\"%s\",\"ranks\":%d,\"bytes\":%zu,\"usec_median\":%.3f,\"iters\":%ld,\"wrong\":%.0f}\n",
                names[op], ranks, bytes, usec, iters, bad);
        fflush(results);
    }
}

static FILE *pipe_of(const char *name, const char *mode)
{
    char path[4096];
    const char *folder = getenv("PEERS_CTL");
    FILE *file;
    if (!folder || snprintf(path, sizeof path, "%s/%s", folder, name) >= (int)sizeof path) {
        fputs("PEERS_CTL names no folder\n", stderr);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    file = fopen(path, mode);
    if (!file)
        fail(path);
    return file;
}

/* Binds this process to a core, if the driver says so. */
static void bind_to_core(int rank)
{
    const char *how = getenv("PEERS_BIND");
    cpu_set_t set;
    if (!how || strcmp(how, "core") != 0)
        return;
    CPU_ZERO(&set);
    CPU_SET(rank % (int)sysconf(_SC_NPROCESSORS_ONLN), &set);
    if (sched_setaffinity(0, sizeof set, &set) != 0)
        fail("binding to a core");
}

/* The rank that the launcher names before the library begins, or -1. */
static int named_rank(void)
{
    static const char *const names[] = {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK"};
    size_t i;
    for (i = 0; i < sizeof names / sizeof *names; i++)
        if (getenv(names[i]))
            return atoi(getenv(names[i]));
    return -1;
}

int main(int argc, char **argv)
{
    char version[MPI_MAX_LIBRARY_VERSION_STRING], line[256], name[32];
    const char *value;
    FILE *commands, *results;
    size_t i;
    int length;
    /* As launchers do: libraries see where they run as they begin. */
    me = named_rank();
    if (me >= 0)
        bind_to_core(me);
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    bind_to_core(me);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    value = getenv("PEERS_MAXBYTES");
    capacity = (value ? strtoull(value, NULL, 10) : (size_t)64 << 20) / sizeof(float) + (size_t)ranks + 16;
    send_buffer = buffer(capacity);
    recv_buffer = buffer(capacity);
    for (i = 0; i < capacity; i++)
        send_buffer[i] = pattern(me, i);
    memset(recv_buffer, 0, capacity * sizeof(float));
    MPI_Barrier(MPI_COMM_WORLD);

    results = pipe_of("r", "w");
    snprintf(name, sizeof name, "c.%d", me);
    commands = pipe_of(name, "r");
    MPI_Get_library_version(version, &length);
    /* The first line, without what JSON would have to escape, written at once. */
    for (length = 0; version[length] != 0 && version[length] != '\n' && length < 120; length++)
        if (version[length] < ' ' || version[length] == '"' || version[length] == '\\')
            version[length] = ' ';
    version[length] = 0;
    fprintf(results, "{\"hello\":%d,\"pid\":%d,\"readers\":%d,\"version\":\"%s\"}\n", me, (int)getpid(), ranks, version);
    fflush(results);
    while (fgets(line, sizeof line, commands)) {
        size_t bytes;
        long warmup, iters;
        double cap_us;
        int verify, op;
        if (sscanf(line, "run %31s %zu %ld %ld %lf %d", name, &bytes, &warmup, &iters, &cap_us, &verify) != 6)
            break;
        for (op = 0; op < OPS && strcmp(name, names[op]) != 0; op++)
            ;
        if (op < OPS && elements_of(op, bytes) <= capacity && warmup > 0) {
            trial(op, bytes, warmup, iters, cap_us, verify, results);
        } else if (me == 0) {
            fprintf(results, "{\"error\":\"unsupported\"}\n");
            fflush(results);
        }
    }
    MPI_Finalize();
    return 0;
}
