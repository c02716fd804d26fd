import { splitHosts, targetServer } from '../shared/database-hosts.ts'
import { suggest } from '../shared/suggestion.ts'
import type { ConfigInput, Reader } from './reader.ts'
import { decodeText } from './secrets.ts'
import { readSecretFile, reportExposed } from './secret-files.ts'
import {
  isLoopbackListen,
  parseChoice,
  parseInteger,
  parsePath,
  parseSwitch,
  quote,
  type Parsed,
} from './values.ts'

/** A PostgreSQL database that several nodes may share. */
export type DatabaseConfig = {
  /** Holds the password: never printed or logged. */
  url: string
  /** Connections of this node at most: 3 that write, 1 for background work, the rest read. */
  connections: number
  /** Whether statements are prepared under names, which some connection poolers lose. */
  statements: 'named' | 'unnamed'
  /** Accepts a server that may lose acknowledged writes, for tests. */
  isUnsafe: boolean
}

const urlRemedy = 'Use a URL such as postgres://otpd@db.example.com/otpd?sslmode=verify-full.'
const targetRemedy = 'Say target_session_attrs=read-write: otpd uses the server that takes writes.'
const sslRemedy = 'Say sslmode=verify-full, or sslmode=disable if the network is yours.'

/**
 * Reads the PostgreSQL database. `source` is what names it, also if that is faulty; null without one. An empty value names
 * none: it is reported, but nothing is required that only nodes need.
 */
export function readDatabase(
  reader: Reader,
  input: ConfigInput,
): { config: DatabaseConfig | null; source: string | null } {
  const { read, report } = reader
  const url = read<string | null>('databaseUrl', parseDatabaseUrl, null)
  const file = read<string | null>('databaseUrlFile', parsePath, null)
  const connections = read('databaseConnections', parseInteger(4, 100), 9)
  const statements = read('databaseStatements', parseChoice('named', 'unnamed'), 'named')
  const unsafe = read('databaseUnsafe', parseSwitch, false)
  const source = [url, file].find((setting) => setting.source !== null && !setting.isEmpty)?.source ?? null
  if (source === null) {
    for (const setting of [connections, statements]) {
      if (setting.source !== null && !url.isEmpty && !file.isEmpty)
        report(
          setting.source,
          'This setting needs a PostgreSQL database, and none is configured.',
          'Set OTPD_DATABASE_URL_FILE too, or remove this setting.',
        )
    }
    return { config: null, source }
  }
  if (url.source !== null && file.source !== null)
    report(file.source, `The database is also named by ${url.source}.`, 'Remove one of the two.')
  if (file.value !== null) reportExposed(reader, input, file)
  const text = url.value ?? readSecretFile(reader, input, file, decodeUrlFile)
  if (text === null) return { config: null, source }
  const config = {
    url: text,
    connections: connections.value,
    statements: statements.value,
    isUnsafe: unsafe.value,
  }
  return { config, source }
}

/** Reads the name of this node, which its log lines, its connections and the table of nodes carry. */
export function readNode(reader: Reader, { hostName }: Pick<ConfigInput, 'hostName'>): string {
  const fallback = hostName.replaceAll(/[^\w.-]/g, '-').slice(0, nodeLengthMax) || 'node'
  return reader.read('node', parseNode, fallback).value
}

export type ConfigUse = 'serve' | 'check' | 'host command' | 'migration'

/** Whether a server is to run with the configuration. */
export const isForServer = (use: ConfigUse) => use === 'serve' || use === 'check'

/** Requires the settings that nodes of one PostgreSQL database must share. */
export function requireSharedSettings(
  { report }: Reader,
  databaseSource: string | null,
  use: ConfigUse,
  shared: { masterKeySource: string | null; publicUrl: string | null; isBuiltInIssuer: boolean },
): void {
  if (databaseSource === null) return
  if (use !== 'migration' && shared.masterKeySource === null)
    report(databaseSource, 'There is no master key.', 'Nodes share one master key: set OTPD_MASTER_KEY_FILE.')
  if (isForServer(use) && shared.isBuiltInIssuer && shared.publicUrl === null)
    report(
      databaseSource,
      'There is no public URL.',
      "Tokens of one node must hold at the next: set OTPD_PUBLIC_URL to the balancer's address.",
    )
}

/**
 * Parses the URL of a PostgreSQL database. A fault names the part that is wrong and never quotes the URL, which may hold a
 * password.
 */
function parseDatabaseUrl(text: string): Parsed<string> {
  if (!/^postgres(ql)?:\/\//i.test(text)) return fail('The scheme is not postgres:// or postgresql://.')
  const hosts = splitHosts(text)
  const target = targetServer(text)
  if (hosts.length > 1 && target === undefined)
    return fail('There are several servers, and no target_session_attrs.', targetRemedy)
  if (target !== undefined && target !== 'read-write')
    return fail('target_session_attrs is not read-write.', targetRemedy)
  for (const host of hosts) {
    const parsed = parseServerUrl(host)
    if ('fault' in parsed) return parsed
  }
  return { value: text }
}

/** Parameters of a URL that the driver follows. It ignores all others, also those that libpq knows. */
const parameters = [
  'sslmode',
  'sslrootcert',
  'sslcert',
  'sslkey',
  'host',
  'port',
  'user',
  'password',
  'application_name',
  'options',
]

const fail = (fault: string, remedy = urlRemedy) => ({ fault, remedy })

/** Parses the URL of one server. */
function parseServerUrl(text: string): Parsed<string> {
  if (!URL.canParse(text)) {
    const remedy = 'Escape special characters in user name and password: @ is %40, / is %2F, # is %23.'
    return fail('The host or the port is not valid.', remedy)
  }
  const url = new URL(text)
  if (url.hash !== '') return fail('The URL contains #.', 'Write %23 instead of #.')
  if (!canDecode(url.username, url.password, url.pathname, url.hostname))
    return fail('A % is not followed by two hexadecimal digits.', 'Write %25 instead of %.')
  // As the driver does: a parameter replaces the host, and a path is a Unix socket.
  const host = url.searchParams.get('host') ?? decodeURIComponent(url.hostname)
  if (host === '') return fail('There is no host.')
  if (url.pathname.length < 2) return fail('There is no database name.')
  const unknown = [...url.searchParams.keys()].find((name) => !parameters.includes(name))
  if (unknown !== undefined) {
    const known = `Known are ${parameters.join(', ')} and target_session_attrs.`
    return fail('The URL has an unknown parameter.', `${suggest(unknown, parameters) ?? ''} ${known}`.trim())
  }
  const mode = url.searchParams.get('sslmode')
  const isLocal = host.startsWith('/') || isLoopbackListen(host.replace(/^\[(.*)\]$/, '$1'))
  if (mode === 'verify-full' || mode === 'disable' || (mode === null && isLocal)) return { value: text }
  if (mode === null) return fail('The server is on another machine, and there is no sslmode.', sslRemedy)
  // In `pg` they mean more or less than they say, depending on its version.
  const isKnown = /^(allow|prefer|require|verify-ca|no-verify)$/.test(mode)
  return fail(isKnown ? `sslmode=${mode} is not accepted.` : 'The sslmode is unknown.', sslRemedy)
}

function canDecode(...parts: string[]): boolean {
  try {
    for (const part of parts) decodeURIComponent(part)
    return true
  } catch {
    return false
  }
}

function decodeUrlFile(bytes: Uint8Array): Parsed<string> {
  const text = decodeText(bytes)?.trim()
  if (text === undefined || text === '' || /\p{Cc}/u.test(text))
    return { fault: 'The file does not hold one line of text.', remedy: urlRemedy }
  return parseDatabaseUrl(text)
}

/** Leaves room for a prefix in `application_name`, which PostgreSQL cuts at 63 bytes. */
const nodeLengthMax = 50

function parseNode(text: string): Parsed<string> {
  if (text.length <= nodeLengthMax && /^[\w.-]+$/.test(text)) return { value: text }
  return {
    fault: `${quote(text)} is not the name of a node.`,
    remedy: `Use 1 to ${nodeLengthMax} letters, digits, dots, hyphens or underscores.`,
  }
}
