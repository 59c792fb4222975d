// Package archive reads and writes the files that have all objects of a tenant.
//
// A file is compressed with gzip. It has one JSON value in each line:
//
//	{"format":"espalier.dev/tenant","version":1,"server":"v0.9.0","tenant":"shop",…,"spec":{…},"revision":4711}
//	{"resource":"customresourcedefinitions.apiextensions.k8s.io","object":{…}}
//	{"resource":"configmaps","object":{…}}
//	…
//	{"end":{"objects":2,"sha256":"…","expiring":0,"unserved":0}}
//
// The first line is a Header, the last one an End. The checksum is that of all bytes before
// the last line, before compression. If the writer failed, the last line is
//
//	{"failed":"why"}
//
// # Invariants
//
// A Reader that returns io.EOF has seen a whole file: the last line, its count and its checksum
// fit what came before, and nothing follows.
//
// A Reader needs memory for one line, whatever the file has. The length of a line, the number
// of objects and the number of bytes are bounded.
//
// Objects of a resource are in one piece, in the order of namespace and name: so a Reader
// finds objects that are there twice without remembering them. CRDs come first, so that
// what reads the other objects knows their resources.
package archive
