// Command sample is a controller as kubebuilder lays it out, only small: it uses each thing that a controller needs of a server.
//
//	Trellis v1alpha1 ⇄ v1    converted by its webhook
//	   │ defaulted, validated by its webhooks
//	   ▼
//	reconcile ──server-side apply──▶ a ConfigMap for each row, owned by the Trellis
//	   └──────▶ status: conditions, rows; a finalizer that leaves an event behind
//
// One of several replicas leads. Metrics are served over TLS to whom the server says that they may read them.
package main
