// Command soak loads a server for a long time: writes, reads, watches that come and go, changes of schemas, CRDs that come and go. At the end
// every watcher's view must equal what is in etcd, revision by revision, and neither goroutines nor live memory may have grown.
package main
