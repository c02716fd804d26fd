// Options of the client, and what they become.

export type OtpdOptions = {
  /** URL of the server. Defaults to `OTPD_URL`, then `OTPD_SERVER`, which `otpd app create --env-file` writes. */
  url?: string | undefined
  /** Defaults to `OTPD_CLIENT_ID`. */
  clientId?: string | undefined
  /** Defaults to `OTPD_CLIENT_SECRET`. */
  clientSecret?: string | undefined
  /** Defaults to `OTPD_API_KEY`. */
  apiKey?: string | undefined
  fetch?: ((url: string, init: RequestInit) => Promise<Response>) | undefined
  /** Sent with every call. */
  headers?: Readonly<Record<string, string>> | undefined
  /** Time of one try; 15,000 by default. */
  timeoutMs?: number | undefined
  /** Tries after the first; 2 by default. */
  maxRetries?: number | undefined
  /** A browser would show the secrets to its user. */
  dangerouslyAllowBrowser?: boolean | undefined
}

/** @throws Error if the address or a credential is missing, or in a browser */
export function readSettings(options: OtpdOptions) {
  if ('document' in globalThis && options.dangerouslyAllowBrowser !== true)
    throw new Error('otpd/client holds secrets: call it from a server.')
  const required = (option: 'url' | 'clientId' | 'clientSecret' | 'apiKey', ...variables: string[]) => {
    const found = options[option] ?? variables.map(environment).find(Boolean)
    if (found) return found
    throw new Error(`${variables.join(' or ')} is missing. Set it, or pass the option ${option}.`)
  }
  return {
    url: readUrl(required('url', 'OTPD_URL', 'OTPD_SERVER')),
    fetch: options.fetch ?? ((url: string, init: RequestInit) => fetch(url, init)),
    timeoutMs: options.timeoutMs ?? 15_000,
    maxRetries: options.maxRetries ?? 2,
    headers: {
      ...options.headers,
      accept: 'application/json',
      'x-client-id': required('clientId', 'OTPD_CLIENT_ID'),
      'x-client-secret': required('clientSecret', 'OTPD_CLIENT_SECRET'),
      'x-api-key': required('apiKey', 'OTPD_API_KEY'),
    },
  }
}

/** @throws Error for what no call could reach, and for the address of the API where that of the server is expected */
function readUrl(text: string): string {
  const url = text.replace(/\/+$/, '')
  if (URL.canParse(url) && /^https?:/.test(url) && !url.endsWith('/v1')) return url
  throw new Error('The URL of the server is wrong. Write it like https://otp.example.com, without /v1.')
}

/** Reads a variable where there is an environment: edge workers may have none. */
function environment(name: string): string | undefined {
  const { process } = globalThis as { process?: { env?: Record<string, string | undefined> } }
  return process?.env?.[name]
}
