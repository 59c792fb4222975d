// Package doctor looks for what is wrong with a running API server, and says what to do.
//
//	kubeconfig ── TLS handshake, Date ──▶ connection: certificates, clock
//	kubectl ──── /readyz, objects ──────▶ health, CRDs, webhooks, API services, quotas, leases
//	      └───── /metrics ──────────────▶ etcd, certificates of the server, calls of webhooks, tenants
//
// It works with any Kubernetes API server; some metrics are of Espalier alone.
//
// Invariants
//
//   - It changes nothing: all requests are reads. Handshakes with webhooks send no request.
//   - What it may not read, or cannot, is reported as not checked. It is no finding, and never passes for healthy.
//   - Texts of the server have one line and a bounded length in a report.
package doctor
