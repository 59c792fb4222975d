// Package object holds an object of the API as its bytes.
//
// An [Object] is canonical JSON and what has been read of it. It has the
// interfaces that k8s.io/apiserver's registry, storage and watch cache ask for,
// so that these carry bytes from the socket to etcd and back: nothing but the
// metadata is ever decoded, and that only when somebody changes it.
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
// whoever changes one works on DeepCopyObject's result, which shares the bytes
// and costs one small allocation.
//
// Metadata that is written anew is what upstream writes for it, byte by byte.
// A resourceVersion, which is set on all that is loaded, is kept beside the
// bytes and put in its place among them when they are written.
package object
