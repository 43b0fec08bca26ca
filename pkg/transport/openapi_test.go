package transport

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/podmq/podmq/pkg/core"
)

// node is a mapping of the document.
type node = map[string]any

// A document is the OpenAPI document, with its references followed.
type document struct {
	*testing.T
	root node
}

func readDocument(t *testing.T) *document {
	t.Helper()
	d := &document{T: t}
	if err := yaml.Unmarshal(openAPI, &d.root); err != nil {
		t.Fatal(err)
	}
	return d
}

// at follows a path of names from n.
func (d *document) at(n any, path ...string) any {
	for _, name := range path {
		m, ok := d.follow(n).(node)
		if !ok {
			return nil
		}
		n = m[name]
	}
	return d.follow(n)
}

// follow follows a reference; what stands beside it adds to it.
func (d *document) follow(n any) any {
	m, ok := n.(node)
	if !ok || m["$ref"] == nil {
		return n
	}
	path, ok := strings.CutPrefix(m["$ref"].(string), "#/")
	if !ok {
		d.Fatalf("the reference %v leads out of the document", m["$ref"])
	}
	to := d.at(d.root, strings.Split(path, "/")...)
	if to == nil {
		d.Fatalf("the reference %v leads nowhere", m["$ref"])
	}
	return to
}

// keys are the names of a mapping, in order.
func (d *document) keys(n any) []string {
	var names []string
	if m, ok := d.follow(n).(node); ok {
		for name := range m {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// references makes sure that each reference below n leads somewhere.
func (d *document) references(n any) {
	switch n := n.(type) {
	case node:
		d.follow(n)
		for _, v := range n {
			d.references(v)
		}
	case []any:
		for _, v := range n {
			d.references(v)
		}
	}
}

// inPlace are the parameters of an operation that stand in a place, with a star
// for those that are arrays.
func (d *document) inPlace(place string, lists ...any) (names []string) {
	for _, list := range lists {
		ps, _ := list.([]any)
		for _, p := range ps {
			if d.at(p, "in") != place {
				continue
			}
			name := d.at(p, "name").(string)
			if d.at(p, "schema", "type") == "array" {
				name += "*"
			}
			if d.at(p, "schema") == nil {
				d.Errorf("parameter %s has no schema", name)
			}
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

func TestTheDocumentHasEveryRouteAndNoOther(t *testing.T) {
	t.Parallel()
	d := readDocument(t)
	d.references(d.root)
	var served, written []string
	for _, r := range routes() {
		var ps, path []string
		for _, p := range r.params {
			if p.repeats {
				p.name += "*"
			}
			ps = append(ps, p.name)
		}
		for _, s := range strings.Split(r.path, "/") {
			if strings.HasPrefix(s, "{") {
				path = append(path, s[1:len(s)-1])
			}
		}
		slices.Sort(ps)
		slices.Sort(path)
		served = append(served, fmt.Sprintf("%s %s %s %v %v %v", r.name, r.method, r.path, path, ps, r.body))
	}
	for path, item := range d.root["paths"].(node) {
		for method, op := range item.(node) {
			if method == "parameters" {
				continue
			}
			shared := item.(node)["parameters"]
			written = append(written, fmt.Sprintf("%s %s %s %v %v %v", d.at(op, "operationId"), strings.ToUpper(method), path,
				d.inPlace("path", shared, d.at(op, "parameters")), d.inPlace("query", shared, d.at(op, "parameters")), d.at(op, "requestBody") != nil))
			if d.at(op, "responses", "default", "content", problemType) == nil || d.at(op, "summary") == nil {
				t.Errorf("%s %s has no summary, or does not say how it fails", method, path)
			}
		}
	}
	slices.Sort(served)
	slices.Sort(written)
	if !slices.Equal(served, written) {
		t.Errorf("served:\n%s\nwritten:\n%s", strings.Join(served, "\n"), strings.Join(written, "\n"))
	}
}

func TestTheDocumentHasEveryCodeAndNoOther(t *testing.T) {
	t.Parallel()
	d := readDocument(t)
	code := d.at(d.root, "components", "schemas", "Code").(node)
	var written []string
	for _, c := range code["enum"].([]any) {
		written = append(written, c.(string))
	}
	var known []string
	for c, p := range problems {
		known = append(known, string(c))
		text := code["description"].(string)
		_, after, ok := strings.Cut(text, fmt.Sprint(p.status, " "))
		group, _, _ := strings.Cut(after, "·")
		if !ok || !slices.Contains(strings.FieldsFunc(group, func(r rune) bool { return r == ',' || r == ' ' || r == '\n' }), string(c)) {
			t.Errorf("the description does not list %s under %d", c, p.status)
		}
	}
	slices.Sort(written)
	slices.Sort(known)
	if !slices.Equal(written, known) {
		t.Errorf("written are %v, known %v", written, known)
	}
}

// holds makes sure that a value has the form of a schema: all that is required,
// nothing that is not written, the right types. It covers what the document
// uses.
func (d *document) holds(where string, schema, value any) {
	d.Helper()
	s, _ := d.follow(schema).(node)
	switch s["type"] {
	case "object":
		o, ok := value.(map[string]any)
		if !ok {
			d.Errorf("%s is %T, want an object", where, value)
			return
		}
		required, _ := s["required"].([]any)
		for _, name := range required {
			if _, given := o[name.(string)]; !given {
				d.Errorf("%s has no %s", where, name)
			}
		}
		properties, _ := s["properties"].(node)
		for name, v := range o {
			switch p, written := properties[name]; {
			case written:
				d.holds(where+"."+name, p, v)
			case s["additionalProperties"] != nil:
				d.holds(where+"."+name, s["additionalProperties"], v)
			default:
				d.Errorf("%s has %s, which is not written", where, name)
			}
		}
	case "array":
		items, ok := value.([]any)
		if !ok {
			d.Errorf("%s is %T, want an array", where, value)
		}
		for i, v := range items {
			d.holds(fmt.Sprintf("%s[%d]", where, i), s["items"], v)
		}
	default:
		want := map[any]string{"string": "string", "integer": "float64", "boolean": "bool"}[s["type"]]
		if got := fmt.Sprintf("%T", value); got != want {
			d.Errorf("%s is a %s, want a %s", where, got, want)
		}
	}
}

func TestAnswersHaveTheFormThatTheDocumentSays(t *testing.T) {
	t.Parallel()
	d := readDocument(t)
	r := start(t)
	seen := make(map[string]bool) // properties that an answer had
	check := func(status int, what, path string, a *answer) {
		t.Helper()
		method, _, _ := strings.Cut(what, " ")
		code := fmt.Sprint(status)
		media, _, _ := strings.Cut(a.Header.Get("Content-Type"), ";")
		schema := d.at(d.root, "paths", path, strings.ToLower(method), "responses", code, "content", media, "schema")
		if schema == nil {
			t.Fatalf("%s %s: the document does not know %d of %s", method, path, status, media)
		}
		var v any
		r.must(json.Unmarshal(a.body, &v))
		d.holds(what, schema, v)
		names(v, seen)
	}
	want := func(status int, what, path string, body any, headers ...string) *answer {
		t.Helper()
		a := r.want(status, what, body, headers...)
		check(status, what, path, a)
		return a
	}
	const topic, group, single = "/v1/topics/{topic}", "/v1/topics/{topic}/groups/{group}", "/v1/topics/{topic}/messages"
	want(201, "PUT /v1/topics/t?partitions=2", topic, nil)
	want(200, "PUT /v1/topics/t", topic, nil)
	want(201, "PUT /v1/topics/t/groups/g", group, nil)
	want(200, "PUT /v1/topics/t/groups/g", group, nil)
	want(201, "PUT /v1/topics/t/groups/q?type=queue", group, nil)
	want(201, "PUT /v1/topics/t/groups/g/members/default", group+"/members/{member}", nil)
	want(200, "PUT /v1/topics/t/groups/g/members/default", group+"/members/{member}", nil)
	want(201, "POST /v1/topics/t/messages?key=k&partition=0", single, "text", "Podmq-Meta-A: b")
	want(201, "POST /v1/topics/t/messages?key=%ff&partition=1", single, "\xff")
	want(201, "POST /v1/topics/t/batch", "/v1/topics/{topic}/batch", `{"messages":[{"payload":"a"}]}`, "Content-Type: application/json")
	first := want(200, "POST /v1/topics/t/groups/g/poll?partition=0", group+"/poll", nil).member("receipt").(string)
	want(200, "POST /v1/topics/t/groups/q/poll", group+"/poll", nil)
	want(200, "POST /v1/topics/t/groups/g/poll?encoding=base64&wait=0", group+"/poll", nil)
	want(200, "POST /v1/topics/t/groups/g/poll?wait=0", group+"/poll", nil) // empty, with both partitions blocked
	want(200, "GET /v1/topics/t", topic, nil)
	want(200, "GET /v1/topics", "/v1/topics", nil)
	want(200, "GET /v1/topics/t/groups/g", group, nil)
	want(200, "GET /v1/topics/t/groups", "/v1/topics/{topic}/groups", nil)
	want(200, "POST /v1/topics/t/groups/g/extend?receipt="+first, group+"/extend", nil)
	want(200, "POST /v1/topics/t/groups/g/nack?receipt="+first, group+"/nack", nil)
	second := want(200, "POST /v1/topics/t/groups/g/poll?partition=0", group+"/poll", nil).member("receipt").(string)
	want(200, "POST /v1/topics/t/groups/g/ack?receipt="+first+"&receipt="+second, group+"/ack", nil) // the first is stale
	want(200, "POST /v1/topics/t/groups/g/poll?wait=0&ack="+second, group+"/poll", nil)

	for _, name := range []string{"Poll", "Delivery", "Blocked", "Range", "Settled", "CursorPlace", "Topic", "TopicSettings", "Partition", "PartitionGroup", "Group", "Member", "Cursor", "Membership", "Placement"} {
		for _, p := range d.keys(d.at(d.root, "components", "schemas", name, "properties")) {
			if !seen[p] {
				t.Errorf("no answer had %s of %s", p, name)
			}
		}
	}

	problem := r.refused(core.CodePartitionFull, "", "POST /v1/topics/u/messages", func() string {
		r.want(201, "PUT /v1/topics/u?capacity=1", nil)
		r.want(201, "PUT /v1/topics/u/groups/g", nil)
		r.want(201, "POST /v1/topics/u/messages", "x")
		return "y"
	}())
	for _, p := range d.keys(d.at(d.root, "components", "schemas", "Problem", "properties")) {
		if problem.member(p) == nil {
			t.Errorf("a problem has no %s: %s", p, problem.body)
		}
	}
}

// names adds the names of all members in v.
func names(v any, to map[string]bool) {
	switch v := v.(type) {
	case map[string]any:
		for name, member := range v {
			to[name] = true
			names(member, to)
		}
	case []any:
		for _, item := range v {
			names(item, to)
		}
	}
}
