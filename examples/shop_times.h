/* shop_times.h - for producer_consumer.c: how long an item takes to build. */
/* 1 to 5 ms for the first type, 1 to 25 for the last one. */
static uint32_t
build_ms(uint32_t *seed, uint32_t item)
{
    return 1 + article_dice(seed, 5 * (item + 1));
}

/* Of many items each type takes its own longest time. */
static int
times_are_wrong(void)
{
    int wrong = 0;
    for (uint32_t item = 0, seed = 1; item < TYPES; item++) {
        uint32_t longest = 0;
        for (int i = 0; i < 1000; i++) {
            uint32_t ms = build_ms(&seed, item);
            longest = ms > longest ? ms : longest;
        }
        wrong += longest != 5 * (item + 1);
    }
    return wrong;
}
