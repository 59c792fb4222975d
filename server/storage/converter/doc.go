// Package converter brings custom resources from one version into another, as their
// definition says: by changing apiVersion alone, or by asking a webhook.
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
// changed. All that need it share calls of at most 500 objects or 4 MiB, each of
// which ends with the caller's context or after 30 s. Of the metadata, a webhook can
// change labels and annotations and nothing else. Nothing is locked during a call: a
// webhook that hangs is felt by those who need it.
//
// What the webhook answers is bounded for each object, in sum over a list, and over
// all calls of the process ([webhook.Client]). Calls have no credentials.
package converter
