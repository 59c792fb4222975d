// Package load runs the clients of one run against the replicas, and records what they send and receive.
//
//	Setup(environment) ─▶ Site: CRDs, webhooks ─▶ Run(plan): clients, watches, informers, CRD changes ─▶ history.History
//
// A site is used for many runs, each with namespaces of its own. The seed of a run
// decides what each client asks for; only the timing is the machine's. Load knows
// nothing of faults but when they begin and end, and nothing of checkers: see
// conformance/robustness/history.
package load
