// Package movetest writes to a tenant from several clients while it is moved, reads and watches it, and checks what it
// gets:
//
//   - an acknowledged write is there afterwards, and a write that was refused is not
//   - resource versions grow: with the writes of an object, and from whatever a client has seen to each consistent list
//   - a consistent list has all writes that were acknowledged before it
//   - informers never go back, and have in the end what the server has
//   - an update with a resource version that is not the object's newest is refused
package movetest
