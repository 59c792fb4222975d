// Package prometheusoperator has no code: its module pins the version of prometheus-operator, and testdata has what the test applies.
package prometheusoperator
