package plan

import (
	"encoding/binary"
	"hash/maphash"
	"sync"
	"unique"
	"unsafe"
)

// table holds every node of the process, by content.
var table = struct {
	sync.Mutex
	nodes map[uint32]*Node
	count int
	seed  maphash.Seed
}{nodes: map[uint32]*Node{}, seed: maphash.MakeSeed()}

// Count returns the number of distinct nodes that are in use in the process.
func Count() int {
	table.Lock()
	defer table.Unlock()
	return table.count
}

// Builder makes nodes. It holds on to those it has made until Close, so that
// they are not released before something refers to them.
type Builder struct {
	held []*Node
	key  []byte
}

// Node returns the shared node with n's content; n itself if it is the first.
// Everything n refers to must come from this builder.
func (b *Builder) Node(n *Node) *Node {
	b.key = n.appendKey(b.key[:0])
	n.hash = uint32(maphash.Bytes(table.seed, b.key))
	table.Lock()
	defer table.Unlock()
	for have := table.nodes[n.hash]; have != nil; have = have.chain {
		if string(have.appendKey(nil)) == string(b.key) {
			have.refs++
			b.held = append(b.held, have)
			return have
		}
	}
	n.share()
	for c := range n.children {
		c.refs++
	}
	n.refs = 1
	n.chain = table.nodes[n.hash]
	table.nodes[n.hash] = n
	table.count++
	b.held = append(b.held, n)
	return n
}

// Hold counts one more user of n; Release ends it.
func Hold(n *Node) {
	table.Lock()
	n.refs++
	table.Unlock()
}

// Release ends a Hold. Nodes that nobody uses any more leave the table.
func Release(n *Node) {
	table.Lock()
	defer table.Unlock()
	release(n)
}

// Close lets go of the nodes that the builder has made.
func (b *Builder) Close() {
	table.Lock()
	defer table.Unlock()
	for _, n := range b.held {
		release(n)
	}
	b.held = nil
}

// release takes an explicit stack, because plans can be thousands deep.
func release(n *Node) {
	stack := []*Node{n}
	for len(stack) > 0 {
		n := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		if n.refs--; n.refs > 0 {
			continue
		}
		unlink(n)
		for c := range n.children {
			stack = append(stack, c)
		}
	}
}

func unlink(n *Node) {
	table.count--
	at := table.nodes[n.hash]
	if at == n {
		if n.chain == nil {
			delete(table.nodes, n.hash)
		} else {
			table.nodes[n.hash] = n.chain
		}
		return
	}
	for at.chain != n {
		at = at.chain
	}
	at.chain = n.chain
}

// children ranges over the nodes that n refers to, once for each reference.
func (n *Node) children(yield func(*Node) bool) {
	if n.Items != nil && !yield(n.Items) {
		return
	}
	if n.Additional != nil && !yield(n.Additional) {
		return
	}
	if n.Props != nil {
		for i := range n.Props.list {
			if !yield(n.Props.list[i].Node) {
				return
			}
		}
	}
	for i := range n.Asserts {
		if n.Asserts[i].Operands == nil {
			continue
		}
		for _, c := range n.Asserts[i].Nodes {
			if !yield(c) {
				return
			}
		}
	}
}

// share replaces the strings that many nodes have in common by one copy each.
func (n *Node) share() {
	if n.Props != nil {
		for i := range n.Props.list {
			shared(&n.Props.list[i].Name)
		}
	}
	for i := range n.Asserts {
		a := &n.Asserts[i]
		shared(&a.Text)
		if a.Operands == nil {
			continue
		}
		for j := range a.List {
			shared(&a.List[j])
		}
	}
	if r := n.Rare; r != nil {
		shared(&r.Default)
		for j := range r.ListMapKeys {
			shared(&r.ListMapKeys[j])
		}
		for j := range r.Rules {
			shared(&r.Rules[j].Rule)
			shared(&r.Rules[j].Message)
			shared(&r.Rules[j].MessageExpression)
		}
	}
}

func shared(s *string) {
	if *s != "" {
		*s = unique.Make(*s).Value()
	}
}

// appendKey appends what makes two nodes the same: their own content and the
// identity of the nodes they refer to.
func (n *Node) appendKey(k []byte) []byte {
	k = append(k, byte(n.Accepts), byte(n.Type))
	k = binary.LittleEndian.AppendUint32(k, uint32(n.Flags))
	k = appendNode(k, n.Items)
	k = appendNode(k, n.Additional)
	k = binary.AppendUvarint(k, uint64(n.Props.Len()))
	for i := range n.Props.Len() {
		p := n.Props.At(i)
		k = appendNode(appendText(k, p.Name), p.Node)
	}
	k = binary.AppendUvarint(k, uint64(len(n.Asserts)))
	for i := range n.Asserts {
		a := &n.Asserts[i]
		k = append(k, byte(a.Op), byte(a.Form))
		k = binary.AppendUvarint(k, a.Num)
		k = appendText(k, a.Text)
		if a.Operands == nil {
			k = append(k, 0)
			continue
		}
		k = appendList(append(k, 1), a.List)
		k = binary.AppendUvarint(k, uint64(len(a.Nodes)))
		for _, c := range a.Nodes {
			k = appendNode(k, c)
		}
	}
	if r := n.Rare; r != nil {
		k = r.appendKey(k)
	}
	return k
}

func (r *Rare) appendKey(k []byte) []byte {
	k = appendList(appendText(k, r.Default), r.ListMapKeys)
	k = binary.AppendUvarint(k, uint64(len(r.Unions)))
	for _, u := range r.Unions {
		k = appendText(k, u.Discriminator)
		k = binary.AppendUvarint(k, uint64(len(u.Fields)))
		for _, f := range u.Fields {
			k = appendText(appendText(k, f.Name), f.Value)
		}
	}
	for _, x := range r.Rules {
		k = append(k, x.OptionalOldSelf)
		for _, s := range []string{x.Rule, x.Message, x.MessageExpression, x.Reason, x.FieldPath} {
			k = appendText(k, s)
		}
	}
	return k
}

func appendText(k []byte, s string) []byte {
	return append(binary.AppendUvarint(k, uint64(len(s))), s...)
}

func appendList(k []byte, list []string) []byte {
	k = binary.AppendUvarint(k, uint64(len(list)))
	for _, s := range list {
		k = appendText(k, s)
	}
	return k
}

// appendNode appends a shared node's identity, its address: it stays where it
// is as long as the node that refers to it.
func appendNode(k []byte, n *Node) []byte {
	return binary.LittleEndian.AppendUint64(k, uint64(uintptr(unsafe.Pointer(n))))
}
