/* age.c - see age.h. */
#include "cluster/engine/age.h"

#include "base/assert.h"

bool
trpi_age_counts(const trpi_aged *member)
{
    return member->up_number != 0 &&
           (member->status == TRP_MEMBER_UP || member->status == TRP_MEMBER_LEAVING);
}

int
trpi_age_compare(const trpi_aged *a, const trpi_aged *b)
{
    trpi_assert(a->up_number != 0);
    trpi_assert(b->up_number != 0);
    if (a->up_number != b->up_number) {
        return a->up_number < b->up_number ? -1 : 1;
    }
    return trpi_node_id_compare(&a->id, &b->id);
}

uint32_t
trpi_oldest(const trpi_aged *members, uint32_t count)
{
    uint32_t oldest = TRPI_AGE_NONE;
    for (uint32_t i = 0; i < count; i++) {
        if (trpi_age_counts(&members[i]) &&
            (oldest == TRPI_AGE_NONE || trpi_age_compare(&members[i], &members[oldest]) < 0)) {
            oldest = i;
        }
    }
    return oldest;
}

bool
trpi_aged_of(const trp_member *member, trpi_aged *ret_aged)
{
    trpi_aged aged = { .up_number = member->up_number, .status = member->status };
    if (trpi_address_parse(member->address, &aged.id.address, NULL, NULL) != TRP_OK) {
        return false;
    }
    aged.id.uid = member->uid;
    *ret_aged = aged;
    return true;
}
