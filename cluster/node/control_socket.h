/* control_socket.h - the file of the control socket. */
#ifndef TRPI_NODE_CONTROL_SOCKET_H
#define TRPI_NODE_CONTROL_SOCKET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <troupe/base.h>

/* Make path, replacing a stale one. Errors: TRP_EEXIST (a live node is there; *ret_pid, 0 unknown),
 * TRP_EPERM, TRP_ENOENT (no such directory), TRP_ELIMIT, TRP_EIO. */
trp_err trpi_control_socket_listen(const char *path, int *ret_fd, int *ret_pid);
/* Check by the file system whether a socket could be made there now; else *why. Errors: TRP_ECONFIG
 * (its directory is none, which no restart mends), TRP_EPERM. */
trp_err trpi_control_socket_check(const char *path, char *why, size_t why_bytes);
bool trpi_control_is_live(const char *path, int *ret_pid);
/* Give the user and process at the other end (SO_PEERCRED). false: the kernel does not know. */
bool trpi_control_peer(int fd, uint32_t *ret_uid, long *ret_pid);
/* May this user give commands: root, our own user, and members of the file's group? */
bool trpi_control_peer_allowed(int fd, const char *path);

/* Reserve a descriptor for one client, for the time when the process has no other one left; -1: it
 * is in use, or none is free now. */
void trpi_control_spare(int *spare_fd);
/* Accept a client, with the reserved descriptor if need be. -1: none waits, or none is free. */
int trpi_control_accept(int listen_fd, int *spare_fd);

#endif
