#!/bin/sh
# Runs a command in a network of its own: loopback, and a link that is up, so that a browser does not take itself to be
# offline. As root, on Linux.
set -e
links='ip link set lo up && ip link add here type veth peer name there && ip link set here up && ip link set there up && ip addr add 192.0.2.1/32 dev here'
exec unshare --net sh -c "$links"' && exec "$@"' own-network "$@"
