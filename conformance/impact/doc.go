// Package impact compares what crd/impact says about changes of CRDs with what a server does.
//
//	schema ─ search.Edit ─▶ old and new CRD, of one or two versions
//	objects ─ POST ─▶ server with the old CRD ─▶ etcd ─▶ bytes ─▶ crd/impact: an outcome for each object
//	                    │ PUT the new CRD                              ║ must agree
//	                    ▼                                              ║
//	         GET, PUT and POST with dryRun, GET in the storage version ╝
//
// What the old CRD refuses as well does not count: each request is also made before the change.
//
// The test has flags for the numbers of changes and objects; `make plan-truth` has the large ones.
package impact
