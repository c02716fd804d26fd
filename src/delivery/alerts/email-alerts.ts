import { defineAlertKind, type SendAlert } from './alert-kind.ts'
import { alertLines, alertTitle } from './alert-text.ts'
import type { AlertNotice } from '../../domain/model/alert.ts'
import { codeText } from '../../shared/error-cause.ts'

const ports = { starttls: 587, tls: 465, none: 25 } as const
type Security = keyof typeof ports
const address = String.raw`[^\s@<>,;]+@[^\s@<>,;]+`

/** Sends an e-mail for each notice through an SMTP server. */
export const emailAlerts = defineAlertKind({
  kind: 'email',
  title: 'E-mail',
  fields: {
    to: {
      description: 'the addresses to write to, separated by commas',
      required: true,
      pattern: new RegExp(`^${address}(\\s*,\\s*${address})*$`),
      example: 'ops@example.com',
    },
    from: {
      description: 'the sender, which the SMTP server must accept',
      required: true,
      pattern: new RegExp(`^(${address}|[^<>\\n]+<${address}>)$`),
      example: 'otpd@example.com',
    },
    host: {
      description: 'the SMTP server',
      required: true,
      pattern: /^[\w.:-]+$/,
      example: 'smtp.example.com',
    },
    port: {
      description: 'the port (587; 465 with tls; 25 with none)',
      pattern: /^([1-9]\d{0,3}|[1-5]\d{4}|6[0-4]\d{3}|65[0-4]\d\d|655[0-2]\d|6553[0-5])$/,
      example: '587',
    },
    security: {
      description: 'how the connection is encrypted',
      choices: ['starttls', 'tls', 'none'],
      default: 'starttls',
    },
    username: { description: 'the user of the SMTP server' },
    password: { description: 'the password of that user', secret: true },
    ca: {
      description: 'the certificate authority of the SMTP server in PEM, if the system has it not',
      multiline: true,
    },
  },
  together: [['username', 'password']],
  create({ to, from, host, port, security: choice, username, password, ca }, { server }) {
    const security = choice as Security
    const options = {
      host,
      port: port === undefined ? ports[security] : Number(port),
      secure: security === 'tls',
      requireTLS: security === 'starttls',
      ignoreTLS: security === 'none',
      tls: { rejectUnauthorized: true, ...(ca !== undefined && { ca }) },
      ...(username !== undefined && { auth: { user: username, pass: password ?? '' } }),
      connectionTimeout: timeoutMs,
      greetingTimeout: timeoutMs,
      socketTimeout: timeoutMs,
      // Texts come from us; a message must never read a file or a URL.
      disableFileAccess: true,
      disableUrlAccess: true,
    }
    const send: SendAlert = async (notice, signal) => {
      // Few installations send e-mail, so its library is loaded by the first one.
      const { createTransport } = await import('nodemailer')
      const transport = createTransport(options)
      try {
        const sent = transport
          .sendMail(toMail(notice, { to, from, server: server() }))
          .then(({ rejected }) => refusalOf(notice, rejected))
        // A server that answers byte by byte must not hold up the others.
        return await Promise.race([sent, aborted(signal)])
      } catch (error) {
        return failureOf(error)
      } finally {
        transport.close()
      }
    }
    return send
  },
})

const aborted = (signal: AbortSignal): Promise<string> =>
  new Promise((resolve) => {
    const giveUp = () => resolve(codeText('ABORTED') ?? '')
    if (signal.aborted) giveUp()
    signal.addEventListener('abort', giveUp, { once: true })
  })

/** A test shows that an address is wrong. An alert that some have is not sent again: they would get it again, too. */
const refusalOf = ({ event }: AlertNotice, refused: readonly string[]): string | null =>
  event === 'test' && refused.length > 0 ? `recipient refused: ${refused.join(', ')}` : null

/** An inactive connection is closed after this time. */
const timeoutMs = 10_000

function toMail(notice: AlertNotice, { to, from, server }: { to: string; from: string; server: string }) {
  const { destination, kind, subject, at } = notice
  const id = new Bun.CryptoHasher('sha256').update(`${destination} ${kind} ${subject} ${at}`).digest('hex')
  return {
    to,
    from,
    subject: `[otpd] ${alertTitle(notice)}`,
    text: [alertTitle(notice), '', ...alertLines(notice, server), ''].join('\n'),
    // The same at each attempt, so that a mail server can drop a repetition.
    messageId: `<${id.slice(0, 32)}@otpd.invalid>`,
    headers: { 'Auto-Submitted': 'auto-generated' },
  }
}

/** Causes by the codes of nodemailer that are not those of the system. */
const causeTexts: Readonly<Record<string, string>> = {
  EAUTH: 'user or password refused',
  ECONNECTION: 'connection closed',
  EDNS: 'no such host',
  EENVELOPE: 'sender or recipient refused',
  EMESSAGE: 'message refused',
  EPROTOCOL: 'connection not accepted',
  ETLS: 'no STARTTLS offered',
}

/** Codes of a connection that was not made, for which nodemailer has one code, by the text of OpenSSL. */
const connectionCodes: readonly [pattern: RegExp, code: string][] = [
  [/WRONG_VERSION_NUMBER/, 'ERR_SSL_WRONG_VERSION_NUMBER'],
  [/certificate has expired/i, 'CERT_HAS_EXPIRED'],
  [/altnames/i, 'ERR_TLS_CERT_ALTNAME_INVALID'],
  [/certificate/i, 'CERT_UNTRUSTED'],
]

/** Finds the code of the system or of TLS in the text of an error, where nodemailer leaves it. */
const connectionCode = (message: string) =>
  /\bE[A-Z]{5,}\b/.exec(message)?.[0] ?? connectionCodes.find(([pattern]) => pattern.test(message))?.[1]

/**
 * Names the cause without the texts of the server, which may repeat what was sent:
 * `user or password refused (EAUTH, SMTP 535)`.
 */
function failureOf(error: unknown): string {
  if (!(error instanceof Error)) return 'ERROR'
  const code = 'code' in error && typeof error.code === 'string' ? error.code : 'ERROR'
  const reply = 'responseCode' in error && typeof error.responseCode === 'number' ? error.responseCode : null
  const codes = reply === null ? code : `${code}, SMTP ${reply}`
  // RFC 4954 §6: the server wants a login.
  if (reply === 530) return `login required (${codes})`
  const text = causeTexts[code] ?? codeText(code === 'ESOCKET' ? (connectionCode(error.message) ?? '') : code)
  return text === undefined ? codes : `${text} (${codes})`
}
