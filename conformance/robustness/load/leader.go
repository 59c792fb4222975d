package load

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"

	"github.com/espalier-dev/espalier/conformance/launch"
	"github.com/espalier-dev/espalier/conformance/robustness/history"
)

// leader has one candidate per replica elect a leader with a Lease, as controllers do. The leader writes an object, with the number of
// the lease's transitions as fencing token: it does not write over a greater one.
func (r *run) leader(ctx context.Context, c *Client, _ *rand.Rand) error {
	var all sync.WaitGroup
	for i, replica := range r.site.Environment.Replicas {
		candidate, err := newClient(r.site.Environment, r.rec, c.ID+1+i, time.Second)
		if err != nil {
			return err
		}
		defer candidate.Close()
		config := rest.CopyConfig(replica.Config())
		config.Timeout = time.Second
		clients, err := kubernetes.NewForConfig(config)
		if err != nil {
			return err
		}
		elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
			Lock: &resourcelock.LeaseLock{
				LeaseMeta: metav1.ObjectMeta{Namespace: r.ns, Name: "lead"}, Client: clients.CoordinationV1(),
				LockConfig: resourcelock.ResourceLockConfig{Identity: fmt.Sprintf("candidate%d", i)},
			},
			LeaseDuration: time.Second, RenewDeadline: 600 * time.Millisecond, RetryPeriod: 100 * time.Millisecond,
			Callbacks: leaderelection.LeaderCallbacks{
				OnStartedLeading: func(leading context.Context) { r.lead(leading, candidate, i) },
				OnStoppedLeading: func() {},
			},
		})
		if err != nil {
			return err
		}
		all.Go(func() {
			for ctx.Err() == nil {
				elector.Run(ctx) // it returns when leadership is lost
			}
		})
	}
	all.Wait()
	return nil
}

// lead writes as the leader, until it no longer is.
func (r *run) lead(ctx context.Context, c *Client, replica int) {
	me := fmt.Sprintf("candidate%d", replica)
	token, ok := r.token(ctx, c, replica, me)
	t := Target{Replica: replica, Resource: Things, Version: "v1", Key: r.key("lead")}
	for ok && ctx.Err() == nil {
		o := c.Get(r.ctx, t, "")
		switch {
		case o.Code == http.StatusNotFound:
			o = c.Create(r.ctx, t, Traits{})
		case o.Outcome == history.Done:
			if tokenOf(&o.Got) > token {
				return // another candidate leads
			}
			// The IDs of leaders' writes begin with the token.
			o = c.update(r.ctx, t, fmt.Sprintf("%d:%s:", token, me), false)
			if o.Outcome == history.Done {
				r.rec.with(func(h *history.History) {
					h.Leads = append(h.Leads, history.Lead{Holder: me, Token: token, Revision: o.Got.Revision, At: o.Return})
				})
			}
		}
		launch.Pause(ctx, 40*time.Millisecond)
	}
}

// tokenOf is the token of the last writer.
func tokenOf(it *history.Item) int64 {
	if len(it.Log) == 0 {
		return 0
	}
	token, _, _ := strings.Cut(it.Log[len(it.Log)-1], ":")
	n, err := strconv.ParseInt(token, 10, 64)
	if err != nil {
		return 0 // the create's
	}
	return n
}

// token is the number of the lease's transitions, if the lease is ours.
func (r *run) token(ctx context.Context, c *Client, replica int, me string) (int64, bool) {
	a := c.Ask(ctx, replica, http.MethodGet, "/apis/coordination.k8s.io/v1/namespaces/"+r.ns+"/leases/lead", "", nil)
	var lease struct {
		Spec struct {
			HolderIdentity   string
			LeaseTransitions int64
		}
	}
	if !a.OK() || json.Unmarshal(a.Data, &lease) != nil || lease.Spec.HolderIdentity != me {
		return 0, false
	}
	return lease.Spec.LeaseTransitions, true
}
