// Package authentication authenticates requests.
//
//	front proxy ─────────────── headers of a proxy that has a certificate (if configured) ─┐
//	TLS connection ──────────── certificates, of --client-ca-file ─────────────────────────┤
//	Authorization: Bearer ─┬─── token file (if configured) ────────────────────────────────┤
//	 (or a WebSocket's     ├─── service accounts: package token ───────────────────────────┼─▶ user, groups
//	  protocol)            ├─── OpenID providers of --authentication-config ───────────────┤
//	                       └─── webhook (if configured) ───────────────────────────────────┘
//	none of these ───────────── anonymous, for the health paths alone; 401 otherwise
//
// [Options] are the flags, with kube-apiserver's names. [Options.Build] makes an
// [Authentication] of them, whose Run reads files again when they change.
//
// [Health] authorizes requests to the health paths: they need no role.
//
// # Invariants
//
// Wrong credentials are an error. They never make a request anonymous.
//
// A certificate authenticates only while the chain that verified it is valid, and only
// by the CAs that are configured now. Cached verifications follow both.
//
// An invalid file changes nothing. A valid file replaces the former one as a whole: no
// request is authenticated by a mixture of both.
package authentication
