package store

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// through sends a request as a backend on an engine with less than etcd has.
func through(ctx context.Context, method string, req, reply any, engine func(ctx context.Context, req, reply any) error) error {
	b := &bounded{}
	b.Store(true)
	return b.intercept(ctx, method, req, reply, nil, func(ctx context.Context, _ string, req, reply any, _ *grpc.ClientConn, _ ...grpc.CallOption) error {
		return engine(ctx, req, reply)
	})
}

// creation is of kube-apiserver's kind, and so is what it reads if the key exists.
func creation(key string) *pb.TxnRequest {
	return &pb.TxnRequest{
		Compare: []*pb.Compare{{Key: []byte(key), Target: pb.Compare_MOD, Result: pb.Compare_EQUAL, TargetUnion: &pb.Compare_ModRevision{}}},
		Success: []*pb.RequestOp{{Request: &pb.RequestOp_RequestPut{RequestPut: &pb.PutRequest{Key: []byte(key), Value: []byte("1")}}}},
		Failure: []*pb.RequestOp{{Request: &pb.RequestOp_RequestRange{RequestRange: &pb.RangeRequest{Key: []byte(key)}}}},
	}
}

// Whether a write was sent and not answered is known on engines without fences, too: the client is told so.
func TestDoubtOnBoundedEngines(t *testing.T) {
	lost := status.Error(codes.Unavailable, "error reading from server: EOF")
	for name, c := range map[string]struct {
		sent, done bool
		err        error
		doubt      bool
	}{
		"the answer is lost":          {true, false, lost, true},
		"there was no connection":     {false, false, lost, false},
		"it was done":                 {true, true, nil, true},
		"the condition does not hold": {true, false, nil, false},
	} {
		ctx := withDoubt(t.Context())
		err := through(ctx, txnMethod, creation("/a"), &pb.TxnResponse{}, func(ctx context.Context, _, reply any) error {
			answer, ok := reply.(*pb.TxnResponse)
			if !ok {
				return nil // reads what exists
			}
			h := ctx.Value(handoverKey{}).(*handover)
			h.watched.Store(true)
			h.begun.Store(c.sent)
			answer.Succeeded, answer.Responses = c.done, []*pb.ResponseOp{{}}
			return c.err
		})
		if (err != nil) != (c.err != nil) || inDoubtOf(ctx).none() == c.doubt {
			t.Errorf("%s: in doubt: %t, %v", name, !inDoubtOf(ctx).none(), err)
		}
	}
}

// The answer to a creation has the object that exists, which is read afterwards.
func TestCreationOnBoundedEngines(t *testing.T) {
	reply := &pb.TxnResponse{}
	err := through(t.Context(), txnMethod, creation("/a"), reply, func(_ context.Context, req, reply any) error {
		switch answer := reply.(type) {
		case *pb.TxnResponse:
			if len(req.(*pb.TxnRequest).Failure) > 0 {
				return rpctypes.ErrGRPCFutureRev
			}
		case *pb.RangeResponse:
			answer.Header, answer.Kvs = &pb.ResponseHeader{Revision: 9}, []*mvccpb.KeyValue{{Key: []byte("/a"), ModRevision: 7}}
		}
		return nil
	})
	if err != nil || reply.Succeeded || reply.Responses[0].GetResponseRange().Kvs[0].ModRevision != 7 {
		t.Error(err, reply)
	}
}

// readAll lists a folder.
func readAll(t *testing.T, limit int64, engine func(q *pb.RangeRequest, n int) *pb.RangeResponse) (reply *pb.RangeResponse, asked int) {
	t.Helper()
	reply = &pb.RangeResponse{}
	q := &pb.RangeRequest{Key: []byte("/a/"), RangeEnd: []byte("/a0"), Limit: limit}
	if err := through(t.Context(), rangeMethod, q, reply, func(_ context.Context, req, reply any) error {
		asked++
		one, answer := engine(req.(*pb.RangeRequest), asked), reply.(*pb.RangeResponse)
		answer.Header, answer.Kvs, answer.More = one.Header, one.Kvs, one.More
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return reply, asked
}

// The revision of an answer is not later than what was read: kine's is, if a folder is empty or a page has more to follow.
func TestReadsOfBoundedEngines(t *testing.T) {
	at := func(revision int64, found ...int64) *pb.RangeResponse {
		answer := &pb.RangeResponse{Header: &pb.ResponseHeader{Revision: revision}}
		for _, r := range found {
			answer.Kvs = append(answer.Kvs, &mvccpb.KeyValue{ModRevision: r})
		}
		return answer
	}
	for name, c := range map[string]struct {
		answers  []*pb.RangeResponse
		revision int64
		found    int
	}{
		"something":          {[]*pb.RangeResponse{at(12, 11)}, 12, 1},
		"nothing":            {[]*pb.RangeResponse{at(12), at(15)}, 12, 0},
		"nothing at first":   {[]*pb.RangeResponse{at(12), at(15, 12)}, 15, 1},
		"a page of several":  {[]*pb.RangeResponse{{Header: at(12).Header, Kvs: at(12, 3).Kvs, More: true}, at(17, 3, 12)}, 12, 2},
		"a page of the past": {[]*pb.RangeResponse{at(12), {Header: at(12).Header, Kvs: at(12, 3).Kvs, More: true}, at(17, 3)}, 12, 1},
	} {
		reply, asked := readAll(t, 1, func(q *pb.RangeRequest, n int) *pb.RangeResponse {
			if exact := n > 1 && c.answers[n-2].More; exact != (q.Revision == 12) {
				t.Errorf("%s: read %d is at revision %d", name, n, q.Revision)
			}
			return c.answers[n-1]
		})
		if asked != len(c.answers) || reply.Header.Revision != c.revision || len(reply.Kvs) != c.found {
			t.Errorf("%s: after %d reads %v", name, asked, reply)
		}
	}
}

// A lease has the time that it was granted for, whether its number is ours or the engine's.
func TestLeasesOfBoundedEngines(t *testing.T) {
	granted := &pb.LeaseGrantResponse{}
	if err := through(t.Context(), "", &pb.LeaseGrantRequest{TTL: 10}, granted, nil); err != nil {
		t.Fatal(err)
	}
	for _, id := range []int64{granted.ID, 10} {
		left := &pb.LeaseTimeToLiveResponse{}
		if err := through(t.Context(), "", &pb.LeaseTimeToLiveRequest{ID: id}, left, nil); err != nil || left.TTL != 10 {
			t.Errorf("lease %d: %v, %v", id, left, err)
		}
	}
}

// Progress that comes before its events is passed on after them, and none that goes back.
func TestProgressOfBoundedEngines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		in, out := make(chan clientv3.WatchResponse), make(chan clientv3.WatchResponse, 10)
		go func() {
			defer close(out)
			relay(t.Context(), in, out)
		}()
		progress := func(revision int64) {
			in <- clientv3.WatchResponse{Header: &pb.ResponseHeader{Revision: revision}}
		}
		events := func(revisions ...int64) {
			answer := clientv3.WatchResponse{Header: &pb.ResponseHeader{Revision: revisions[len(revisions)-1]}}
			for _, r := range revisions {
				answer.Events = append(answer.Events, &clientv3.Event{Kv: &mvccpb.KeyValue{ModRevision: r}})
			}
			in <- answer
		}
		progress(137)
		events(134, 135, 137)
		synctest.Wait()
		progress(138) // while another one is held
		time.Sleep(2 * progressDelay)
		progress(120)
		time.Sleep(2 * progressDelay)
		progress(140)
		time.Sleep(2 * progressDelay)
		close(in)
		var got []int64
		for answer := range out {
			if answer.IsProgressNotify() {
				got = append(got, answer.Header.Revision)
			} else {
				got = append(got, -int64(len(answer.Events)))
			}
		}
		if len(got) != 3 || got[0] != -3 || got[1] != 137 || got[2] != 140 {
			t.Error(got)
		}
	})
}
