#!/bin/sh
# Writes the secrets of compose.yaml into ./secrets, once. They are for the user 10001, who runs the containers: root
# alone can give them to it. Each container is given its own.
set -eu
cd "$(dirname "$0")"
umask 077
mkdir secrets
# NATS reads a variable's value as its own file: what begins with a digit would be a number.
password() { echo "p$(openssl rand -hex 24)"; }
for name in operator metrics caller bus-directory bus-fra1 bus-iad1; do password > "secrets/$name"; done
for name in directory fra1 iad1; do
  printf '%s_PASSWORD=%s\n' "$(echo "$name" | tr a-z A-Z)" "$(cat "secrets/bus-$name")"
done > secrets/nats.env
openssl genpkey -algorithm ed25519 -out secrets/directory.pem
openssl pkey -in secrets/directory.pem -pubout -out secrets/directory.pub.pem
chown -R 10001:10001 secrets
