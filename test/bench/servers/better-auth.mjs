import { Database } from 'bun:sqlite'
import { betterAuth } from 'better-auth'
import { getMigrations } from 'better-auth/db/migration'
import { phoneNumber } from 'better-auth/plugins'

// better-auth's phone-number plugin on Bun, as durable as otpd. It does less work: no authentication of applications, no
// rate limits, no sessions, no events, and codes stored in plain text. A verification creates a user where otpd creates an
// identity.
//
// bun better-auth.mjs FILE [favourable]. Prints its port. GET /sent returns, once, the codes sent so far. By default each
// verification deletes expired rows, which scans a table without an index: `favourable` turns that off and adds the
// index.

const [file, setting] = process.argv.slice(2)
const favourable = setting === 'favourable'
const db = new Database(file)
for (const pragma of ['journal_mode = WAL', 'synchronous = FULL', 'cache_size = -65536'])
  db.run(`PRAGMA ${pragma}`)

let sent = []
const options = {
  database: db,
  baseURL: 'http://127.0.0.1',
  secret: '0123456789abcdef0123456789abcdef0123',
  telemetry: { enabled: false },
  logger: { disabled: true },
  rateLimit: { enabled: false },
  advanced: { disableCSRFCheck: true },
  ...(favourable && { verification: { disableCleanup: true } }),
  plugins: [
    phoneNumber({
      otpLength: 6,
      expiresIn: 300,
      allowedAttempts: 5,
      sendOTP: ({ phoneNumber: phone, code }) => {
        sent.push({ phone, code })
      },
      signUpOnVerification: {
        getTempEmail: (phone) => `${phone.slice(1)}@otp.invalid`,
        getTempName: (phone) => phone,
      },
    }),
  ],
}
const { runMigrations } = await getMigrations(options)
await runMigrations()
if (favourable) db.run('create index verification_by_expiry on verification (expiresAt)')
const auth = betterAuth(options)

const server = Bun.serve({
  port: 0,
  hostname: '127.0.0.1',
  fetch(request) {
    if (!request.url.endsWith('/sent')) return auth.handler(request)
    const codes = sent
    sent = []
    return Response.json(codes)
  },
})
process.stdout.write(`${server.port}\n`)
