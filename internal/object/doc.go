// Package object holds an object of the API as its bytes.
//
// An [Object] is canonical JSON and what has been read of it. It has the
// interfaces that k8s.io/apiserver's registry, storage and watch cache ask for,
// so that these carry bytes from the socket to etcd and back. Only the metadata is
// ever decoded, and only when it changes.
//
//	canonical JSON ── FromJSON ──▶ *Object ── SetLabels, SetMember, … ──▶ AppendJSON ──▶ canonical JSON
//	                  (one scan     │
//	                  for places)   └── GetName, GetLabels, Lookup, … (read from the bytes)
//
// # Invariants
//
// The bytes given to FromJSON are kept and never written to; strings that are
// returned may be part of them. Reading changes nothing, so that objects may be
// shared without locks. Objects in the watch cache are shared by all requests:
// code that changes one works on DeepCopyObject's result, which shares the bytes
// and costs one small allocation.
//
// Changed metadata is written as upstream writes it, byte by byte. Every loaded
// object gets a resourceVersion; it is kept outside the bytes, and inserted when
// they are written.
package object
