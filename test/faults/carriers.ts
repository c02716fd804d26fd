import { appendFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { startServer, type RunningServer } from '../helpers/binary.ts'
import { postgresPrograms, startPostgresServer } from '../helpers/postgres-server.ts'
import { createProcessClock } from '../helpers/process-clock.ts'
import { seededRandom } from '../helpers/seeded-random.ts'
import { logIn } from '../helpers/webhook-client.ts'
import { compare, type Findings } from './carriers/checks.ts'
import { createPeople } from './carriers/people.ts'
import { infobipProtocol, secretEnv, twilioProtocol, vonageProtocol } from './carriers/protocols.ts'
import { startVendor } from './carriers/vendor.ts'
import type { FaultFamily, Trial } from './family.ts'
import { makeHome } from './server.ts'

/** Longer than the pause before a resend. */
const phaseMs = 35_000
const settleRounds = 10
/** Starts of a node that fail, and the pause between them, as systemd's `Restart=` has it. */
const startsMax = 20
const startPauseMs = 2_000

export const carriers: FaultFamily = {
  name: 'carriers',
  description: 'three carriers that fail, lie, cut responses and drift in price, while nodes are killed',
  takesLong: true,
  counts: {
    phases: { full: 90, short: 5 },
    people: { full: 60, short: 30 },
    'carrier-kills': { full: 45, short: 3 },
  },
  async run(trial) {
    // Ten times as fast on one node, whose clock can be moved; two nodes take the clock of the database.
    const nodes =
      trial.short || postgresPrograms === null ? createLoneNode(trial) : await createTwoNodes(trial)
    const post = (url: string, init: RequestInit) => postTo(nodes.url(), url, init)
    const vendors = [infobipProtocol, vonageProtocol, twilioProtocol].map((protocol, index) =>
      startVendor(['ayr', 'bel', 'cor'][index] ?? '', protocol, seededRandom(trial.seed + index), post),
    )
    const routes = `[[routes]]\nchannel = "sms"\nproviders = ["ayr", "bel", "cor"]\nstrategy = "cost"\n`
    const toml = ['[prices]\ncurrency = "EUR"\n', ...vendors.map((vendor) => vendor.toml()), routes].join(
      '\n',
    )
    try {
      await nodes.start(toml)
      const admin = await logIn(nodes.url())
      const app = await admin.createApplication('Shop', 'live')
      await admin.call('PATCH', `/v1/applications/${app.id}`, { otpTtlSeconds: 60 })
      const people = createPeople(app, vendors, trial.random, nodes.url)
      const phases = trial.count('phases')
      for (let phase = 0; phase < phases; phase++) {
        const kills = countKills(trial, phase)
        for (const vendor of vendors) vendor.nextPhase({ hasKills: kills > 0 })
        const busy = Promise.all([people.ask(trial.count('people')), people.askAgain()])
        for (let kill = 0; kill < kills; kill++) {
          await Bun.sleep(trial.random() * 800)
          await nodes.kill(trial.random())
        }
        await busy
        await nodes.pass(phaseMs, () => vendors.every((vendor) => vendor.isIdle()))
      }
      for (const vendor of vendors) vendor.recover()
      await people.askAgain()
      const { violations, figures } = await settle()
      trial.report({
        scenario: `${phases} phases of ${trial.count('people')} people and ${trial.count('carrier-kills')} kill -9 of ${nodes.description}`,
        guarantee:
          'every outcome reaches its carrier, no code is sent twice without a reason in the timeline, costs equal the bills',
        figures,
        violations: [...violations, ...people.violations],
      })
    } finally {
      await nodes.stop()
      for (const vendor of vendors) await vendor.stop()
    }

    /** Lets time pass until nothing is missing, for about as long as a report is tried again. */
    async function settle(): Promise<Findings> {
      for (const vendor of vendors) await vendor.settled()
      for (let round = 1; ; round++) {
        await nodes.pass(phaseMs, () => vendors.every((vendor) => vendor.isIdle()))
        const ids = new Set(
          vendors.flatMap(({ bill }) => [...bill.values()].flatMap((item) => item.requestId ?? [])),
        )
        const findings = await compare(await logIn(nodes.url()), vendors, [...ids])
        if (findings.violations.length === 0 || round === settleRounds) return findings
      }
    }
  },
}

/** Spreads the kills evenly over the phases. */
function countKills(trial: Trial, phase: number): number {
  const share = trial.count('carrier-kills') / trial.count('phases')
  return Math.floor(share * (phase + 1)) - Math.floor(share * phase)
}

/** Posts what a vendor sends to the public URL to a node instead. @returns the status; 0 without a response */
async function postTo(node: string, url: string, init: RequestInit): Promise<number> {
  const { pathname, search } = new URL(url)
  return fetch(`${node}${pathname}${search}`, init).then(
    ({ status }) => status,
    () => 0,
  )
}

type Nodes = {
  description: string
  start(toml: string): Promise<void>
  /** The node that the next call goes to. */
  url(): string
  /** Kills a node, and starts it again. @param choice in [0, 1) */
  kill(choice: number): Promise<void>
  /** Lets time pass for all of them, once no message is on its way to a vendor. */
  pass(ms: number, isIdle: () => boolean): Promise<void>
  stop(): Promise<void>
}

function createLoneNode(trial: Trial): Nodes {
  const clock = createProcessClock(trial.folder)
  const home = makeHome(trial, 'home')
  let server: RunningServer | undefined
  const start = async () =>
    void (server = await startServer({
      home: home.home,
      dataDir: home.dataDir,
      args: ['--config', home.config],
      env: { ...home.env, ...secretEnv, ...clock.env },
    }))
  return {
    description: 'a node on SQLite',
    async start(toml) {
      appendFileSync(home.config, toml)
      await start()
    },
    url: () => server?.url ?? '',
    async kill() {
      await server?.stop('SIGKILL')
      await start()
    },
    async pass(ms, isIdle) {
      // Attempts under way end before, so that none loses its lease or times out.
      await Bun.sleep(1_000)
      for (let idle = 0; idle < 3; idle = isIdle() ? idle + 1 : 0) await Bun.sleep(10)
      clock.advance(ms)
      // Its timers fire when it next wakes up, so it is called. Then it needs a moment for what was due.
      await fetch(`${server?.url}/v1/health/live`)
      await Bun.sleep(1_000)
    },
    async stop() {
      await server?.stop()
      clock.close()
    },
  }
}

async function createTwoNodes(trial: Trial): Promise<Nodes> {
  const postgres = await startPostgresServer()
  const masterKeyFile = join(trial.folder, 'master-key')
  writeFileSync(
    masterKeyFile,
    `${Buffer.from(crypto.getRandomValues(new Uint8Array(32))).toString('hex')}\n`,
    {
      mode: 0o600,
    },
  )
  const homes = ['node-0', 'node-1'].map((name) => makeHome(trial, name))
  const servers: RunningServer[] = []
  let turn = 0
  /** Starts a node as a supervisor does, again and again: on a busy machine, the database may not answer in time. */
  async function start(index: number, triesLeft = startsMax): Promise<void> {
    const home = homes[index]
    if (!home) throw new Error('there is no such node')
    const starting = startServer({
      home: home.home,
      dataDir: null,
      args: ['--config', home.config],
      env: {
        ...home.env,
        ...secretEnv,
        OTPD_MASTER_KEY_FILE: masterKeyFile,
        OTPD_DATABASE_URL: postgres.url,
        OTPD_NODE: `node-${index}`,
      },
    })
    try {
      servers[index] = await starting
    } catch (error) {
      if (triesLeft === 1) throw error
      await Bun.sleep(startPauseMs)
      await start(index, triesLeft - 1)
    }
  }
  return {
    description: 'two nodes on PostgreSQL',
    async start(toml) {
      for (const [index, { config }] of homes.entries()) {
        appendFileSync(config, toml)
        // The first one migrates the database.
        await start(index)
      }
    },
    url: () => servers[turn++ % servers.length]?.url ?? '',
    async kill(choice) {
      const index = Math.floor(choice * servers.length)
      await servers[index]?.stop('SIGKILL')
      await start(index)
    },
    pass: (ms) => Bun.sleep(ms),
    async stop() {
      await Promise.all(servers.map((server) => server.stop('SIGKILL')))
      await postgres.dispose()
    },
  }
}
