// Command bench-start times how soon a server can be used: espaliertest.Start with
// one and with a hundred CRDs, upstream's in-process test server with the same
// CRDs served, and `espalier dev` up to the first answer to kubectl. It then runs
// two hundred test servers at a time in one process, and says what each takes.
//
//	bench-start ─┬▶ bench-start -child espalier  ┐ a process of its own for
//	             ├▶ bench-start -child upstream  ┘ every measurement, in turns
//	             ├▶ espalier dev, kubectl get crd
//	             └▶ bench-start -child servers
//
// A start is over when every CRD is established. From there it is timed on to a list of
// the objects of each of them.
package main
