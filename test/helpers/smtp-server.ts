import { SMTPServer, type SMTPServerOptions } from 'smtp-server'
import { makeCertificate } from './webhook-receiver.ts'

type ReceivedMail = {
  from: string
  to: string[]
  isEncrypted: boolean
  user: string | null
  source: string
}

/** Starts an SMTP server on a free port, which needs STARTTLS and the user `otpd` with the password `secret` by default. */
export async function startSmtpServer(options: SMTPServerOptions = {}) {
  const { key, cert } = makeCertificate('localhost')
  const received: ReceivedMail[] = []
  const server = new SMTPServer({
    key,
    cert,
    authMethods: ['PLAIN', 'LOGIN'],
    onAuth: ({ username, password }, _session, answer) =>
      username === 'otpd' && password === 'secret'
        ? answer(null, { user: username })
        : answer(new Error(`no user ${username} with the password ${password}`)),
    onData(stream, { envelope, secure, user }, answer) {
      const chunks: Uint8Array[] = []
      stream.on('data', (chunk: Uint8Array) => chunks.push(chunk))
      stream.on('end', () => {
        const { mailFrom, rcptTo } = envelope
        received.push({
          from: mailFrom === false ? '' : mailFrom.address,
          to: rcptTo.map(({ address }) => address),
          isEncrypted: secure,
          user: typeof user === 'string' ? user : null,
          source: Buffer.concat(chunks).toString(),
        })
        answer()
      })
    },
    ...options,
  })
  // Clients that give up are no fault of the server.
  server.on('error', () => {})
  const port = await new Promise<number>((resolve) => {
    const listener = server.listen(0, 'localhost', () => {
      const address = listener.address()
      resolve(typeof address === 'object' && address !== null ? address.port : 0)
    })
  })
  return {
    port,
    ca: cert,
    received,
    stop: () => new Promise<void>((resolve) => server.close(() => resolve())),
  }
}
