// Package certtest makes certificate authorities and what they sign, for tests.
//
//	ca := certtest.New(t, time.Hour)
//	certificate, key := ca.Client(t, "alice", time.Hour, "developers")
//
// Keys are elliptic and live in memory or in the test's folder.
package certtest
