/* control_socket.h - the file behind the control socket. */
#ifndef TRPI_NODE_CONTROL_SOCKET_H
#define TRPI_NODE_CONTROL_SOCKET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <troupe/base.h>

/* Make path, replacing a stale one. Errors: TRP_EEXIST (somebody answers there; *ret_pid, 0
 * unknown), TRP_EPERM, TRP_ENOENT (no such directory), TRP_ELIMIT, TRP_EIO. */
trp_err trpi_control_socket_listen(const char *path, int *ret_fd, int *ret_pid);
/* Could a socket be made there now, as far as the file system says? false, with *why: no. */
bool trpi_control_socket_check(const char *path, char *why, size_t why_bytes);
bool trpi_control_is_live(const char *path, int *ret_pid);
/* Who is at the other end, as the kernel says (SO_PEERCRED). false: it does not. */
bool trpi_control_peer(int fd, uint32_t *ret_uid, long *ret_pid);
/* Root, our own user, and members of the file's group. */
bool trpi_control_peer_allowed(int fd, const char *path);

/* Take a descriptor that is kept for one client, where the process has no other one left; -1: it
 * was given away, or there is none now. */
void trpi_control_spare(int *spare_fd);
/* Accept, with that one if need be. -1: nobody, or nothing is free. */
int trpi_control_accept(int listen_fd, int *spare_fd);

#endif
