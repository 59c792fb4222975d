// Package converter converts custom resources between versions by the strategy of their
// CRD: None changes only apiVersion, Webhook calls a webhook.
//
//	objects ─┬─ in the version asked for ──────────────────────────────────┬─▶ objects
//	         ├─ None: apiVersion ────────────────────────────────┬─▶ prune ─┤
//	         └─ Webhook: review ─▶ POST ─▶ answer ─▶ checks ─────┘          │
//
// The bodies of objects are not decoded: a review is their JSON with a frame
// around it, and the answer is indexed and cut into pieces.
//
// # Invariants
//
// Objects come back in the order in which they were given; those given are never
// changed. All objects that need conversion share calls of at most 500 objects or 4 MiB.
// Each call ends with the caller's context or after 30 s. A webhook can change the labels
// and annotations of the metadata and nothing else. No lock is held during a call: a
// webhook that hangs delays only requests that need it.
//
// What the webhook answers is bounded for each object, in sum over a list, and over
// all calls of the process ([webhook.Client]). Calls have no credentials.
package converter
