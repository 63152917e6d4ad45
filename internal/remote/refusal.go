package remote

import (
	"bytes"
	"io"
	"net/http"

	"connectrpc.com/connect"
)

// refusals reads what a server says with a status other than 200 to its end, before Connect does. From one that was
// cut off Connect would keep the status alone, and a 404, which here says that a workflow was not found, would say
// that there is no such call.
type refusals struct{ next connect.HTTPClient }

// Do implements connect.HTTPClient.
func (c refusals) Do(r *http.Request) (*http.Response, error) {
	resp, err := c.next.Do(r)
	if err != nil || resp.StatusCode == http.StatusOK {
		return resp, err
	}
	var said bytes.Buffer
	if _, err := said.ReadFrom(io.LimitReader(resp.Body, maxRefusalBytes)); err != nil {
		_ = resp.Body.Close()
		return nil, err
	}
	resp.Body = refusal{io.MultiReader(&said, resp.Body), resp.Body}
	return resp, nil
}

// maxRefusalBytes is more than an error of ours has.
const maxRefusalBytes = 1 << 20

type refusal struct {
	io.Reader
	io.Closer
}
