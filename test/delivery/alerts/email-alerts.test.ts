import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import net from 'node:net'
import type { AlertNotice } from '../../../src/domain/model/alert.ts'
import { emailAlerts } from '../../../src/delivery/alerts/email-alerts.ts'
import { createProviderHttp } from '../../../src/delivery/kit/http-client.ts'
import { startSmtpServer } from '../../helpers/smtp-server.ts'
import { hasOpenssl } from '../../helpers/webhook-receiver.ts'

const at = Date.parse('2026-11-20T12:00:00Z')
const notice: AlertNotice = {
  destination: 'email',
  event: 'firing',
  kind: 'disk',
  subject: '',
  severity: 'critical',
  message: 'disk space: 90 MB free — ändern',
  remedy: 'Free disk space.',
  since: at,
  at,
}

describe.skipIf(!hasOpenssl)('an alert by e-mail', () => {
  let server: Awaited<ReturnType<typeof startSmtpServer>>
  const http = createProviderHttp()
  const base = () => ({
    to: 'ops@example.com, ada@example.com',
    from: 'otpd <otpd@example.com>',
    host: 'localhost',
    port: String(server.port),
    username: 'otpd',
    password: 'secret',
    ca: server.ca,
  })
  const send = (
    values: Record<string, string | undefined> = {},
    signal = AbortSignal.timeout(5000),
    changes: Partial<AlertNotice> = {},
  ) => {
    const merged = Object.entries({ ...base(), ...values }).filter(([, value]) => value !== undefined)
    const settings = Object.fromEntries(merged) as Record<string, string>
    return emailAlerts.create(settings, { http, server: () => 'https://otp.example.com' })(
      { ...notice, ...changes },
      signal,
    )
  }
  beforeEach(async () => void (server = await startSmtpServer()))
  afterEach(() => server.stop())

  test('is sent over STARTTLS with a login, and says what is wrong and what to do', async () => {
    expect(await send()).toBeNull()
    expect(await send()).toBeNull()
    const [first, second] = server.received
    expect(first).toMatchObject({
      from: 'otpd@example.com',
      to: ['ops@example.com', 'ada@example.com'],
      isEncrypted: true,
      user: 'otpd',
    })
    const { source = '' } = first ?? {}
    expect(source).toContain('Auto-Submitted: auto-generated')
    expect(decode(source)).toContain('Critical: disk space: 90 MB free — ändern')
    expect(decode(source)).toContain(
      'Free disk space.\nSince 2026-11-20T12:00:00.000Z\nServer https://otp.example.com',
    )
    // A repetition has the same id.
    const messageId = (text = '') => /^Message-ID: (\S+)/im.exec(text)?.[1]
    expect(messageId(source)).toMatch(/^<\w{32}@/)
    expect(messageId(second?.source)).toBe(messageId(source))
  })

  test('is not sent where the server is not who it says, or offers no encryption', async () => {
    expect(await send({ ca: undefined })).toBe('certificate not trusted (ESOCKET)')
    expect(await send({ host: '127.0.0.1' })).toBe('certificate for another name (ESOCKET)')
    expect(await send({ security: 'tls' })).toBe('no TLS on this port (ESOCKET)')
    await server.stop()
    server = await startSmtpServer({ disabledCommands: ['STARTTLS'] })
    expect(await send()).toBe('no STARTTLS offered (ETLS, SMTP 500)')
    expect(server.received).toEqual([])
  })

  test('fails with a cause that has neither the password nor the words of the server', async () => {
    expect(await send({ password: 'wrong-password' })).toBe('user or password refused (EAUTH, SMTP 535)')
    expect(await send({ username: undefined, password: undefined })).toBe(
      'login required (EENVELOPE, SMTP 530)',
    )
    await server.stop()
    expect(await send()).toBe('connection refused (ESOCKET)')
    server = await startSmtpServer({
      onRcptTo: (address, _session, answer) => answer(new Error(`no ${address.address}: secret`)),
    })
    expect(await send()).toBe('sender or recipient refused (EENVELOPE, SMTP 550)')
    await server.stop()
    server = await startSmtpServer({
      onData(stream, _session, answer) {
        stream.resume().on('end', () => answer(new Error('spam: secret')))
      },
    })
    expect(await send()).toBe('message refused (EMESSAGE, SMTP 450)')
    await server.stop()
    server = await startSmtpServer({ onConnect: (_session, answer) => answer(new Error('busy: secret')) })
    expect(await send()).toBe('connection not accepted (EPROTOCOL, SMTP 554)')
  })

  test('is sent if one recipient is refused, but its test fails and names that one', async () => {
    await server.stop()
    server = await startSmtpServer({
      onRcptTo: ({ address }, _session, answer) =>
        answer(address.startsWith('ada') ? new Error(`no ${address}: secret`) : null),
    })
    expect(await send()).toBeNull()
    expect(await send({}, undefined, { event: 'test', kind: 'test' })).toBe(
      'recipient refused: ada@example.com',
    )
    expect(server.received).toMatchObject([{ to: ['ops@example.com'] }, { to: ['ops@example.com'] }])
  })

  test('is sent over TLS from the first byte', async () => {
    await server.stop()
    server = await startSmtpServer({ secure: true })
    expect(await send({ security: 'tls' })).toBeNull()
    expect(server.received).toMatchObject([{ isEncrypted: true }])
  })

  test('gives up on a server that does not answer', async () => {
    const silent = net.createServer().listen(0, 'localhost')
    const address = silent.address()
    const port = typeof address === 'object' && address !== null ? String(address.port) : ''
    expect(await send({ port }, AbortSignal.timeout(100))).toBe('no answer in time')
    silent.close()
  })
})

/** Decodes the text of a mail in any transfer encoding. */
function decode(source: string): string {
  const [head = '', ...body] = source.split('\r\n\r\n')
  const text = body.join('\r\n\r\n')
  if (/^Content-Transfer-Encoding: base64/im.test(head))
    return Buffer.from(text, 'base64').toString().replaceAll('\r\n', '\n')
  const joined = text.replaceAll('=\r\n', '').replaceAll('\r\n', '\n')
  const bytes = joined.replaceAll(/=([0-9A-F]{2})/g, (_, hex: string) =>
    String.fromCodePoint(Number.parseInt(hex, 16)),
  )
  return Buffer.from(bytes, 'latin1').toString('utf8')
}
