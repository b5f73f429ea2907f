/* Class, rank count and memory: legal or one sentence, before anything is allocated. */
#include "internal.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

const char *npb_kernel;
char npb_class_letter;

static const char classes[] = "SWAB";

static bool is_legal(int count, enum npb_ranks legal)
{
    int root = 0;

    switch (legal) {
    case NPB_POWERS_OF_TWO:
        return (count & (count - 1)) == 0;
    case NPB_SQUARES:
        while (root * root < count)
            root++;
        return root * root == count;
    default:
        return true;
    }
}

static const char *const legal_text[] = {
    [NPB_ANY] = "any number",
    [NPB_POWERS_OF_TWO] = "a power of two (1, 2, 4, 8, 16 ...)",
    [NPB_SQUARES] = "a square (1, 4, 9, 16, 25 ...)",
};

enum npb_class npb_start(int argc, char **argv, const char *kernel, enum npb_ranks legal)
{
    static char name[8];
    const char *class;

    for (size_t i = 0; i + 1 < sizeof name && kernel[i]; i++)
        name[i] = (char) tolower((unsigned char) kernel[i]);
    npb_kernel = kernel;
    start(&argc, &argv, name);
    if (argc == 2 && strcmp(argv[1], "--help") == 0) {
        if (rank == 0)
            printf("usage: %s CLASS\n\n"
                   "The NAS Parallel Benchmark %s; CLASS is S, W, A or B. The number of ranks is %s.\n"
                   "Example: mpiexec -n 4 %s S\n", name, kernel, legal_text[legal], name);
        MPI_Finalize();
        exit(EXIT_SUCCESS);
    }
    if (argc != 2)
        refuse("needs one argument, the class: S, W, A or B, as in `%s S`.", name);
    class = *argv[1] ? strchr(classes, argv[1][0]) : NULL;
    if (!class || argv[1][1])
        refuse("there is no class '%.40s': it should be S, W, A or B.", argv[1]);
    if (!is_legal(ranks, legal))
        refuse("cannot run on %d ranks: the number should be %s.", ranks, legal_text[legal]);
    npb_class_letter = *class;
    return (enum npb_class) (class - classes);
}

void npb_limit_ranks(int most)
{
    if (ranks > most)
        refuse("class %c cannot be shared out to %d ranks: it should be %d at most.", npb_class_letter, ranks, most);
}

/* What Linux thinks can be allocated without swapping, in bytes; 0 when it does not say. */
static uint64_t available_memory(void)
{
    char line[128];
    unsigned long long kibibytes = 0;
    FILE *file = fopen("/proc/meminfo", "r");

    if (!file)
        return 0;
    while (!kibibytes && fgets(line, sizeof line, file))
        sscanf(line, "MemAvailable: %llu kB", &kibibytes);
    fclose(file);
    return kibibytes * 1024;
}

void npb_need_memory(size_t bytes)
{
    const double mebibyte = 1 << 20;
    struct rlimit limit;
    uint64_t largest = bytes, sum = bytes, least = available_memory();

    MPI_Allreduce(MPI_IN_PLACE, &largest, 1, MPI_UINT64_T, MPI_MAX, MPI_COMM_WORLD);
    MPI_Allreduce(MPI_IN_PLACE, &sum, 1, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
    MPI_Allreduce(MPI_IN_PLACE, &least, 1, MPI_UINT64_T, MPI_MIN, MPI_COMM_WORLD);
    if (!ranks_share_a_clock()) /* ranks on several machines: who is where is not known, so the rank alone */
        sum = largest;
    if (least && sum > least)
        refuse("class %c with -n %d needs %.0f MiB of memory, but %.0f MiB are available.", npb_class_letter, ranks,
               (double) sum / mebibyte + 0.5, (double) least / mebibyte);
    least = getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY ? UINT64_MAX : limit.rlim_cur;
    MPI_Allreduce(MPI_IN_PLACE, &least, 1, MPI_UINT64_T, MPI_MIN, MPI_COMM_WORLD);
    if (largest > least)
        refuse("class %c with -n %d needs %.0f MiB of memory a rank, but a process may have %.0f MiB (ulimit -v).",
               npb_class_letter, ranks, (double) largest / mebibyte + 0.5, (double) least / mebibyte);
}
