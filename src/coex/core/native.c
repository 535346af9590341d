/* Views of Atari screens (the pixelwise maximum of two palette screens, shrunk by exact area averaging), which
 * patches of frames are equal, and how dense frames are under a model of their pixels.
 *
 * An output pixel is the mean of the input rectangle under it. Measured in units of 1/(reduced output size) every
 * overlap is a whole number, so sums are exact and the result does not depend on the compiler or vector width.
 *
 * Most rows of a screen are the same as a step ago. Blending marks the rows that changed, and shrinking leaves an
 * output row as it stands when none of the rows under it did. */

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_SIZE = 256, MAX_TAPS = 16, BLOCK = 16 };

static int gcd(int a, int b) { return b ? gcd(b, a % b) : a; }

static void blend_grey(const uint8_t *a, const uint8_t *b, int width, const uint8_t *lut, uint8_t *out) {
    for (int x = 0; x < width; x += BLOCK) {
        int end = x + BLOCK < width ? x + BLOCK : width;
        if (memcmp(a + x, b + x, (size_t)(end - x)) == 0) {
            for (int i = x; i < end; i++) out[i] = lut[a[i]];
            continue;
        }
        for (int i = x; i < end; i++) out[i] = lut[a[i]] > lut[b[i]] ? lut[a[i]] : lut[b[i]];
    }
}

static void blend_rgb(const uint8_t *a, const uint8_t *b, int width, const uint8_t *lut, uint8_t *out) {
    for (int x = 0; x < width; x++, out += 3) {
        const uint8_t *p = lut + 3 * a[x], *q = lut + 3 * b[x];
        for (int c = 0; c < 3; c++) out[c] = p[c] > q[c] ? p[c] : q[c];
    }
}

/* The brighter of two screens in every channel, through a table of 256 greys or 256 RGB triples, for changed rows. */
void coex_blend(const uint8_t *a, const uint8_t *b, int height, int width, const uint8_t *changed, const uint8_t *lut,
                int channels, uint8_t *out) {
    for (int y = 0; y < height; y++, a += width, b += width, out += width * channels)
        if (changed[y]) (channels == 1 ? blend_grey : blend_rgb)(a, b, width, lut, out);
}

/* Marks the rows in which either screen differs from the last one, and remembers the new ones. */
void coex_changed(const uint8_t *a, const uint8_t *b, uint8_t *last_a, uint8_t *last_b, int height, int width,
                  uint8_t *changed) {
    for (int y = 0; y < height; y++) {
        size_t at = (size_t)y * (size_t)width, row = (size_t)width;
        changed[y] = memcmp(a + at, last_a + at, row) || memcmp(b + at, last_b + at, row);
        if (!changed[y]) continue;
        memcpy(last_a + at, a + at, row);
        memcpy(last_b + at, b + at, row);
    }
}

/* Output o averages inputs from `first` on with these weights (the spare ones are 0). */
typedef struct { int first, weight[MAX_TAPS]; } Taps;

static int make_taps(Taps *taps, int size, int out_size) {
    int unit = gcd(size, out_size), in = size / unit, out = out_size / unit;
    for (int o = 0; o < out_size; o++) {
        int start = o * in, end = start + in;
        taps[o].first = start / out;
        for (int k = 0; k < MAX_TAPS; k++) {
            int left = (taps[o].first + k) * out, right = left + out;
            int overlap = (right < end ? right : end) - (left > start ? left : start);
            taps[o].weight[k] = overlap > 0 ? overlap : 0;
        }
    }
    return in; /* what the weights of one output sum to */
}

/* Sums of weighted rows stay below 2^16: coex_shrink refuses heights for which they would not. */
static int sum_rows(uint16_t *restrict sums, const uint8_t *src, int count, const Taps *taps, const uint8_t *changed) {
    int any = 0;
    for (int k = 0; k < MAX_TAPS && taps->weight[k]; k++) any |= changed[taps->first + k];
    if (!any) return 0;
    memset(sums, 0, sizeof(uint16_t) * (size_t)count);
    for (int k = 0; k < MAX_TAPS && taps->weight[k]; k++) {
        const uint8_t *restrict row = src + (taps->first + k) * count;
        uint16_t weight = (uint16_t)taps->weight[k];
        for (int i = 0; i < count; i++) sums[i] = (uint16_t)(sums[i] + weight * row[i]);
    }
    return 1;
}

/* src (height, width, channels) -> out (out_height, out_width), pixels `stride` bytes apart. Returns 1 if it can't. */
int coex_shrink(const uint8_t *src, int height, int width, int channels, const uint8_t *changed, uint8_t *out,
                int out_height, int out_width, int stride) {
    Taps rows[MAX_SIZE], columns[MAX_SIZE];
    uint16_t sums[3 * (MAX_SIZE + MAX_TAPS)] = {0};
    if (width > MAX_SIZE || height > MAX_SIZE || channels > 3 || out_width > width || out_height > height ||
        height > out_height * (MAX_TAPS - 2) || width > out_width * (MAX_TAPS - 2))
        return 1;
    int row_total = make_taps(rows, height, out_height), column_total = make_taps(columns, width, out_width);
    int count = width * channels, taps = width / out_width + 2;
    float scale = 1.0f / ((float)row_total * (float)column_total);
    for (int o = 0; o < out_height; o++, out += out_width * stride) {
        if (!sum_rows(sums, src, count, &rows[o], changed)) continue;
        if (column_total == 1 && stride == channels) { /* the width is kept */
            for (int i = 0; i < count; i++) out[i] = (uint8_t)((float)sums[i] * scale + 0.5f);
            continue;
        }
        for (int x = 0; x < out_width; x++) {
            const uint16_t *from = sums + columns[x].first * channels;
            for (int c = 0; c < channels; c++) {
                int total = 0;
                for (int k = 0; k < taps; k++) total += columns[x].weight[k] * from[k * channels + c];
                out[x * stride + c] = (uint8_t)((float)total * scale + 0.5f);
            }
        }
    }
    return 0;
}

/* Moves a stack of four frames (pixels, 4) on by one and repeats the newest, which shrinking then overwrites. */
void coex_push(uint8_t *stack, int pixels) {
    for (int i = 0; i < pixels; i++, stack += 4) {
        stack[0] = stack[1];
        stack[1] = stack[2];
        stack[2] = stack[3];
    }
}

/* Hashes start at 1, not at the first word: the order of the first two would not matter. */
static uint64_t mix(uint64_t hash, uint64_t word) {
    hash = (hash ^ word) * 0x9E3779B97F4A7C15u;
    return hash ^ (hash >> 32);
}

/* Hashes of a row of 8x8 blocks of RGB pixels: three 8-byte words from each of 8 lines. */
static void hash_blocks(const uint8_t *line, int side, uint64_t *hashes) {
    for (int b = 0; b < side / 8; b++) hashes[b] = 1;
    for (int y = 0; y < 8; y++)
        for (int b = 0; b < side / 8; b++)
            for (int k = 0; k < 3; k++, line += 8) {
                uint64_t word;
                memcpy(&word, line, 8);
                hashes[b] = mix(hashes[b], word);
            }
}

typedef struct { uint64_t key; int32_t number; } Slot; /* number 0: empty */

/* Numbers the distinct 16x16 patches, 8 pixels apart, of (count, side, side, 3) frames, from 0 in order of appearance.
 * index (count, side/8 - 1, side/8 - 1) receives each patch's number, `first` the place in `index` where a number
 * appears first. Returns how many there are, or -1 if that is more than `limit`. Patches are compared by 64-bit hash. */
int coex_distinct(const uint8_t *frames, int count, int side, int limit, int32_t *index, int32_t *first) {
    uint64_t rows[2][MAX_SIZE / 8];
    size_t size = 1024;
    int blocks = side / 8, place = 0, found = 0;
    if (side % 8 || side > MAX_SIZE) return -1;
    while (size < 2 * (size_t)limit) size *= 2;
    Slot *table = calloc(size, sizeof(Slot));
    if (!table) return -1;
    for (int y = 0; y < count * blocks && found <= limit; y++) {
        uint64_t *above = rows[(y + 1) % 2], *below = rows[y % 2];
        hash_blocks(frames + (size_t)y * 8 * (size_t)side * 3, side, below);
        if (y % blocks == 0) continue; /* a frame's first row of blocks has none above it */
        for (int x = 0; x + 1 < blocks && found <= limit; x++, place++) {
            uint64_t key = mix(mix(mix(mix(1, above[x]), above[x + 1]), below[x]), below[x + 1]);
            Slot *slot = table + (key & (size - 1));
            while (slot->number && slot->key != key) slot = slot + 1 < table + size ? slot + 1 : table;
            if (!slot->number) {
                if (found < limit) first[found] = place;
                *slot = (Slot){key, ++found};
            }
            index[place] = slot->number - 1;
        }
    }
    free(table);
    return found <= limit ? found : -1;
}

/* A node of a context tree over at most 8 symbols; child 0: there is none. bonuses/cts.py says what it is for. */
typedef struct { double stay; uint32_t total, spare, counts[8]; int32_t child[8]; } Node;

/* Updates a tree with a symbol in a context of `depth` symbols, at its update number `time`: the probability before. */
static double learn_symbol(Node *nodes, int root, int *used, const uint8_t *context, int depth, int symbols,
                           int symbol, double time, double *after) {
    Node *path[5];
    double own[5], mixed = 0, rate = 1.0 / (time + 1.0);
    path[0] = nodes + root;
    for (int d = 0; d < depth; d++) {
        int32_t *child = &path[d]->child[context[d]];
        if (!*child) {
            nodes[*used] = (Node){.stay = 0.5};
            *child = (*used)++;
        }
        path[d + 1] = nodes + *child;
    }
    for (int d = 0; d <= depth; d++) own[d] = (path[d]->counts[symbol] + 1.0 / symbols) / (path[d]->total + 1.0);
    for (int d = depth; d >= 0; d--) {
        Node *node = path[d];
        double below = mixed; /* the child's probability, before it learned */
        mixed = d == depth ? own[d] : node->stay * own[d] + (1.0 - node->stay) * below;
        if (d < depth) {
            double stay = own[d] * node->stay, split = below * (1.0 - node->stay);
            node->stay = ((1.0 - rate) * stay + rate * split) / (stay + split);
        }
        node->counts[symbol]++;
        node->total++;
        own[d] = (node->counts[symbol] + 1.0 / symbols) / (node->total + 1.0);
    }
    *after = own[depth];
    for (int d = depth - 1; d >= 0; d--) *after = path[d]->stay * own[d] + (1.0 - path[d]->stay) * *after;
    return mixed;
}

/* Learns (count, height, width) frames of symbols one after the other, `time` of them having been learned before, with
 * a tree for each pixel: nodes 1 to height*width are the roots. logs (count, 2) receives the logarithm of each frame's
 * probability before it is learned and after. Returns how many frames there were enough nodes for. */
int coex_cts(const uint8_t *frames, int count, int height, int width, int depth, int symbols, Node *nodes, int capacity,
             int *used, int64_t time, double *logs) {
    int pixels = height * width;
    for (int f = 0; f < count; f++, frames += pixels, logs += 2) {
        if (*used + depth * pixels > capacity) return f;
        double before = 0, after = 0;
        for (int i = 0; i < pixels; i++) {
            int x = i % width, top = i < width, left = x == 0, right = x + 1 == width;
            uint8_t context[4] = {left ? 0 : frames[i - 1], top ? 0 : frames[i - width],
                                  top || left ? 0 : frames[i - width - 1], top || right ? 0 : frames[i - width + 1]};
            double probability_after;
            before += log(learn_symbol(nodes, i + 1, used, context, depth, symbols, frames[i], (double)(time + f + 1),
                                       &probability_after));
            after += log(probability_after);
        }
        logs[0] = before;
        logs[1] = after;
    }
    return count;
}
