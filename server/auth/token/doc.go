// Package token issues and verifies the bearer tokens of service accounts, as
// kube-apiserver does: the claims, their names and what they mean are the same.
//
//	POST …/serviceaccounts/NAME/token ── TokenRequest ──▶ Issuer.Issue ──▶ a JWT, signed
//	                                                          ▲
//	                      Keys: files, read again when they change
//	                                                          ▼
//	Authorization: Bearer JWT ── Issuer.AuthenticateToken: signature, issuer, audience, time,
//	                             and what it is bound to, looked up ──▶ user and groups
//	/.well-known/openid-configuration, /openid/v1/jwks ── Issuer.Install ──▶ the public keys
//
// To rotate: add the public half of the new key to the files that verify, on all
// servers; an hour later, when nobody remembers the older documents, replace the key
// that signs; remove the public half of the old one when the last token that it has
// signed has expired.
//
// # Invariants
//
// Only the signature is remembered, and only for the keys that are there now. The
// time, the service account and the secret are looked at for every request: a token
// ends when it expires, and when what it is bound to goes.
//
// A key verifies one algorithm, its own; what a token says of itself chooses among
// the keys and nothing else. A token has one spelling.
//
// What is cached may let a request in a moment too late. It never turns one away: a
// refusal is that of the live store.
package token
