/* plain_extension.c - a shared object that a configuration can name; of the library it needs only
 * the header. fault_test makes a mistake in its code. */
#include <troupe/extension.h>

static int number;

static trp_err
plain_create(trp_system *system, void *arg, void **ret_instance)
{
    (void)system;
    number = *(const int *)arg;
    *ret_instance = &number;
    return TRP_OK;
}

static int forty_two = 42;
static const trp_extension plain = {
    sizeof(trp_extension), "plain", plain_create, NULL, NULL, &forty_two
};

extern const trp_extension *const trp_extension_v1;
__attribute__((visibility("default"))) const trp_extension *const trp_extension_v1 = &plain;

extern void plain_write(int *to);
__attribute__((visibility("default"))) void
plain_write(int *to)
{
    *to = 1;
}
