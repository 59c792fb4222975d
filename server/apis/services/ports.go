package services

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/big"
	"math/rand/v2"
	"path"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/storage"
)

// portsKey is where kube-apiserver has the node ports.
const portsKey = "/ranges/servicenodeports"

// The errors of allocations, in the words of kube-apiserver.
var (
	errFull      = errors.New("range is full")
	errPortTaken = errors.New("provided port is already allocated")
)

// namedCodec gives a RangeAllocation its name. kube-apiserver stores it without
// metadata, and our storage checks that the name agrees with the key.
type namedCodec struct{ runtime.Codec }

// Decode implements runtime.Decoder.
func (c namedCodec) Decode(data []byte, defaults *schema.GroupVersionKind, into runtime.Object) (runtime.Object, *schema.GroupVersionKind, error) {
	obj, kind, err := c.Codec.Decode(data, defaults, into)
	if r, ok := obj.(*corev1.RangeAllocation); ok && err == nil {
		r.Name = path.Base(portsKey)
	}
	return obj, kind, err
}

// Encode implements runtime.Encoder.
func (c namedCodec) Encode(obj runtime.Object, w io.Writer) error {
	if r, ok := obj.(*corev1.RangeAllocation); ok {
		r = r.DeepCopy()
		r.Name, obj = "", r
	}
	return c.Codec.Encode(obj, w)
}

// ports allocates node ports in a bitmap: bit i, counted from the last byte, is port
// First+i.
type ports struct {
	storage storage.Interface
	ports   PortRange
}

// bitmap are the ports of a range that are allocated.
type bitmap struct {
	big.Int
	of PortRange
}

func (b *bitmap) has(port int) bool { return b.Bit(port-b.of.First) == 1 }

func (b *bitmap) set(port int, to uint) { b.SetBit(&b.Int, port-b.of.First, to) }

// read decodes the stored bitmap. One of another range is translated: an operator may
// change the range. Ports outside the new one are lost, and Services keep them.
func (p *ports) read(obj runtime.Object) (*bitmap, error) {
	stored := obj.(*corev1.RangeAllocation)
	b := &bitmap{of: p.ports}
	if stored.Range == "" || stored.Range == p.ports.String() {
		b.SetBytes(stored.Data)
		return b, b.check()
	}
	of, err := ParseNodePorts(stored.Range)
	if err != nil {
		return nil, fmt.Errorf("reading %s failed: %w", portsKey, err)
	}
	old := &bitmap{of: of}
	old.SetBytes(stored.Data)
	for port := max(of.First, p.ports.First); port <= min(of.Last, p.ports.Last); port++ {
		b.set(port, old.Bit(port-of.First))
	}
	return b, old.check()
}

// check rejects bits outside the range.
func (b *bitmap) check() error {
	if b.BitLen() > b.of.size() {
		return fmt.Errorf("reading %s failed: it has bits for %d ports, and the range %s has %d", portsKey, b.BitLen(), b.of, b.of.size())
	}
	return nil
}

// change applies a function to the bitmap, at its revision. The function returns
// false if there is nothing to write. A function that fails changes nothing.
func (p *ports) change(ctx context.Context, f func(*bitmap) (bool, error)) error {
	return p.storage.GuaranteedUpdate(ctx, portsKey, &corev1.RangeAllocation{}, true, nil, storage.SimpleUpdate(func(obj runtime.Object) (runtime.Object, error) {
		b, err := p.read(obj)
		if err != nil {
			return nil, err
		}
		changed, err := f(b)
		if err != nil {
			return nil, err
		}
		out := obj.(*corev1.RangeAllocation).DeepCopy()
		if changed || out.Range != p.ports.String() {
			out.Range, out.Data = p.ports.String(), b.Bytes()
		}
		return out, nil
	}), nil)
}

// current reads the bitmap, and its revision.
func (p *ports) current(ctx context.Context) (*bitmap, string, error) {
	obj := &corev1.RangeAllocation{}
	if err := p.storage.Get(ctx, portsKey, storage.GetOptions{IgnoreNotFound: true}, obj); err != nil {
		return nil, "", err
	}
	b, err := p.read(obj)
	return b, obj.ResourceVersion, err
}

// outside is the error for a port that is not in the range.
func (p *ports) outside() error {
	return fmt.Errorf("provided port is not in the valid range. The range of valid ports is %s", p.ports)
}

// check returns an error if a port cannot be allocated.
func (p *ports) check(b *bitmap, port int) error {
	switch {
	case port < p.ports.First || port > p.ports.Last:
		return p.outside()
	case b.has(port):
		return errPortTaken
	}
	return nil
}

// free picks a free port. Kubernetes leaves the lower part of the range to clients that
// ask for a port, as long as there are others.
func (p *ports) free(b *bitmap) (int, error) {
	size := p.ports.size()
	low := staticPorts(size)
	for _, part := range [][2]int{{low, size}, {0, low}} {
		n := part[1] - part[0]
		if n == 0 {
			continue
		}
		start := rand.IntN(n)
		for i := range n {
			if port := p.ports.First + part[0] + (start+i)%n; !b.has(port) {
				return port, nil
			}
		}
	}
	return 0, errFull
}

// staticPorts is the number of ports that are left to clients that ask for one:
// between 16 and 128, a 32nd of the range, and none of a small range.
func staticPorts(size int) int {
	if size <= 16 {
		return 0
	}
	return min(max(16, size/32), 128)
}

// release frees ports. Ports outside the range, of an older configuration, have no
// bit. Still is asked before each attempt, and stops the release by an error.
func (p *ports) release(ctx context.Context, list []int, still func() error) error {
	list = slices.DeleteFunc(slices.Clone(list), func(port int) bool { return port < p.ports.First || port > p.ports.Last })
	if len(list) == 0 {
		return nil
	}
	return p.change(ctx, func(b *bitmap) (bool, error) {
		if err := still(); err != nil {
			return false, err
		}
		for _, port := range list {
			b.set(port, 0)
		}
		return true, nil
	})
}
