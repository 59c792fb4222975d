// Command espalier checks CRDs and custom resources as an API server does, without
// a cluster. Its code is in cmd/internal/cli.
package main
