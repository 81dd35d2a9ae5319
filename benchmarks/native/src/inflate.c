/* A raw deflate stream, unpacked piece by piece with ISA-L; and the processor time of this process. */
#include <isa-l.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>

struct inflate_state *inflate_begin(void)
{
    struct inflate_state *state = malloc(sizeof *state);
    if (state != NULL)
        isal_inflate_init(state);
    return state;
}

void inflate_give(struct inflate_state *state, uint8_t *packed, uint32_t size)
{
    state->next_in = packed;
    state->avail_in = size;
}

/* Returns how many bytes were put into `piece`, or -1 for damaged data. */
int64_t inflate_take(struct inflate_state *state, uint8_t *piece, uint32_t size)
{
    state->next_out = piece;
    state->avail_out = size;
    return isal_inflate(state) == ISAL_DECOMP_OK ? (int64_t)(size - state->avail_out) : -1;
}

/* Whether there is nothing left to unpack of what was given. */
int inflate_is_dry(const struct inflate_state *state, uint32_t taken, uint32_t size)
{
    return state->block_state == ISAL_BLOCK_FINISH || (state->avail_in == 0 && taken < size);
}

void inflate_end(struct inflate_state *state)
{
    free(state);
}

double processor_seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}
