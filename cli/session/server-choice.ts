import { usageError } from '../terminal/errors.ts'
import type { Io } from '../terminal/io.ts'

/** The server that a command talks to, and who said so. */
export type ServerChoice = {
  /** Without a slash at the end; a path in front of `/v1` is kept. */
  url: string
  /** What credentials belong to. */
  origin: string
  from: string
}

export const defaultServer = 'http://127.0.0.1:8080'

/** A server and the name that its user gave it. */
export type NamedServer = { name: string; url: string }

/**
 * Flag, then `OTPD_SERVER`, then a context that is named, then a file (an --env-file, or what was chosen last), then the
 * default.
 */
export function chooseServer(
  io: Io,
  given: {
    flag?: string
    context?: NamedServer
    envFile?: string
    current?: { url: string; name?: string } | null
  },
): ServerChoice {
  if (given.flag) return parseServer(given.flag, '--server')
  if (io.env.OTPD_SERVER) return parseServer(io.env.OTPD_SERVER, 'OTPD_SERVER')
  if (given.context) return parseServer(given.context.url, contextNamed(given.context.name))
  if (given.envFile) return parseServer(given.envFile, 'the --env-file')
  if (given.current) {
    const { url, name } = given.current
    return parseServer(url, name === undefined ? 'the last login' : contextNamed(name))
  }
  return parseServer(defaultServer, 'the default')
}

const contextNamed = (name: string) => `the context ${name}`

/** @throws usage error; it names `from`, where the address came from */
export function parseServer(text: string, from: string): ServerChoice {
  const scheme = isLoopback(text.replace(/[:/].*$/, '')) ? 'http' : 'https'
  const url = URL.parse(/^[a-z]+:\/\//i.test(text) ? text : `${scheme}://${text}`)
  if (
    url === null ||
    !/^https?:$/.test(url.protocol) ||
    url.username ||
    url.password ||
    url.search ||
    url.hash
  )
    throw usageError(
      `The server address from ${from} is not one.`,
      `Give it like this: --server ${defaultServer}`,
    )
  return { url: url.origin + url.pathname.replace(/\/+$/, ''), origin: url.origin, from }
}

export const isLoopback = (host: string) => /^(localhost|127(\.\d+){3}|\[::1\])$/.test(host)

/** Where the address came from, as a sentence of an error message. */
export const whence = ({ from }: ServerChoice) =>
  from === 'the default' ? 'That address is the default.' : `That address is from ${from}.`
