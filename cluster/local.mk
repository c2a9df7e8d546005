# The cluster room: engine, detector, gossip, downing, shell.
troupe_sources += src/base/phi.c cluster/ident.c cluster/vclock.c cluster/gossip.c \
	cluster/gossip_merge.c cluster/gossip_view.c src/base/pack.c cluster/gossip_codec.c \
	cluster/frame_codec.c cluster/downing.c cluster/membership.c cluster/membership_seed.c \
	cluster/membership_gossip.c cluster/membership_leader.c cluster/membership_events.c \
	cluster/heartbeat.c cluster/shell.c cluster/shell_events.c cluster/cluster.c cluster/cluster_look.c
pkginclude_HEADERS += include/troupe/cluster.h
