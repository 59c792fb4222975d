// Package authentication says who sends a request, and whether they are let in.
//
//	front proxy ─────────────── headers of a proxy that has a certificate (if configured) ─┐
//	TLS connection ──────────── certificates, of --client-ca-file ─────────────────────────┤
//	Authorization: Bearer ─┬─── token file (if configured) ────────────────────────────────┤
//	 (or a WebSocket's     ├─── service accounts: package token ───────────────────────────┼─▶ user, groups
//	  protocol)            ├─── OpenID providers of --authentication-config ───────────────┤
//	                       └─── webhook (if configured) ───────────────────────────────────┘
//	none of these ───────────── anonymous, for the health paths alone ──▶ in, or 401
//
// [Options] are the flags, with kube-apiserver's names. [Options.Build] makes an
// [Authentication] of them, whose Run reads files again when they change.
//
// [Health] is the one thing that nobody needs a role for: to ask whether the server
// is alive.
//
// # Invariants
//
// Credentials that are wrong are an error, never a way to be anonymous.
//
// A certificate is let in only while the chain that it was verified with is
// valid, and only for the authorities that are configured now: what is
// remembered of a verification is never older than either.
//
// A file that cannot be used leaves everything as it was. One that can be used takes
// the place of the former one as a whole: nobody is let in by a mixture.
package authentication
