import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { canMoveClocks, createProcessClock } from '../../helpers/process-clock.ts'
import { startSmtpServer } from '../../helpers/smtp-server.ts'
import { logIn } from '../../helpers/webhook-client.ts'
import { startReceiver } from '../../helpers/webhook-receiver.ts'
import { send, violationUnless } from '../calls.ts'
import { defineNodeFamily, startCluster, type Cluster } from './cluster.ts'

const secretName = 'OTPD_SECRET_MAIN'
const env = {
  [secretName]: `whsec_${Buffer.alloc(32, 9).toString('base64')}`,
  OTPD_SECRET_MAIL: 'secret',
}
const killMs = 30_000
/** A circuit has to be open for five minutes, and a fault gone for five. */
const phaseMsMax = 12 * 60_000

export const nodeAlerts = defineNodeFamily({
  name: 'nodes-alerts',
  description: 'alerts of three nodes, two of them killed again and again, to an SMTP server and a webhook',
  takesLong: true,
  counts: { 'node-alerts': { full: 1, short: 0 } },
  async run(trial) {
    if (trial.count('node-alerts') === 0 || !canMoveClocks) return
    const smtp = await startSmtpServer()
    const world = { isProviderDown: false, isEndpointGone: false }
    const alerts = await startReceiver()
    const other = await startReceiver(({ path }) => {
      if (path === '/hook') return new Response(null, { status: world.isEndpointGone ? 410 : 200 })
      return world.isProviderDown && path === '/main'
        ? new Response(null, { status: 503 })
        : Response.json({ messageId: crypto.randomUUID() })
    })
    mkdirSync(join(trial.folder, 'clock'))
    const clock = createProcessClock(join(trial.folder, 'clock'))
    const caFile = join(trial.folder, 'ca.pem')
    writeFileSync(caFile, smtp.ca)
    const toml = () => `${['main', 'spare'].map((name) => providerToml(name, other.url)).join('')}
[[alerts]]
kind = "webhook"
url = "${alerts.url}"
[[alerts]]
kind = "email"
to = "ops@example.com"
from = "otpd@example.com"
host = "localhost"
port = "${smtp.port}"
username = "otpd"
passwordEnv = "OTPD_SECRET_MAIL"
caFile = "${caFile}"
`
    const nodeEnv = (i: number) => (i === 1 ? clock.env : {})
    const cluster = await startCluster(trial, { env, toml, nodeEnv })
    try {
      const developer = await logIn(cluster.url)
      const app = await developer.createApplication('Live', 'live')
      const endpoint = await developer.createEndpoint(app, `${other.url}/hook`)
      const load = startLoad(() => send(cluster.url, app))
      const told = () => unique(alerts.received.map(({ headers, body }) => readAlert(headers, body)))
      const subjects = ['provider main', `webhook ${endpoint.id}`, 'clock node-1', 'node node-2']
      const hasAll = (event: string) => () =>
        subjects.every((subject) => told().some(({ text }) => text === `${event} ${subject}`))

      world.isProviderDown = true
      world.isEndpointGone = true
      clock.setTimeOfDay(20_000)
      await cluster.nodes[2]?.kill()
      let kills = await killUntil(cluster, hasAll('firing'))

      world.isProviderDown = false
      world.isEndpointGone = false
      clock.setTimeOfDay(0)
      await cluster.nodes[2]?.start()
      await developer.call('PATCH', `/v1/webhooks/${endpoint.id}`, { status: 'enabled' })
      kills += await killUntil(cluster, hasAll('resolved'))
      // A doubled message would follow soon.
      await Bun.sleep(2 * killMs)
      await load.stop()

      const byWebhook = told().map(({ text }) => text)
      const mails = unique(smtp.received.map(({ source }) => readMail(source)))
      const expected = subjects.flatMap((subject) => [`firing ${subject}`, `resolved ${subject}`])
      const unexpected = byWebhook.filter(
        (text, index) => !expected.includes(text) || byWebhook.indexOf(text) !== index,
      )
      trial.report({
        scenario: `four faults begin and end, ${kills} kills of nodes meanwhile`,
        guarantee: 'each destination gets one message at the beginning and one at the end of each',
        figures: {
          told: byWebhook.join(', '),
          mails: mails.length,
          repeated: alerts.received.length - byWebhook.length + smtp.received.length - mails.length,
        },
        violations: [
          ...expected
            .filter((text) => !byWebhook.includes(text))
            .map((text) => `the webhook was not told: ${text}`),
          ...unexpected.map((text) => `the webhook was told again, or of no fault: ${text}`),
          ...violationUnless(
            mails.length === byWebhook.length,
            `${mails.length} mails, ${byWebhook.length} webhooks`,
          ),
        ],
      })
    } finally {
      await cluster.stop()
      clock.close()
      await smtp.stop()
      alerts.stop()
      other.stop()
    }
  },
})

const providerToml = (name: string, url: string) =>
  `[[providers]]\nname = "${name}"\nkind = "http"\nurl = "${url}/${name}"\nsecretEnv = "${secretName}"\n`

/** Kills one of the first two nodes every half a minute, and starts it again, until something has happened. */
async function killUntil({ nodes }: Cluster, isDone: () => boolean): Promise<number> {
  const until = Date.now() + phaseMsMax
  let kills = 0
  while (!isDone() && Date.now() < until) {
    await Bun.sleep(killMs)
    const node = nodes[kills % 2]
    await node?.kill()
    await node?.start()
    kills++
  }
  return kills
}

/** Sends a code every second. */
function startLoad(call: () => Promise<unknown>) {
  const open: Array<Promise<unknown>> = []
  const timer = setInterval(() => void open.push(call().catch(() => undefined)), 1_000)
  return {
    async stop() {
      clearInterval(timer)
      await Promise.all(open)
    },
  }
}

type Told = { id: string; text: string }

function readAlert(headers: Record<string, string>, body: string): Told {
  const { type, data } = JSON.parse(body) as { type: string; data: { kind: string; subject: string } }
  return {
    id: headers['webhook-id'] ?? '',
    text: `${type.replace('alert.', '')} ${data.kind} ${data.subject}`,
  }
}

const readMail = (source: string): Told => ({
  id: /^Message-ID: (.*)$/im.exec(source)?.[1] ?? '',
  text: source,
})

/** Keeps the first of each id: a node that died after it had sent a message leaves it to be sent again. */
const unique = (all: readonly Told[]): Told[] =>
  [...new Map(all.toReversed().map((one) => [one.id, one])).values()].toReversed()
