// Package series drops metric series of resources that are gone.
//
// The metrics of k8s.io/apiserver have a series for each resource and verb that was ever
// used: some 40 KB for a resource that is used in all ways. The variables that hold them are
// not exported. The registry of metrics hands one out when another metric of the same
// name is registered:
//
//	gather ──▶ families with the label "resource" ──▶ register again: AlreadyRegisteredError ──▶ the vector ──▶ delete the series
//
// A resource that is used again begins with new series. Prometheus takes that for a restart.
package series
