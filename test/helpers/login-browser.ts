/** Creates a minimal browser for logins: it keeps cookies, follows redirects and submits forms. */
export function createLoginBrowser() {
  const cookies = new Map<string, string>()

  async function navigate(
    url: string,
    form?: Record<string, string>,
  ): Promise<{ url: string; response: Response }> {
    const response = await fetch(url, {
      redirect: 'manual',
      headers: { cookie: [...cookies].map(([name, value]) => `${name}=${value}`).join('; ') },
      ...(form && { method: 'POST', body: new URLSearchParams(form) }),
    })
    for (const cookie of response.headers.getSetCookie()) {
      const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(cookie) ?? []
      if (value === '') cookies.delete(name)
      else cookies.set(name, value)
    }
    const location = response.headers.get('location')
    return location === null ? { url, response } : await navigate(new URL(location, url).href)
  }

  return {
    navigate,
    /**
     * Submits the development pages of `oidc-provider`, login and consent, and follows the redirect to the client.
     * With `refuses` the person aborts the login.
     */
    async logIn(url: string, login: string, { refuses = false } = {}) {
      let page = await navigate(url)
      const forms: Record<string, string>[] = [
        { prompt: 'login', login, password: 'any' },
        { prompt: 'consent' },
      ]
      for (const form of forms) {
        const body = await page.response.text()
        const action = /action="([^"]+)"/.exec(body)?.[1]
        if (action === undefined) throw new Error(`No form at ${page.url}: ${body}`)
        if (refuses) return await navigate(`${action}/abort`)
        page = await navigate(action, form)
      }
      return page
    },
  }
}
