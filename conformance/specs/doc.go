// Package specs runs Ginkgo suites of other projects, and compares what passes with two servers, spec by spec.
package specs
