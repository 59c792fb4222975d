// Package deploy holds everything to run the server in production (an image, a chart
// and its manifests, a systemd unit, alerts and a dashboard), and tests that compare
// all of it with a running server.
//
//	helm/espalier ──render──▶ kubernetes/server.yaml ──┐
//	systemd/espalier.service ──────────────────────────┼─▶ arguments ──▶ a real `espalier serve` on a real etcd
//	Dockerfile ────────────────────────────────────────┘                        │ /metrics
//	prometheus/rules.yaml, grafana/dashboard.json ──── every query ─────────────┘
//
// # Invariants
//
//   - There is one source: the manifests are the chart, rendered; the rules and the
//     dashboard in the chart are copies. `go test -write` writes them, a test compares.
//   - A flag that is named here is a flag that `espalier serve` has.
//   - A metric or a label that is named here is one that a running server exports.
//
// There is no code to import.
package deploy
