package main

import "math"

// A site is what serves.
type site struct {
	etcds, replicas int
	// sticky is that the load balancer sends the requests of a tenant to one replica, and not to any.
	sticky bool
}

// A load is what clients do.
type load struct {
	tenants int
	inUse   float64 // which part of the tenants sends requests
	rate    float64 // of each of them, a second
	writes  float64 // which part of the requests writes
	session float64 // seconds that a tenant is in use for
}

// What a replica and an etcd have.
const (
	cores     = 8
	memory    = 16e9
	quota     = 0.8 * 8 * (1 << 30) // of an etcd, where the alert begins
	idle      = 60.0                // seconds after the last request, when a replica closes a tenant
	enough    = 0.7                 // use of a processor or an etcd beyond which requests queue up
	patience  = 0.1                 // seconds, the 99th percentile
	simulated = 100_000             // requests
	directory = 1500.0              // bytes of the root etcd for a tenant's object
)

// outcome is what a site does with a load.
type outcome struct {
	p99, processors, etcd, memory, stored, root float64
	planes                                      float64 // on each replica
	starts                                      float64 // a second, of the site
}

// exhausted is what there is too little of, or nothing.
func (o outcome) exhausted() string {
	for _, one := range []struct {
		name         string
		has, atLeast float64
	}{
		{"bytes of an etcd", quota, o.stored}, {"bytes of the root etcd", quota, o.root}, {"memory of a replica", memory, o.memory},
		{"processors of the replicas", enough, o.processors}, {"writes and reads of an etcd", enough, o.etcd}, {"time: p99", patience, o.p99},
	} {
		if one.atLeast > one.has {
			return one.name
		}
	}
	return ""
}

// under simulates a site under a load. Of a large site it simulates a part: all etcds and replicas are alike.
func under(p parts, whole site, l load) outcome {
	used := float64(l.tenants) * l.inUse
	requests := used * l.rate
	var o outcome
	o.stored = float64(l.tenants) / float64(whole.etcds) * p.stored
	o.root = float64(l.tenants) * directory
	// A replica keeps a tenant for idle seconds after a request. Of the requests of a tenant each replica gets its part.
	share := 1.0
	if !whole.sticky {
		share = 1 / float64(whole.replicas)
	}
	there := 1 - math.Exp(-l.rate*share*idle) // how likely a replica that gets requests of a tenant has it
	on := used * there
	if whole.sticky {
		on /= float64(whole.replicas)
	}
	o.planes = on
	o.memory = p.server + on*p.plane
	// A start is needed when a replica gets a request of a tenant that it does not have.
	missing := math.Exp(-l.rate*share*idle) + 1/(1+l.rate*share*l.session)
	missing = min(1, missing)
	o.starts = requests * missing

	reading, writing := p.serverRead*(1-l.writes)+p.serverWrite*l.writes, p.etcdRead*(1-l.writes)+p.etcdWrite*l.writes
	o.processors = requests * (reading + missing*p.serverStart) / float64(whole.replicas) / cores
	o.etcd = requests * (writing + missing*p.etcdStart) / float64(whole.etcds)
	if o.exhausted() == "" { // otherwise queues grow for as long as the simulation lasts
		o.p99 = wait(p, whole, l.writes, requests, missing)
	}
	return o
}

// wait simulates the queues.
func wait(p parts, whole site, writes, requests, missing float64) (p99 float64) {
	s := newSimulation()
	servers, stores := make([]*station, whole.replicas), make([]*station, whole.etcds)
	for i := range servers {
		servers[i] = newStation(cores)
	}
	for i := range stores {
		stores[i] = newStation(1)
	}
	now := 0.0
	for range simulated {
		now += s.rand.ExpFloat64() / requests
		server, store := servers[s.rand.IntN(whole.replicas)], stores[s.rand.IntN(whole.etcds)]
		var visits []visit
		if s.rand.Float64() < missing {
			visits = append(visits, visit{server, p.serverStart / 2}, visit{store, p.etcdStart}, visit{server, p.serverStart / 2})
		}
		// Before and after it waits for etcd, a request needs a processor.
		cpu, disk := p.serverRead, p.etcdRead
		if s.rand.Float64() < writes {
			cpu, disk = p.serverWrite, p.etcdWrite
		}
		s.add(now, append(visits, visit{server, cpu / 2}, visit{store, disk}, visit{server, cpu / 2}), nil)
	}
	for s.next() {
	}
	return s.percentile(99)
}

// fewest is with how many replicas nothing is exhausted that more replicas help with, and what is exhausted then.
func fewest(p parts, s site, l load) (site, outcome, string) {
	for n := 1; ; n = min(n+max(1, n/10), most) {
		s.replicas = n
		o := under(p, s, l)
		what := o.exhausted()
		switch what {
		case "memory of a replica", "processors of the replicas", "time: p99":
			if n < most {
				continue
			}
		}
		return s, o, what
	}
}

// mostTenants is where the search for the largest site ends.
const mostTenants = 4_000_000

// carries is the largest number of tenants that a number of etcds carries, and what more of them exhaust.
func carries(p parts, etcds int, sticky bool, l load) (best load, with site, does outcome, first string) {
	low, high := 0, mostTenants
	for high-low > max(1, low/100) {
		l.tenants = (low + high) / 2
		s, o, what := fewest(p, site{etcds: etcds, sticky: sticky}, l)
		if what == "" {
			low, best, with, does = l.tenants, l, s, o
		} else {
			high, first = l.tenants, what
		}
	}
	return best, with, does, first
}
