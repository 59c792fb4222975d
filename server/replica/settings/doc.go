// Package settings compares the settings of the replicas of one server.
//
// Every replica publishes what others must know of its settings in etcd
// (package replica). A replica that starts compares its own with those of the
// replicas that run:
//
//	mine, theirs ──▶ Compare ─┬▶ conflicts    the replica must not start
//	                          └▶ differences  it starts, and logs a warning
//
// # Rules
//
// What one replica does must hold on the others. Each must accept the tokens
// that the other signs, decrypt what the other writes, and ask the same
// authorizers. A replica that starts must protect data at least as well as those
// that run: it may have more admission plugins, not fewer. So a rolling restart
// can turn a protection on, add a key, and then use it. The other direction needs
// --allow-settings-mismatch.
//
// # Invariants
//
// No secret is published. Of the keys of tokens it is the identifier, which every
// token has too; of the keys of encryption it is an HMAC under the key itself,
// which tells two keys apart and nothing more. Files that may hold secrets are
// not compared.
package settings
