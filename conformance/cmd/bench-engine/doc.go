// Command bench-engine measures Espalier beside the reference implementation and beside a JSON tokenizer, in one process.
//
// First it normalizes objects of real CRDs, bytes to bytes. Every object is measured in two forms: canonical, which
// needs no change, and as a client sends it (other order of keys, unknown fields, defaults missing). The three sides
// take turns in short rounds and the median of the rounds counts, so that noise of the machine hits all of them alike.
//
// Then it compiles the whole corpus with both, one after the other, and measures time and retained heap.
package main
