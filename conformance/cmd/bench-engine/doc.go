// Command bench-engine measures Espalier beside the reference implementation and beside a JSON tokenizer, in one process.
//
// First it normalizes objects of real CRDs, bytes to bytes. Every object is measured in two forms: canonical, which
// needs no change, and as a client sends it (other order of keys, unknown fields, defaults missing). The three sides
// take turns in short rounds and the best round of each counts, so that noise of the machine hits all of them alike.
//
// Then it admits valid objects: everything between the bytes of a request and the bytes for storage, validation included,
// first of schemas without rules, then with them.
//
// Last it compiles the whole corpus with both, without rules and with them, one after the other, and measures time and retained heap.
package main
