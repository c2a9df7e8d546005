/* frame.h - the frames between a client and a receptionist, and between receptionists
 * (docs/wire.md, channels 9 and 10). */
#ifndef TRPI_REMOTE_CLIENT_FRAME_H
#define TRPI_REMOTE_CLIENT_FRAME_H

#include "base/address.h"
#include "base/buffer.h"

#define TRPI_CLIENT_CONTACTS_MAX 8        /* in a frame */
#define TRPI_CLIENT_NAME_BYTES_MAX 1024   /* of a topic; of a service less */
#define TRPI_CLIENT_WHY_BYTES 160         /* of a sentence, with its NUL */
#define TRPI_CLIENT_FRAME_BYTES_MAX 16384 /* of a frame */

/* Words of channel 9, from a client to a receptionist. Numbers of the wire. */
enum trpi_client_word {
    TRPI_CLIENT_HELLO = 1, /* take me; also while taken: give me contacts */
    TRPI_CLIENT_PING = 2,
    TRPI_CLIENT_OPEN = 3,  /* number, name, kind: let me reach that service */
    TRPI_CLIENT_CLOSE = 4, /* number */
    TRPI_CLIENT_ENDED = 5, /* slot, generation: an actor of mine that had tunnels */
    TRPI_CLIENT_BYE = 6
};
/* Words of channel 10, from a receptionist: to a client, and from 20 on to another receptionist. */
enum trpi_receptionist_word {
    TRPI_RECEPTIONIST_WELCOME = 1, /* contacts */
    TRPI_RECEPTIONIST_PONG = 2,
    TRPI_RECEPTIONIST_OPENED = 3,   /* number; the doors for tells and for asks */
    TRPI_RECEPTIONIST_REFUSED = 4,  /* number, 0: the client itself; err, why */
    TRPI_RECEPTIONIST_MOVE = 5,     /* contacts: this node leaves */
    TRPI_RECEPTIONIST_CLOSED = 6,   /* number: its actor has ended */
    TRPI_RECEPTIONIST_STRANGER = 7, /* say HELLO first: this incarnation does not know you */
    TRPI_RECEPTIONIST_FIND = 20,    /* number, name, kind */
    TRPI_RECEPTIONIST_FOUND = 21,   /* number, slot, generation */
    TRPI_RECEPTIONIST_ABSENT = 22   /* number */
};

/* The things that have names. Numbers of the wire. */
enum trpi_client_kind {
    TRPI_CLIENT_SERVICE = 0, /* one actor that is registered under it */
    TRPI_CLIENT_ALL = 1,     /* all of them, on all nodes */
    TRPI_CLIENT_TOPIC = 2
};

typedef struct trpi_client_frame {
    uint32_t word;
    uint32_t client; /* the client's number within its process, from 1 on */
    uint64_t number; /* of a service: the client's; of a search: the receptionist's */
    uint32_t slot, generation;
    uint32_t ask_slot, ask_generation;
    uint32_t kind; /* of trpi_client_kind */
    uint32_t err;  /* trp_err */
    char name[TRPI_CLIENT_NAME_BYTES_MAX + 1];
    char why[TRPI_CLIENT_WHY_BYTES];
    uint32_t contacts_count;
    trpi_address contacts[TRPI_CLIENT_CONTACTS_MAX];
} trpi_client_frame;

/* Append the bytes of a frame. Errors: TRP_ENOMEM, TRP_ELIMIT. */
trp_err trpi_client_frame_encode(const trpi_client_frame *frame, trpi_buffer *out);
/* Unknown keys are skipped. Errors: TRP_EDATA, TRP_EMSGSIZE, TRP_ENOMEM. */
trp_err trpi_client_frame_decode(const uint8_t *bytes, size_t count, trpi_client_frame *ret_frame);

#endif
