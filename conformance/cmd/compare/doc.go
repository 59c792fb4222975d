// Command compare gives the same CRDs and custom resources to espalier, kubeconform, kubectl-validate and crdify, and prints what each of
// them notices of what upstream's code refuses, and the time and memory that each takes.
//
//	conformance/mistakes ─▶ files ─▶ each tool ─▶ table of what it notices, evaluated by upstream's code
//	corpus ─▶ 100 CRDs ─▶ 1,000 generated objects ─▶ each tool in turns ─▶ time, peak memory, and what it notices
//
// kubeconform validates with JSON schemas: CRDs are converted as its script openapi2jsonschema does. It gets no schemas of built-in kinds, nor
// does kubectl-validate get a cluster.
//
// The tools are built in a temporary folder. ESPALIER_COMPARE names one to keep them in, so that another run need not link them.
package main
