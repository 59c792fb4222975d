// Package trustmanager has no code: its module pins the version of trust-manager.
package trustmanager
