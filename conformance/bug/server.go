package bug

const (
	storePackage    = "github.com/espalier-dev/espalier/server/storage/store"
	customPackage   = "github.com/espalier-dev/espalier/server/apis/customresource"
	serverPackage   = "github.com/espalier-dev/espalier/server"
	garbagePackage  = "github.com/espalier-dev/espalier/server/controllers/garbagecollector"
	cacherPackage   = "k8s.io/apiserver/pkg/storage/cacher"
	etcd3Package    = "k8s.io/apiserver/pkg/storage/etcd3"
	registryPackage = "k8s.io/apiserver/pkg/registry/generic/registry"
	quotaPackage    = "github.com/espalier-dev/espalier/server/admission/quota"
)

// Server are bugs of the server, which `robustness -bugs` must find.
var Server = slicesOf(ours, events, bookmarks, reads, writes)

func slicesOf(classes ...[]Bug) (all []Bug) {
	for _, class := range classes {
		all = append(all, class...)
	}
	return all
}

// ours are those that this server has had.
var ours = []Bug{
	{
		Name: "create-again", What: "a create without an answer is sent again: a deleted object comes back, or the client is told that its own object exists already",
		Edits: []Edit{{
			storePackage, "retryingkv.go", "resp, err := w.resolve(fence, err)",
			"resp, err := func() (*clientv3.TxnResponse, error) { w.pause(); return nil, nil }()",
		}},
	},
	{
		Name: "no-fence", What: "a write waits in a socket, is sent again elsewhere, and is done once more when the socket is read",
		Edits: []Edit{{storePackage, "retryingkv.go", "w.conditions[0], f.isOpen())", "w.conditions[0])"}},
	},
	{
		Name: "create-exists", What: "a create that was done is answered with 409",
		Edits: []Edit{{
			storePackage, "retryingkv.go", "if string(e.Kv.Value) == string(w.done[0].ValueBytes()) {",
			"if len(e.Kv.Value) == 0 {",
		}},
	},
	{
		Name: "update-again", What: "a patch without an answer is applied twice",
		Edits: []Edit{{storePackage, "retryingkv.go", "	return nil, false, errDoubt\n}\n\n// lookForCreate", "	return nil, false, nil\n}\n\n// lookForCreate"}},
	},
	{
		Name: "answered-done", What: "a write that was not done is acknowledged",
		Edits: []Edit{{
			storePackage, "retryingkv.go", "		case err == nil:\n			if w.pause() {\n				return nil, nil\n			}",
			"		case err == nil:\n			return &clientv3.TxnResponse{Succeeded: true, Header: &pb.ResponseHeader{Revision: w.seen.Load()}}, nil",
		}},
	},
	{
		Name: "schema-write", What: "an object is stored by a schema that was replaced, after the change was acknowledged",
		Edits: []Edit{{customPackage, "server.go", "ctx = store.Require(ctx, v.requirement)", "_ = store.Require"}},
	},
	{
		Name: "schema-watch", What: "watches send objects of the old schema after the change was acknowledged",
		Edits: []Edit{
			{serverPackage, "wiring.go", "if err := objects.Adopted(ctx); err != nil {", "if err := ctx.Err(); err != nil {"},
			{serverPackage, "wiring.go", "Current: s.knowledge.current,", "Current: func() bool { return true },"},
			{customPackage, "servedresource.go", "retireTime = 500 * time.Millisecond", "retireTime = 5 * time.Minute"},
		},
	},
	{
		Name: "schema-read", What: "a replica whose lease has run out serves the CRDs that it knew",
		Edits: []Edit{{serverPackage, "knowledge.go", "if m := k.member.Load(); m != nil && m.Current() {", "if m := k.member.Load(); m != nil {"}},
	},
	{
		Name: "quota-conflict", What: "two creates at once exceed a quota",
		Edits: []Edit{{
			quotaPackage, "plugin.go", "if updated = reserve(was, updated, stored); updated == nil {",
			"updated = updated.DeepCopy()\n		updated.ResourceVersion = stored.ResourceVersion\n		if updated.UID == \"\" {",
		}},
	},
	{
		Name: "owner-forgotten", What: "the garbage collector deletes an object whose owner lives",
		Edits: []Edit{{garbagePackage, "check.go", "	if idOf(o.UID) != i {\n		return nil, nil", "	if idOf(o.UID) != i || len(o.OwnerReferences) == 0 {\n		return nil, nil"}},
	},
}

// events are those that lose or repeat events of watches.
var events = []Bug{
	{
		Name: "empty-history", Like: "kubernetes#49992", What: "a watch that goes on at a replica without history loses what happened meanwhile",
		Edits: []Edit{
			{cacherPackage, "watch_cache_history.go", "if resourceVersion < oldest-1 {", "if size > 0 && resourceVersion < oldest-1 {"},
			{storePackage, "ondemandcacher.go", "err != nil || from == 0 ||", "err != nil || from > 0 ||"},
		},
	},
	{
		Name: "reinitialized", Like: "kubernetes#116122", What: "watches survive that the cache is filled anew, and lose what happened meanwhile",
		Edits: []Edit{{cacherPackage, "cacher.go", "	c.terminateAllWatchers()\n	err = c.reflector", "	err = c.reflector"}},
	},
	{
		Name: "batch-cut", Like: "etcd#17529, kubernetes#123072", What: "of many events at once the last are lost",
		Edits: []Edit{{etcd3Package, "watcher.go", "for _, e := range wres.Events {\n", "for i, e := range wres.Events {\n			if i > 3 {\n				continue\n			}\n"}},
	},
	{
		Name: "resumed-late", Like: "etcd#18089", What: "a watch of etcd goes on one revision too late",
		Edits: []Edit{{etcd3Package, "watcher.go", "clientv3.WithRev(wc.initialRev + 1)", "clientv3.WithRev(wc.initialRev + 2)"}},
	},
	{
		Name: "delete-lost", Like: "etcd#19179", What: "a deletion among other events is not told",
		Edits: []Edit{{
			etcd3Package, "watcher.go", "parsedEvent, err := parseEvent(e)",
			"if e.Type == clientv3.EventTypeDelete && e.Kv.ModRevision%8 == 0 {\n				continue\n			}\n			parsedEvent, err := parseEvent(e)",
		}},
	},
	{
		Name: "delete-old-version", Like: "kubernetes#58545", What: "a deletion has the revision of the last change",
		Edits: []Edit{
			{cacherPackage, "cacher.go", "			updateResourceVersion(object, versioner, event.ResourceVersion)\n", ""},
			{cacherPackage, "cache_watcher.go", "		updateResourceVersion(oldObj, c.versioner, event.ResourceVersion)\n", ""},
		},
	},
	{
		Name: "told-again", Like: "etcd#15271, etcd#20418", What: "events of before the beginning of a watch come again",
		Edits: []Edit{{cacherPackage, "cache_watcher.go", "if event.ResourceVersion > resourceVersion ||", "if event.ResourceVersion > 0 ||"}},
	},
}

// bookmarks promise too much.
var bookmarks = []Bug{
	{
		Name: "bookmark-early", Like: "etcd#15220", What: "a bookmark has a revision whose events come after it",
		Edits: []Edit{{cacherPackage, "cacher.go", "				ResourceVersion: lastProcessedResourceVersion,\n", "				ResourceVersion: lastProcessedResourceVersion + 3,\n"}},
	},
	{
		Name: "initial-end-early", Like: "kubernetes#126958", What: "the end of the initial events is told before them",
		Edits: []Edit{{
			cacherPackage, "cache_watcher.go", "	initEventCount := 0\n",
			"	initEventCount := 0\n	if first := cacheInterval.initialEventsEndBookmark; first != nil {\n		c.sendWatchCacheEvent(first)\n		cacheInterval.initialEventsEndBookmark = nil\n	}\n",
		}},
	},
}

// reads are old, or from several moments.
var reads = []Bug{
	{
		Name: "not-older-than", Like: "kubernetes#59848", What: "a list is older than the revision that it was asked to have",
		Edits: []Edit{{cacherPackage, "watch_cache.go", "return w.waitAndListLatestRV(ctx, listRV, key,", "return w.waitAndListLatestRV(ctx, 0*listRV, key,"}},
	},
	{
		Name: "list-stale", Like: "kubernetes#123676", What: "a consistent list is from a cache that is behind",
		Edits: []Edit{{
			cacherPackage, "watch_cache.go", "	resourceVersion, err := w.config.getCurrentRV(ctx)\n	if err != nil {\n		return listResp{}, \"\", err\n	}\n	span.AddEvent",
			"	resourceVersion, err := uint64(0), error(nil)\n	if err != nil {\n		return listResp{}, \"\", err\n	}\n	span.AddEvent",
		}},
	},
	{
		Name: "get-back-in-time", Like: "kubernetes#73845", What: "a get is older than the revision that it was asked to have",
		Edits: []Edit{{
			cacherPackage, "watch_cache.go", "	err := w.waitUntilFreshLocked(ctx, consistentReadSupported, resourceVersion)\n	if err != nil {\n		return nil, false, 0, err",
			"	err := w.waitUntilFreshLocked(ctx, consistentReadSupported, 0)\n	if err != nil {\n		return nil, false, 0, err",
		}},
	},
	{
		Name: "pages-apart", Like: "kubernetes#141399", What: "the pages of a list are from several moments",
		Edits: []Edit{{
			cacherPackage, "watch_cache.go", "return w.waitAndListExactRV(ctx, key, continueKey, uint64(continueRV))",
			"return w.waitAndListLatestRV(ctx, uint64(continueRV), key, continueKey, nil)",
		}},
	},
}

// writes change what they must not.
var writes = []Bug{
	{
		Name: "lost-update", Like: "kubernetes#77619", What: "a concurrent change of another client is overwritten",
		Edits: []Edit{{
			etcd3Package, "store.go", "			origState, err = s.getState(ctx, txnResp.KV, preparedKey, v, ignoreNotFound, false)\n",
			"			if txnResp.KV != nil {\n				origState.rev = txnResp.KV.ModRevision\n				continue\n			}\n			origState, err = s.getState(ctx, txnResp.KV, preparedKey, v, ignoreNotFound, false)\n",
		}},
	},
	{
		Name: "update-unconditional", Like: "kubernetes#82130", What: "an update with an old resourceVersion is done",
		Edits: []Edit{{registryPackage, "store.go", "if newResourceVersion != existingResourceVersion {", "if newResourceVersion > existingResourceVersion {"}},
	},
	{
		Name: "delete-unconditional", Like: "kubernetes#82130", What: "a delete whose precondition does not hold is done",
		Edits: []Edit{
			{etcd3Package, "store.go", "	getCurrentState := s.getCurrentState(ctx, key, v, false, expectTransformOrDecodeError)\n", "	getCurrentState := s.getCurrentState(ctx, key, v, false, expectTransformOrDecodeError)\n	preconditions = nil\n"},
		},
	},
	{
		Name: "finalizer-ignored", What: "an object with finalizers is deleted",
		Edits: []Edit{{registryPackage, "store.go", "pendingFinalizers = len(existingAccessor.GetFinalizers()) != 0", "pendingFinalizers = len(existingAccessor.GetFinalizers()) > 8"}},
	},
	{
		Name: "not-stored", Like: "etcd#14370", What: "a change is acknowledged and not stored",
		Edits: []Edit{{
			etcd3Package, "store.go", "		if !origState.stale && bytes.Equal(data, origState.data) {\n",
			"		if s.pathPrefix != \"\" && origState.rev%16 == 0 && origState.rev != 0 {\n			return s.decoder.Decode(data, destination, origState.rev+1)\n		}\n		if !origState.stale && bytes.Equal(data, origState.data) {\n",
		}},
	},
	{
		Name: "wrong-revision", Like: "etcd#13766", What: "an answer has another revision than the object",
		Edits: []Edit{{etcd3Package, "store.go", "		err = s.decoder.Decode(data, destination, txnResp.Revision)\n", "		err = s.decoder.Decode(data, destination, txnResp.Revision-1)\n"}},
	},
	{
		Name: "key-differs", Like: "kubernetes#135115", What: "an object is stored at the key of another name",
		Edits: []Edit{{
			etcd3Package, "store.go", "	txnResp, err := s.client.Kubernetes.OptimisticPut(ctx, preparedKey, newData, 0, kubernetes.PutOptions{LeaseID: lease})\n",
			"	if startTime.UnixNano()%16 == 0 && s.groupResource.Resource == \"things\" {\n		preparedKey += \"-x\"\n	}\n	txnResp, err := s.client.Kubernetes.OptimisticPut(ctx, preparedKey, newData, 0, kubernetes.PutOptions{LeaseID: lease})\n",
		}},
	},
}
