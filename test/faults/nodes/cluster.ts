import { join } from 'node:path'
import { writeFileSync } from 'node:fs'
import { runBinary, startServer, type RunningServer } from '../../helpers/binary.ts'
import { guideConfig, hasHaproxy, startHaproxy } from '../../helpers/haproxy.ts'
import { postgresPrograms, startPostgresServer, type PostgresServer } from '../../helpers/postgres-server.ts'
import { findUnusedPort } from '../../helpers/unused-port.ts'
import type { FaultFamily, Trial } from '../family.ts'
import { makeHome } from '../server.ts'

export type Cluster = Awaited<ReturnType<typeof startCluster>>
export type ClusterNode = Awaited<ReturnType<typeof startNode>>

export type ClusterOptions = {
  postgres?: PostgresServer
  /** URL of the database of node `i`, if something lies between. */
  databaseUrl?: (i: number) => string
  /** Limits of the plan `free`. */
  rates?: Record<string, number>
  env?: Record<string, string>
  nodeEnv?: (i: number) => Record<string, string>
  /** Text for the end of the configuration of node `i`. */
  toml?: (i: number) => string
  /** Whether the balancer has the configuration of the guide; by default it gives each call to the next node. */
  isGuideBalancer?: true
}

const nodeCount = 3

/** Defines a family about three nodes. Without PostgreSQL or HAProxy it is skipped. */
export function defineNodeFamily(family: FaultFamily): FaultFamily {
  return {
    ...family,
    async run(trial) {
      if (postgresPrograms !== null && hasHaproxy) return family.run(trial)
      process.stdout.write(' - skipped: needs PostgreSQL (postgresql) and HAProxy (haproxy)\n')
    },
  }
}

/** Starts three nodes behind HAProxy, on a PostgreSQL server of their own. */
export async function startCluster(trial: Trial, options: ClusterOptions = {}) {
  const postgres = options.postgres ?? (await startPostgresServer())
  const started: ClusterNode[] = []
  try {
    const masterKeyFile = join(trial.folder, 'master-key')
    const masterKey = Buffer.from(crypto.getRandomValues(new Uint8Array(32))).toString('hex')
    writeFileSync(masterKeyFile, `${masterKey}\n`, { mode: 0o600 })
    const settings = { ...options, masterKeyFile }
    // The first one migrates the database.
    for (let i = 0; i < nodeCount; i++) started.push(await startNode(trial, i, postgres, settings))
    const ports = started.map(({ port }) => port)
    const haproxy = await startHaproxy(ports, options.isGuideBalancer && guideConfig)
    return {
      postgres,
      nodes: started,
      /** URL of the balancer. */
      url: haproxy.url,
      async stop() {
        await haproxy.stop()
        await Promise.all(started.map((node) => node.kill()))
        await postgres.dispose()
      },
    }
  } catch (error) {
    await Promise.all(started.map((node) => node.kill()))
    await postgres.dispose()
    throw error
  }
}

async function startNode(
  trial: Trial,
  i: number,
  postgres: PostgresServer,
  { databaseUrl, rates, env, nodeEnv, toml, masterKeyFile }: ClusterOptions & { masterKeyFile: string },
) {
  const name = `node-${i}`
  const home = makeHome(trial, name, rates)
  if (toml) writeFileSync(home.config, toml(i), { flag: 'a' })
  const port = await findUnusedPort()
  const variables = {
    OTPD_MASTER_KEY_FILE: masterKeyFile,
    ...home.env,
    OTPD_NODE: name,
    OTPD_DATABASE_URL: databaseUrl?.(i) ?? postgres.url,
    OTPD_LISTEN: `127.0.0.1:${port}`,
    ...env,
    ...nodeEnv?.(i),
  }
  const start = () =>
    startServer({ home: home.home, dataDir: null, args: ['--config', home.config], env: variables })
  let server = await start()
  let earlierLogs = ''

  return {
    name,
    port,
    url: `http://127.0.0.1:${port}`,
    /** Returns what all its processes have printed. */
    log: () => earlierLogs + server.log(),
    pid: () => server.pid,
    pause: () => process.kill(server.pid, 'SIGSTOP'),
    resume: () => process.kill(server.pid, 'SIGCONT'),
    kill: () => stop(server, 'SIGKILL'),
    stop: () => stop(server, 'SIGTERM'),
    async start() {
      earlierLogs += server.log()
      server = await start()
    },
    /** Runs a host command on its database. */
    async runHostCommand(args: string[], input = '') {
      const { exitCode, stderr } = await runBinary(home.home, [...args, '--config', home.config], {
        env: variables,
        input,
      })
      if (exitCode !== 0) throw new Error(`otpd ${args.join(' ')}: ${exitCode} ${stderr}`)
    },
  }
}

const stop = (server: RunningServer, signal: NodeJS.Signals) => server.stop(signal)
