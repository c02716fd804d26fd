/** Answer of the page. `fields` are the hidden ones of its first form. */
type PageAnswer = {
  status: number
  location: string | null
  headers: Headers
  text: string
  notice: string | undefined
}

/**
 * Creates an end user at the page without scripts: a browser that keeps one cookie, and sends the forms of the page.
 *
 * @param headers of every request, such as `accept-language`
 */
export function createPageVisitor(
  service: { app: { handle(request: Request): Response | Promise<Response> } },
  url: string,
  headers: Record<string, string> = {},
) {
  let cookie: string | undefined
  let token = ''

  async function fetchPage(address: string, init: RequestInit = {}): Promise<PageAnswer> {
    const own = { host: new URL(url).host, ...headers, ...(cookie !== undefined && { cookie }) }
    const request = new Request(address, { ...init, headers: { ...own, ...(init.headers as object) } })
    const response = await service.app.handle(request)
    cookie = response.headers.get('set-cookie')?.split(';')[0] ?? cookie
    const text = await response.text()
    token = /name="token" value="([^"]+)"/.exec(text)?.[1] ?? token
    return {
      status: response.status,
      location: response.headers.get('location'),
      headers: response.headers,
      text,
      notice: /<p id="notice">([^<]*)/.exec(text)?.[1],
    }
  }

  const get = (query = '') => fetchPage(`${url}${query}`)

  /** Sends a form, and does not follow the redirect. */
  const post = (fields: Record<string, string>, more: Record<string, string> = {}) =>
    fetchPage(url, {
      method: 'POST',
      headers: {
        'content-type': 'application/x-www-form-urlencoded',
        origin: new URL(url).origin,
        ...more,
      },
      body: new URLSearchParams({ token, ...fields }),
    })

  return {
    get,
    post,
    /** Sends a form, and shows where it leads, if that is the page. */
    async submit(fields: Record<string, string>): Promise<PageAnswer> {
      const answer = await post(fields)
      if (answer.status !== 303 || answer.location === null || URL.canParse(answer.location)) return answer
      return fetchPage(new URL(answer.location, url).href)
    },
    get cookie() {
      return cookie
    },
    get token() {
      return token
    },
  }
}
