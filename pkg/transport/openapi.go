package transport

import _ "embed"

//go:embed openapi.yaml
var openAPI []byte

func (k *call) openAPI() (response, error) {
	return response{status: statusOK, contentType: yamlType, body: openAPI}, nil
}
