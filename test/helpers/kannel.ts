import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { findProgram, startExternalProgram, waitFor } from './external-program.ts'
import { findUnusedPort } from './unused-port.ts'
import { startSmsc } from './smsc.ts'

const bearerbox = findProgram('bearerbox')
const smsbox = findProgram('smsbox')

export const hasKannel = bearerbox !== null && smsbox !== null
if (!hasKannel) process.stderr.write('Skipped: codes through Kannel. To run them: apt-get install kannel\n')

export type Kannel = Awaited<ReturnType<typeof startKannel>>

/** Line of Kannel's access log about a message that the mobile operator accepted. */
type KannelLogEntry = { line: string; to: string; coding: number; text: string }

const username = 'otpd'

/**
 * Starts Kannel, the SMS gateway, with its HTTP interface and with our own SMSC behind it, all on loopback. Kannel's own
 * fake SMSC would listen on every address.
 */
export async function startKannel(password: string) {
  const folder = mkdtempSync(join(tmpdir(), 'otpd-kannel-'))
  const accessLog = join(folder, 'access.log')
  const configFile = join(folder, 'kannel.conf')
  const smsc = await startSmsc()
  const [adminPort, boxPort, httpPort] = await Promise.all([
    findUnusedPort(),
    findUnusedPort(),
    findUnusedPort(),
  ])
  writeFileSync(
    configFile,
    kannelConfig({ accessLog, adminPort, boxPort, httpPort, smscPort: smsc.port, password }),
  )

  const bearerboxProcess = await startExternalProgram([bearerbox ?? '', configFile], 'entering mainloop')
  await smsc.waitUntil(() => smsc.binds.length > 0)
  const smsboxProcess = await startExternalProgram([smsbox ?? '', configFile], 'Connected to bearerbox')

  return {
    username,
    url: `http://127.0.0.1:${httpPort}`,
    /** SMSC that receives Kannel's messages. */
    smsc,
    /** Waits for the line of the access log about the message to this phone. */
    waitForMessageTo: (phone: string): Promise<KannelLogEntry> =>
      waitFor(`message to ${phone} in Kannel's log`, () =>
        parseAccessLog(readFileSync(accessLog, 'utf8')).find(({ to }) => `+${to}` === phone),
      ),
    async stop() {
      await smsboxProcess.stop()
      await bearerboxProcess.stop()
      smsc.stop()
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

type KannelSettings = {
  accessLog: string
  adminPort: number
  boxPort: number
  httpPort: number
  smscPort: number
  password: string
}

/** Builds Kannel's configuration. An empty line ends a group. */
const kannelConfig = ({ accessLog, adminPort, boxPort, httpPort, smscPort, password }: KannelSettings) => `
group = core
admin-port = ${adminPort}
admin-interface = 127.0.0.1
admin-password = ${password}
smsbox-port = ${boxPort}
smsbox-interface = 127.0.0.1
box-allow-ip = 127.0.0.1
box-deny-ip = *.*.*.*
access-log = ${accessLog}

group = smsc
smsc = smpp
smsc-id = operator
host = 127.0.0.1
port = ${smscPort}
smsc-username = kannel
smsc-password = secret
system-type = ""
transceiver-mode = true

group = smsbox
bearerbox-host = 127.0.0.1
sendsms-interface = 127.0.0.1
sendsms-port = ${httpPort}

group = sendsms-user
username = ${username}
password = ${password}
default-sender = ACME
max-messages = 3
concatenation = true
`

/** Parses the access log. Kannel logs GSM texts with dots for non-ASCII characters, and UCS-2 (coding 2) in hexadecimal. */
const parseAccessLog = (log: string): KannelLogEntry[] =>
  [
    ...log.matchAll(
      /^.* Sent SMS \[SMSC:operator\].* \[to:(\d+)\] \[flags:-?\d+:(-?\d+):.*\] \[msg:\d+:(.*)\] \[udh:.*$/gm,
    ),
  ].map(([line, to = '', flag, text = '']) => {
    const coding = Number(flag)
    return {
      line,
      to,
      coding,
      text: coding === 2 ? Buffer.from(text, 'hex').swap16().toString('utf16le') : text,
    }
  })
