// Command upstream-suite runs the integration tests of k8s.io/apiextensions-apiserver against our server, or against upstream's own for
// comparison, and ends with `upstream integration: passed N of M`. It fails if a function does not pass and suite/reasons.txt does not say why.
package main
