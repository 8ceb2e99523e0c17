package orderhttp

import "github.com/gin-gonic/gin"

// knowOperator refuses whoever is not the operator, before anything else of the
// request is read, also where nothing is to be found.
func (o *operator) knowOperator(c *gin.Context) {
	if c.FullPath() == pathHealthz {
		return
	}
	token, err := bearer(c)
	if err != nil {
		o.refuse(c, `Bearer realm="shop operator"`, err)
		return
	}
	if !o.token.Is(token) {
		o.refuse(c, `Bearer realm="shop operator", error="invalid_token"`, errNotOurs)
	}
}

// refuse does not tell, either, which methods a path takes: gin has noted that
// before anybody was asked who it is.
func (o *operator) refuse(c *gin.Context, challenge string, err error) {
	c.Writer.Header().Del("Allow")
	c.Header("WWW-Authenticate", challenge)
	o.fail(c, err)
}
