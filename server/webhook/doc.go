// Package webhook is the client for webhooks that users configure through the API:
// conversion webhooks of CRDs, and mutating and validating admission webhooks.
//
//	convert ──▶ Anonymous ─┐                    ┌ dial: the resolved address must be in a network
//	plugins ──▶ Guard ─────┴─▶ rest.Config with ┤ no proxy, no redirects
//	                                            └ answers: bounded, counted, errors without their text
//
// A user who may write a CRD or a webhook configuration chooses URLs that this server
// calls from its place in the network. Webhooks that the operator configures in files
// (--authentication-token-webhook-config-file, --authorization-webhook-config-file) do
// not pass this package: the operator has chosen their URLs.
//
// # Invariants
//
// A connection is made only to an address that [Networks] allows. The check is made
// on the resolved address, when the socket is connected: a DNS name that changes
// between a check and its use has no effect.
//
// A webhook gets no credentials, except those that the admission configuration file
// names for it. A service account token of the pod that this process runs in is
// never sent.
//
// The text of an answer that is not a review never reaches the client: it would make
// this server a way to read what only it can reach. The server's log has the text.
//
// All answers that are being read, and those that a request of the API still
// needs, together have at most [inFlight] bytes. An answer up to [uncounted] bytes
// does not count: ordinary admission reviews cost nothing here.
package webhook
