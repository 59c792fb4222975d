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
// Where the storage version changes, objects are converted as the strategy None does or by inferred rules. With rules,
// fields are elsewhere in the new version: the object is written in it, and read in the old one.
//
// The test has flags for the numbers of changes and objects; `make plan-truth` has the large ones.
package impact
