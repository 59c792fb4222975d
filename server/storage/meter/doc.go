// Package meter counts the keys and bytes of a part of etcd, such as a tenant's, and refuses
// writes that would make it larger than it may be.
//
//	writes ──▶ Meter ──▶ etcd        prev values in the answers say by how much the part has grown
//	             │ sum of the replicas' growth, at PREFIX/-espalier/usage
//	             └ Count: all values are read, now and then
//
// etcd has no count of bytes, and to read a part for each write would cost more than the write.
// So a replica adds up what its own writes change, and adds that to a sum that all replicas share
// when it is a twentieth of what is left: near the limit, with each write. R replicas
// can go beyond a limit by R twentieths of what was left. What the sum misses (keys whose lease ends, a
// replica that is killed, answers that are lost) the next count puts right: one a day, and one
// before the part stays full for longer than a minute.
//
// Writes that are refused must cost little, because clients send them again. Those of keys that must not exist are
// refused by what the replica knows. One a second reads the sum, for what other replicas have deleted.
package meter
