package transport

type membershipJSON struct {
	Member     string `json:"member"`
	Generation int64  `json:"generation"`
	Partitions []int  `json:"partitions"`
}

func (k *call) join() (r response, err error) {
	m, joined, err := k.server.engine.Join(k.conn, k.topic, k.group, k.member)
	if err != nil {
		return r, err
	}
	return k.object(madeOrFound(joined), membershipJSON{m.Member, m.Generation, orEmpty(m.Partitions)})
}

func (k *call) leave() (response, error) {
	return response{status: statusNoContent}, k.server.engine.Leave(k.conn, k.topic, k.group, k.member)
}
