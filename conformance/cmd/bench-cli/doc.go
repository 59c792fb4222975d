// Command bench-cli runs `espalier check` and a minimal program around
// upstream's ValidateCustomResourceDefinition over the same folder of real CRDs,
// alternately, and prints the times and the peak memory of both processes as the
// kernel counted them.
package main
