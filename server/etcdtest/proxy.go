package etcdtest

import (
	"context"
	"errors"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
)

// A Proxy is before an etcd. It notes the requests that read and write keys, holds them up, and can
// lose their answers.
type Proxy struct {
	// Endpoint is its URL.
	Endpoint string
	backend  *grpc.ClientConn
	delay    time.Duration

	mu    sync.Mutex
	calls []Call
	lose  func(Call) bool
}

// A Call is a request.
type Call struct {
	Method, Key   string // "Txn", and the first key that it reads or writes
	Reads, Writes int    // how many operations it has
	Begin, End    time.Time
}

// NewProxy starts a proxy that ends with the test. It holds each request up for a while: so those that
// follow each other can be told from those that are under way together.
func NewProxy(tb testing.TB, endpoint string, delay time.Duration) *Proxy {
	tb.Helper()
	backend, err := grpc.NewClient(strings.TrimPrefix(endpoint, "http://"), grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.ForceCodecV2(raw{}), grpc.MaxCallRecvMsgSize(1<<30)))
	if err != nil {
		tb.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	p := &Proxy{Endpoint: "http://" + listener.Addr().String(), backend: backend, delay: delay}
	server := grpc.NewServer(grpc.ForceServerCodecV2(raw{}), grpc.UnknownServiceHandler(p.serve), grpc.MaxRecvMsgSize(1<<30))
	go func() { _ = server.Serve(listener) }() // it ends with the server
	tb.Cleanup(func() {
		server.Stop()
		_ = backend.Close()
	})
	return p
}

// Take returns the requests that were answered since the last call, in the order of the answers.
func (p *Proxy) Take() []Call {
	p.mu.Lock()
	defer p.mu.Unlock()
	calls := p.calls
	p.calls = nil
	return calls
}

// Lose has the answers lost for which f returns true, of requests that etcd has executed.
func (p *Proxy) Lose(f func(Call) bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.lose = f
}

// Chain returns the longest chain of requests: each began when the one before had been
// answered.
func Chain(calls []Call) (chain []Call) {
	calls = slices.Clone(calls)
	slices.SortFunc(calls, func(a, b Call) int { return a.End.Compare(b.End) })
	for _, c := range calls {
		if len(chain) == 0 || !c.Begin.Before(chain[len(chain)-1].End) {
			chain = append(chain, c)
		}
	}
	return chain
}

// serve passes on what both sides say.
func (p *Proxy) serve(_ any, in grpc.ServerStream) error {
	method, _ := grpc.MethodFromServerStream(in)
	ctx, cancel := context.WithCancel(in.Context())
	defer cancel()
	if about, ok := metadata.FromIncomingContext(ctx); ok {
		ctx = metadata.NewOutgoingContext(ctx, about)
	}
	out, err := p.backend.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true, ClientStreams: true}, method)
	if err != nil {
		return err
	}
	if name, ok := strings.CutPrefix(method, "/etcdserverpb.KV/"); ok {
		return p.call(name, in, out)
	}
	go func() {
		for pass(in, out) == nil {
		}
		_ = out.CloseSend() // the other side says what was wrong
	}()
	return answers(out, in)
}

// call passes on a request to read or write keys.
func (p *Proxy) call(name string, in grpc.ServerStream, out grpc.ClientStream) error {
	c := Call{Method: name, Begin: time.Now()}
	var request []byte
	if err := in.RecvMsg(&request); err != nil {
		return err
	}
	c.read(request)
	time.Sleep(p.delay)
	if err := errors.Join(out.SendMsg(&request), out.CloseSend()); err != nil {
		return err
	}
	p.mu.Lock()
	lost := p.lose != nil && p.lose(c)
	p.mu.Unlock()
	if lost {
		var answer []byte
		if err := out.RecvMsg(&answer); err != nil {
			return err
		}
		return status.Error(codes.Unavailable, "the test loses this answer of etcd")
	}
	err := answers(out, in)
	c.End = time.Now()
	p.mu.Lock()
	p.calls = append(p.calls, c)
	p.mu.Unlock()
	return err
}

// answers passes on answers until there are no more.
func answers(from grpc.ClientStream, to grpc.ServerStream) error {
	for {
		if err := pass(from, to); err != nil {
			to.SetTrailer(from.Trailer())
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		}
	}
}

func pass(from interface{ RecvMsg(any) error }, to interface{ SendMsg(any) error }) error {
	var message []byte
	if err := from.RecvMsg(&message); err != nil {
		return err
	}
	return to.SendMsg(&message)
}

// read notes what a request asks for. One that cannot be decoded asks for nothing.
func (c *Call) read(data []byte) {
	switch c.Method {
	case "Range", "RangeStream":
		q := &pb.RangeRequest{}
		_ = proto.Unmarshal(data, q)
		c.Key, c.Reads = string(q.Key), 1
	case "Put":
		q := &pb.PutRequest{}
		_ = proto.Unmarshal(data, q)
		c.Key, c.Writes = string(q.Key), 1
	case "DeleteRange":
		q := &pb.DeleteRangeRequest{}
		_ = proto.Unmarshal(data, q)
		c.Key, c.Writes = string(q.Key), 1
	case "Txn":
		q := &pb.TxnRequest{}
		_ = proto.Unmarshal(data, q)
		for i, op := range q.Success {
			key := op.GetRequestRange().GetKey()
			if op.GetRequestRange() != nil {
				c.Reads++
			} else {
				c.Writes++
				key = slices.Concat(op.GetRequestPut().GetKey(), op.GetRequestDeleteRange().GetKey())
			}
			if i == 0 {
				c.Key = string(key)
			}
		}
	}
}

// raw leaves messages as they are.
type raw struct{}

// Marshal implements encoding.CodecV2.
func (raw) Marshal(v any) (mem.BufferSlice, error) {
	return mem.BufferSlice{mem.SliceBuffer(*v.(*[]byte))}, nil
}

// Unmarshal implements encoding.CodecV2.
func (raw) Unmarshal(data mem.BufferSlice, v any) error {
	*v.(*[]byte) = data.Materialize()
	return nil
}

// Name implements encoding.CodecV2.
func (raw) Name() string { return "proto" }
