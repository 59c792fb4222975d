// Package certmanager has no code: its module pins the version of cert-manager's controller, webhook and cainjector, and testdata has what the test applies.
package certmanager
