package transport

import (
	"bytes"
	"strings"

	"github.com/podmq/podmq/pkg/core"
)

// A route is one call of the API.
type route struct {
	name   string // in metrics and logs, and its operationId in openapi.yaml
	method string
	path   string  // with {topic}, {group} and {member}
	params []param // that its query may have
	body   bool    // it takes one, and its handler reads it
	handle func(*call) (response, error)

	index    int
	segments []string // of path
}

// A param is a parameter of a query.
type param struct {
	name    string
	repeats bool
}

func params(names ...string) (ps []param) {
	for _, n := range names {
		n, repeats := strings.CutSuffix(n, "*")
		ps = append(ps, param{n, repeats})
	}
	return ps
}

const (
	topicPath = "/v1/topics/{topic}"
	groupPath = topicPath + "/groups/{group}"
)

// routes is the whole API. A star marks a parameter that may be repeated.
func routes() []*route {
	return []*route{
		{name: "publish", method: "POST", path: topicPath + "/messages", body: true, handle: (*call).publishOne,
			params: params("key", "wait", "partition", "sender", "id")},
		{name: "publish_batch", method: "POST", path: topicPath + "/batch", body: true, handle: (*call).publishBatch,
			params: params("wait")},
		{name: "poll", method: "POST", path: groupPath + "/poll", handle: (*call).poll,
			params: params("member", "max", "max-bytes", "wait", "partition", "ack*", "poll-id", "encoding", "format")},
		{name: "ack", method: "POST", path: groupPath + "/ack", handle: (*call).ack,
			params: params("receipt*", "partition", "upto", "member")},
		{name: "nack", method: "POST", path: groupPath + "/nack", handle: (*call).nack,
			params: params("receipt", "partition", "offset", "delay")},
		{name: "extend", method: "POST", path: groupPath + "/extend", handle: (*call).extend,
			params: params("receipt", "by")},

		{name: "list_topics", method: "GET", path: "/v1/topics", handle: (*call).listTopics},
		{name: "get_topic", method: "GET", path: topicPath, handle: (*call).getTopic},
		{name: "create_topic", method: "PUT", path: topicPath, handle: (*call).createTopic,
			params: params("partitions", "capacity", "max-bytes", "ack-timeout")},
		{name: "delete_topic", method: "DELETE", path: topicPath, handle: (*call).deleteTopic},

		{name: "list_groups", method: "GET", path: topicPath + "/groups", handle: (*call).listGroups},
		{name: "get_group", method: "GET", path: groupPath, handle: (*call).getGroup},
		{name: "create_group", method: "PUT", path: groupPath, handle: (*call).createGroup,
			params: params("type", "start", "strategy", "session-timeout", "max-lease", "expires")},
		{name: "delete_group", method: "DELETE", path: groupPath, handle: (*call).deleteGroup},

		{name: "join", method: "PUT", path: groupPath + "/members/{member}", handle: (*call).join},
		{name: "leave", method: "DELETE", path: groupPath + "/members/{member}", handle: (*call).leave},

		{name: "openapi", method: "GET", path: "/v1/openapi.yaml", handle: (*call).openAPI},
	}
}

// label is the route's name where there may be none.
func (r *route) label() string {
	if r == nil {
		return "none"
	}
	return r.name
}

func (r *route) takes(name []byte) *param {
	for i := range r.params {
		if string(name) == r.params[i].name {
			return &r.params[i]
		}
	}
	return nil
}

// maxSegments is more than the longest path has.
const maxSegments = 8

// A router finds routes.
type router struct {
	routes []*route
	bySize [maxSegments + 1][][]*route // by number of segments: the routes of each path
}

func newRouter() *router {
	r := &router{routes: routes()}
	paths := make(map[string]int)
	for i, rt := range r.routes {
		rt.index = i
		rt.segments = strings.Split(rt.path[1:], "/")
		n := len(rt.segments)
		at, ok := paths[rt.path]
		if !ok {
			at = len(r.bySize[n])
			paths[rt.path] = at
			r.bySize[n] = append(r.bySize[n], nil)
		}
		r.bySize[n][at] = append(r.bySize[n][at], rt)
	}
	return r
}

// find sets the call's route and the names in its path.
func (r *router) find(k *call, path []byte) error {
	var segments [maxSegments][]byte
	n, err := split(path, &segments)
	if err != nil {
		return err
	}
	for _, same := range r.bySize[n] {
		if !same[0].matches(segments[:n]) {
			continue
		}
		same[0].names(k, segments[:n])
		method := k.header.Method()
		if k.header.IsHead() {
			method = []byte("GET")
		}
		for _, rt := range same {
			if rt.method == string(method) {
				k.route = rt
				return nil
			}
		}
		k.allow = same
		return core.Errorf(core.CodeMethodNotAllowed, "cannot %.20s %s: this path takes %s", method, same[0].path, strings.Join(allowed(same), ", "))
	}
	return core.Errorf(core.CodeUnknownRoute, "cannot find %.100q: the calls are listed at /v1/openapi.yaml", path)
}

// split cuts a path into its segments and decodes them. A path with too many
// has none, as no route has so many.
func split(path []byte, to *[maxSegments][]byte) (n int, err error) {
	if path[0] != '/' { // http://host/path, as a client says it to a proxy
		_, path, _ = bytes.Cut(path, []byte("://"))
		path = path[max(bytes.IndexByte(path, '/'), 0):]
	}
	if len(path) == 0 || path[0] != '/' {
		return 0, nil
	}
	path = path[1:]
	for more := true; more; n++ {
		if n == maxSegments {
			return 0, nil
		}
		to[n], path, more = bytes.Cut(path, []byte{'/'})
		if bytes.IndexByte(to[n], '%') < 0 {
			continue
		}
		if to[n], err = unescape(nil, to[n], '+'); err != nil {
			return 0, core.Errorf(core.CodeInvalidRequest, "cannot read the path: %v", err)
		}
	}
	return n, nil
}

func (r *route) matches(segments [][]byte) bool {
	for i, want := range r.segments {
		if want[0] == '{' {
			if len(segments[i]) == 0 {
				return false
			}
		} else if string(segments[i]) != want {
			return false
		}
	}
	return true
}

func (r *route) names(k *call, segments [][]byte) {
	for i, want := range r.segments {
		switch want {
		case "{topic}":
			k.topic = same(k.topic, segments[i])
		case "{group}":
			k.group = same(k.group, segments[i])
		case "{member}":
			k.member = same(k.member, segments[i])
		}
	}
}

// allowed are the methods of the routes of one path.
func allowed(same []*route) (methods []string) {
	for _, r := range same {
		methods = append(methods, r.method)
		if r.method == "GET" {
			methods = append(methods, "HEAD")
		}
	}
	return methods
}
