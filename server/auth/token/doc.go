// Package token issues and verifies the bearer tokens of service accounts, as
// kube-apiserver does, with the same claims.
//
//	POST …/serviceaccounts/NAME/token ── TokenRequest ──▶ Issuer.Issue ──▶ a JWT, signed
//	                                                          ▲
//	                      Keys: files, read again when they change
//	                                                          ▼
//	Authorization: Bearer JWT ── Issuer.AuthenticateToken: signature, issuer, audience, time,
//	                             and what it is bound to, looked up ──▶ user and groups
//	/.well-known/openid-configuration, /openid/v1/jwks ── Issuer.Install ──▶ the public keys
//
// To rotate the key:
//
//  1. Add the new public key to the verification files on all replicas.
//  2. Wait an hour, until no client caches the older OpenID documents. Then replace the
//     signing key.
//  3. Remove the old public key when the last token that it has signed has expired.
//
// # Invariants
//
// Only the signature check is cached, and only for the current keys. Every request
// checks the time, the service account and the secret: a token is invalid when it has
// expired, or when an object that it is bound to is deleted.
//
// A key verifies one algorithm. The header of a token selects among the keys and
// nothing else. Only one encoding of a token is valid.
//
// A stale cache may accept a token for a moment after its object is deleted. It never
// causes a rejection: before a token is rejected, the server reads storage.
package token
