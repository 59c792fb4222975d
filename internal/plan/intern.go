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

// Release ends a Hold. Nodes that are no longer in use leave the table.
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
// identity of the nodes they refer to. Everything that can change an answer is
// in it, also what follows from other parts: two schemas must never share a node
// because a field seems redundant. TestEveryFieldIsInTheKey checks it.
func (n *Node) appendKey(k []byte) []byte {
	k = append(k, byte(n.Accepts), byte(n.Type))
	k = binary.LittleEndian.AppendUint32(k, uint32(n.Flags))
	k = appendNode(k, n.Items)
	k = appendNode(k, n.Additional)
	k = n.Props.appendKey(k)
	k = binary.AppendUvarint(k, uint64(len(n.Asserts)))
	for i := range n.Asserts {
		k = n.Asserts[i].appendKey(k)
	}
	if r := n.Rare; r != nil {
		k = r.appendKey(k)
	}
	return k
}

// appendKey appends the properties. The table and its shift are left out: they
// are computed from the names.
func (p *Props) appendKey(k []byte) []byte {
	if p == nil {
		return append(k, 0)
	}
	k = binary.AppendUvarint(append(k, 1), uint64(len(p.list)))
	for i := range p.list {
		k = appendNode(appendText(k, p.list[i].Name), p.list[i].Node)
	}
	k = appendNumbers(k, p.Defaults)
	k = binary.AppendVarint(k, int64(p.Required))
	return appendNumbers(k, p.required)
}

func (a *Assert) appendKey(k []byte) []byte {
	k = append(k, byte(a.Op), byte(a.Form))
	k = appendFlag(k, a.OutOfRange)
	k = binary.AppendUvarint(k, a.Num)
	k = appendText(k, a.Text)
	if a.Operands == nil {
		return append(k, 0)
	}
	k = appendList(append(k, 1), a.List)
	k = appendFlag(a.Names.appendKey(k), a.Mixed)
	k = binary.AppendUvarint(k, uint64(len(a.Nodes)))
	for _, c := range a.Nodes {
		k = appendNode(k, c)
	}
	if a.Match == nil {
		return append(k, 0)
	}
	return appendText(append(k, 1), a.Match.String())
}

func (r *Rare) appendKey(k []byte) []byte {
	k = appendList(appendText(k, r.Default), r.ListMapKeys)
	k = binary.AppendUvarint(k, uint64(len(r.Unions)))
	for i := range r.Unions {
		k = r.Unions[i].appendKey(k)
	}
	k = r.UnionNames.appendKey(k)
	for i := range r.Rules {
		x := &r.Rules[i]
		k = append(k, x.OptionalOldSelf)
		for _, s := range []string{x.Rule, x.Message, x.MessageExpression, x.Reason, x.FieldPath} {
			k = appendText(k, s)
		}
	}
	return k
}

func (u *Union) appendKey(k []byte) []byte {
	k = appendText(k, u.Discriminator)
	k = binary.AppendUvarint(k, uint64(len(u.Fields)))
	for _, f := range u.Fields {
		k = appendText(appendText(k, f.Name), f.Value)
	}
	return k
}

func (u *UnionNames) appendKey(k []byte) []byte {
	if u == nil {
		return append(k, 0)
	}
	k = u.names.appendKey(append(k, 1))
	k = binary.AppendUvarint(k, uint64(len(u.roles)))
	for _, r := range u.roles {
		k = binary.AppendVarint(binary.AppendVarint(k, int64(r.Union)), int64(r.Field))
	}
	k = appendNumbers(k, u.Discriminators)
	return binary.AppendVarint(k, int64(u.Required))
}

func appendFlag(k []byte, on bool) []byte {
	if on {
		return append(k, 1)
	}
	return append(k, 0)
}

func appendNumbers[T uint32 | uint64 | int](k []byte, list []T) []byte {
	k = binary.AppendUvarint(k, uint64(len(list)))
	for _, x := range list {
		k = binary.AppendUvarint(k, uint64(x))
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
