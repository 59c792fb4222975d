// Package signers authorizes what users do in the name of a signer of certificates: to
// approve requests, to sign them, and to attest trust bundles.
//
//	verb, "example.com/signer" ─▶ authorizer: signers "example.com/signer", then "example.com/*"
//
// # Invariants
//
// A user needs the verb on the signer, or on all signers of its domain. An error of the
// authorizer denies.
package signers
