// Package clusterapi has no code: its module pins the version of cluster-api's core manager, and testdata has what the test applies.
package clusterapi
