// Package specs runs suites of Ginkgo that others have written, and compares what passes with two servers, spec by spec.
package specs
