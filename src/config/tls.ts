import { isForServer, type ConfigUse } from './database.ts'
import { tryReadFile } from './paths.ts'
import type { ConfigInput, Reader, ResolvedSetting } from './reader.ts'
import { readSecretFile, reportExposed } from './secret-files.ts'
import { decodeText } from './secrets.ts'
import {
  isHostName,
  parseEach,
  parseEmail,
  parseInteger,
  parseListen,
  parsePath,
  parseProviderUrl,
  quote,
  showListen,
  type ListenAddress,
  type Parsed,
} from './values.ts'
import { dayMs, secondMs } from '../shared/durations.ts'
import { endedGraceMs, endedText, inspectPair } from '../tls/pair.ts'

/** HTTPS of this server. */
export type TlsConfig = {
  certificate:
    | { kind: 'files'; certFile: string; keyFile: string }
    | {
        kind: 'acme'
        /** At least one. */
        domains: string[]
        email: string | null
        directoryUrl: string
        /** Root certificate of the directory in PEM; null: the public ones. */
        directoryCa: string | null
      }
  /** Null: plain HTTP is not answered. */
  httpListen: ListenAddress | null
  /** 0: no Strict-Transport-Security. */
  hstsSeconds: number
}

const letsEncrypt = 'https://acme-v02.api.letsencrypt.org/directory'
/** Two years, the most that browsers' preload list asks for. */
const hstsSecondsMax = (730 * dayMs) / secondMs

/** Reads the names of this server, which set the defaults of its address and its URL. */
export const readDomains = (reader: Reader): ResolvedSetting<string[]> =>
  reader.read<string[]>('tlsDomains', parseDomains, [])

/** Reads HTTPS; null without a certificate. `source` is what asks for it, also if that is faulty. */
export function readTls(
  reader: Reader,
  input: ConfigInput,
  {
    domains,
    databaseSource,
    use,
  }: { domains: ResolvedSetting<string[]>; databaseSource: string | null; use: ConfigUse },
): TlsConfig | null {
  const { read, report } = reader
  const certFile = read<string | null>('tlsCertFile', parsePath, null)
  const keyFile = read<string | null>('tlsKeyFile', parsePath, null)
  const email = read<string | null>('tlsEmail', parseEmail, null)
  const directoryUrl = read('tlsDirectoryUrl', parseProviderUrl, letsEncrypt)
  const directoryCaFile = read<string | null>('tlsDirectoryCaFile', parsePath, null)
  const hasDomains =
    domains.source !== null &&
    (domains.value.length > 0 || reader.problems.some(({ source }) => source === domains.source))
  const httpListen = read<ListenAddress | null>(
    'tlsHttpListen',
    parseListen,
    hasDomains ? { host: '0.0.0.0', port: 80 } : null,
    {
      show: (address) => address && showListen(address),
      ...(hasDomains && domains.source !== null && { defaultOrigin: domains.source }),
    },
  )
  const hstsSeconds = read('tlsHstsSeconds', parseInteger(0, hstsSecondsMax), 0)
  reportUnfit(reader, {
    hasDomains,
    certFile,
    keyFile,
    acmeOnly: [email, directoryUrl, directoryCaFile],
    httpsOnly: [httpListen, hstsSeconds],
  })

  const rest = { httpListen: httpListen.value, hstsSeconds: hstsSeconds.value }
  if (hasDomains) {
    if (databaseSource !== null)
      report(
        domains.source ?? 'default',
        'Nodes that share a database cannot get certificates by themselves: a challenge reaches any of them.',
        'End HTTPS at the balancer, or give every node the certificate in tls.certFile.',
      )
    const directoryCa = readSecretFile(reader, input, directoryCaFile, decodeCa)
    return {
      certificate: {
        kind: 'acme',
        domains: domains.value,
        email: email.value,
        directoryUrl: directoryUrl.value,
        directoryCa,
      },
      ...rest,
    }
  }
  if (certFile.value === null || keyFile.value === null) return null
  // An ended certificate must not keep `otpd backup` from working.
  if (isForServer(use)) checkFiles(reader, input, certFile, keyFile)
  return { certificate: { kind: 'files', certFile: certFile.value, keyFile: keyFile.value }, ...rest }
}

type Setting = ResolvedSetting<unknown>

/** Reports settings of HTTPS that do not go together. */
function reportUnfit(
  { report }: Reader,
  {
    hasDomains,
    certFile,
    keyFile,
    acmeOnly,
    httpsOnly,
  }: {
    hasDomains: boolean
    certFile: Setting
    keyFile: Setting
    acmeOnly: readonly Setting[]
    httpsOnly: readonly Setting[]
  },
): void {
  const file = certFile.source === null ? keyFile : certFile
  if (hasDomains && file.source !== null)
    report(file.source, 'There are tls.domains too.', 'Choose one: tls.domains or tls.certFile.')
  else if (certFile.source !== null && keyFile.source === null)
    report(
      certFile.source,
      'tls.keyFile is missing: a certificate needs its key.',
      'Set OTPD_TLS_KEY_FILE or --tls-key too.',
    )
  else if (keyFile.source !== null && certFile.source === null)
    report(
      keyFile.source,
      'tls.certFile is missing: a key needs its certificate.',
      'Set OTPD_TLS_CERT_FILE or --tls-cert too.',
    )
  for (const { source } of hasDomains ? [] : acmeOnly)
    if (source !== null)
      report(source, 'This setting needs tls.domains.', 'Set OTPD_TLS_DOMAINS too, or remove this setting.')
  for (const { source } of hasDomains || file.source !== null ? [] : httpsOnly)
    if (source !== null)
      report(
        source,
        'This setting needs a certificate.',
        'Set OTPD_TLS_DOMAINS or OTPD_TLS_CERT_FILE too, or remove this setting.',
      )
}

/** Reports files that cannot be served; warns of a certificate that ended only recently. */
function checkFiles(
  reader: Reader,
  input: ConfigInput,
  certFile: ResolvedSetting<string | null>,
  keyFile: ResolvedSetting<string | null>,
): void {
  reportExposed(reader, input, keyFile)
  const readPem = (file: ResolvedSetting<string | null>) => {
    const path = file.value ?? ''
    const content = tryReadFile(input, path)
    if ('bytes' in content) return { path, bytes: content.bytes }
    reader.report(file.source ?? 'default', content.fault, 'Correct the path or the permissions of the file.')
    return null
  }
  const [certificate, key] = [readPem(certFile), readPem(keyFile)]
  if (certificate === null || key === null) return
  const nowMs = input.now()
  const inspected = inspectPair(certificate, key, { nowMs, graceMs: endedGraceMs })
  if ('fault' in inspected) {
    const { path, fault, remedy } = inspected
    reader.report((path === key.path ? keyFile : certFile).source ?? 'default', fault, remedy)
  } else if (inspected.facts.notAfter < nowMs) {
    const remedy = `otpd refuses to start with it from ${new Date(inspected.facts.notAfter + endedGraceMs).toISOString().slice(0, 10)} on: renew it.`
    reader.warn(certFile.source ?? 'default', endedText(certificate.path, inspected.facts), remedy)
  }
}

function parseDomains(text: string): Parsed<string[]> {
  const names = parseEach<string>(text, (word) => {
    const isName = isHostName(word) && word.includes('.') && !/(^|\.)localhost$/i.test(word)
    if (isName) return { value: word.toLowerCase() }
    return {
      fault: `${quote(word)} is not the name of a server.`,
      remedy: 'Certificates are for names: otp.example.com.',
    }
  })
  // An authority refuses a name that comes twice.
  return 'value' in names ? { value: [...new Set(names.value)] } : names
}

function decodeCa(bytes: Uint8Array): Parsed<string> {
  const text = decodeText(bytes)
  if (text?.includes('-----BEGIN CERTIFICATE-----')) return { value: text }
  return {
    fault: 'The file has no certificate in PEM.',
    remedy: 'Name the root certificate of the directory.',
  }
}
